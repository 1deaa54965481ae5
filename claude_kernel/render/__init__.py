"""Events in, safe mime bundles out: pure functions, one row per tool in a table.

Nothing here publishes, waits, reads a clock or a file. Everything a function returns has been escaped by the
renderer that made it and has then passed the allow-list in `sanitize`.
"""

from __future__ import annotations

from claude_kernel.render.bundle import Bundle
from claude_kernel.render.calls import ENDED, CallState, ToolCall
from claude_kernel.render.markdown import render_markdown
from claude_kernel.render.plans import CHECKLIST_TOOLS
from claude_kernel.render.sheet import style_tag
from claude_kernel.render.split import MarkdownSplitter
from claude_kernel.render.tools import is_quiet, render_call, render_checklist, render_group
from claude_kernel.render.turn import (
    join_bundles,
    render_answer,
    render_compacted,
    render_footer,
    render_interrupted,
    render_live_line,
    render_notice,
    render_printed,
    render_rate_limit,
    render_record,
    render_text,
    render_thinking,
    render_trouble,
)

__all__ = [
    "CHECKLIST_TOOLS",
    "ENDED",
    "Bundle",
    "CallState",
    "MarkdownSplitter",
    "ToolCall",
    "is_quiet",
    "join_bundles",
    "render_answer",
    "render_call",
    "render_checklist",
    "render_compacted",
    "render_footer",
    "render_group",
    "render_interrupted",
    "render_live_line",
    "render_markdown",
    "render_notice",
    "render_printed",
    "render_rate_limit",
    "render_record",
    "render_text",
    "render_thinking",
    "render_trouble",
    "style_tag",
]
