"""A Markdown table of our own. Words of others go into it as code."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """`right`: the columns that hold figures."""
    marks = ["---:" if column in right else "---" for column in range(len(head))]
    cells = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", f"|{'|'.join(marks)}|", *(f"| {row} |" for row in cells)])


def code(text: str) -> str:
    """Words of others, as they are."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"
