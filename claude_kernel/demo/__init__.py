"""A small CLI of our own, for those who have no account: it speaks the direct protocol and runs real tools.

It is a script that knows some sentences (`scenes.py`), never a model, and says so in each answer. Files are really read
and changed, commands really run, and only after the notebook has really been asked. What was said is kept (`kept.py`),
as with the real CLI, but in a folder of its own. It imports nothing of the kernel.
"""

from __future__ import annotations

import sys

NAME = "demo"
"""What to say instead of a path to the CLI, to get this one."""


def demo_command() -> list[str]:
    """`-P`: a file called `json.py` in the notebook's folder is not ours to run."""
    return [sys.executable, "-P", "-m", "claude_kernel.demo"]
