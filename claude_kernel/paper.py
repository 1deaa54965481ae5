"""Where a cell's outputs go: the seam between the screen and whatever shows it. Real ones are in the faces."""

from __future__ import annotations

from typing import Any, Protocol


class Paper(Protocol):
    """One cell's outputs. Everything that reaches a front end goes through these three."""

    def show(self, mime: dict[str, Any], display_id: str, metadata: dict[str, Any]) -> None:
        """A new output, below the others."""

    def update(self, mime: dict[str, Any], display_id: str, metadata: dict[str, Any]) -> None:
        """An output that was shown, in this cell or an earlier one, has become this."""

    def write(self, text: str, *, error: bool = False) -> None:
        """Plain text, for front ends that cannot update what they have shown."""
