"""What a running call is doing, in a few words for the live line."""

from __future__ import annotations

from claude_kernel.render.calls import ToolCall
from claude_kernel.render.rows import View
from claude_kernel.render.tools import find_tool
from claude_kernel.render.visible import one_line


def describe_call(call: ToolCall, *, project: str = "") -> str:
    tool = find_tool(call)
    return one_line(f"{tool.title} {tool.subject(call, View(project=project))}".strip(), 120)
