"""Asking the person, inside the running cell: what is asked, in which way, and what they may answer.

`asker` is the one place that chooses between the three ways (`cards` and `forms`, `stdin`, `unattended`); everything
that words a question or an answer is pure and shared by all three. Nothing here knows the CLI's wire.
"""

from __future__ import annotations

from claude_kernel.prompts.asker import WAYS, Asker, steer_prompts
from claude_kernel.prompts.front import KernelFront
from claude_kernel.prompts.scene import Scene
from claude_kernel.prompts.unattended import find_refusals

__all__ = ["WAYS", "Asker", "KernelFront", "Scene", "find_refusals", "steer_prompts"]
