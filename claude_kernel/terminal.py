"""IPython in a terminal as a face needs it: paper that only appends, and a person who types."""

from __future__ import annotations

import asyncio
import sys
from typing import Any


class TerminalPaper:
    """Plain text; whoever runs a turn here says so, and nothing is shown that could be updated."""

    def show(self, mime: dict[str, Any], display_id: str, metadata: dict[str, Any]) -> None:  # noqa: ARG002
        self.write(str(mime.get("text/plain", "")) + "\n")

    def update(self, mime: dict[str, Any], display_id: str, metadata: dict[str, Any]) -> None:
        """What was written stays."""

    def write(self, text: str, *, error: bool = False) -> None:
        stream = sys.stderr if error else sys.stdout
        stream.write(text)
        stream.flush()


class TerminalFront:
    def client(self) -> str:
        return "terminal"

    def takes_input(self) -> bool:
        return sys.stdin is not None and sys.stdin.isatty()

    async def ask_line(self, prompt: str) -> str:
        """In a thread: the conversation goes on while the person thinks."""
        return await asyncio.to_thread(input, prompt)
