"""The notebook's cells as Claude may see and propose them: what has run so far, and new ones below the running one.

A new cell is handed to the front end with the reply of the running one (`set_next_input`). It is never run, and no file
is touched. A front end takes one per reply, so several become one.
"""

from __future__ import annotations

from typing import Any

from claude_kernel.errors import UsageError
from claude_kernel.tools.privacy import Privacy

MOST_CHARACTERS = 24_000
_MOST_OF_ONE = 2_000
KINDS = ("code", "markdown")


class Cells:
    """`prefix` makes Python of a cell where cells are prompts."""

    def __init__(self, shell: Any, privacy: Privacy, prefix: str = "") -> None:
        self._shell = shell
        self._privacy = privacy
        self._prefix = prefix
        self._added: list[str] = []

    def begin(self) -> None:
        """A new cell runs: what was added by an earlier one stands in the notebook."""
        self._added.clear()

    def add(self, source: str, kind: str = "code") -> str:
        if kind not in KINDS:
            raise UsageError(f"There is no kind of cell {kind!r}; there are {', '.join(KINDS)}.")
        if not source.strip():
            raise UsageError("The cell would be empty.")
        if self._added and kind == "markdown":
            raise UsageError("Only one cell can be added by a turn, and it holds code already. Write the text here.")
        lead = "%%markdown\n" if kind == "markdown" else self._prefix
        self._added.append(source.strip("\n"))
        self._shell.set_next_input(lead + "\n\n".join(self._added), replace=False)
        if len(self._added) > 1:
            return "Added to the new cell, which will stand below this one when the turn ends. It was not run."
        return "A new cell will stand below this one when the turn ends. It was not run: that is the person's choice."

    def read(self, last: int = 20) -> str:
        """The inputs and outputs of this session's last cells, the oldest first."""
        history = self._shell.history_manager
        numbers = range(max(1, len(history.input_hist_raw) - max(1, last)), len(history.input_hist_raw))
        parts: list[str] = []
        room = MOST_CHARACTERS
        for number in reversed(numbers):
            part = self._describe(number, history)
            if len(part) > room:
                parts.append("[earlier cells are left out]")
                break
            room -= len(part)
            parts.append(part)
        if not parts:
            return "No cell has been run yet."
        return self._privacy.clean("\n\n".join(reversed(parts)), self._shell.user_ns)

    def _describe(self, number: int, history: Any) -> str:
        lines = [f"In [{number}]:", _cut(str(history.input_hist_raw[number]))]
        for output in getattr(history, "outputs", {}).get(number, []):
            said = _text_of(output)
            if said:
                lines += [f"Out [{number}], {output.output_type}:", _cut(said)]
        return "\n".join(lines)


def _text_of(output: Any) -> str:
    bundle = getattr(output, "bundle", {})
    stream = bundle.get("stream")
    if stream is not None:
        return "".join(stream) if isinstance(stream, list) else str(stream)
    images = [kind for kind in bundle if str(kind).startswith("image/")]
    return str(bundle.get("text/plain") or "") + (f" [{images[0]}]" if images else "")


def _cut(text: str) -> str:
    if len(text) <= _MOST_OF_ONE:
        return text
    return f"{text[:_MOST_OF_ONE]}\n[… {len(text) - _MOST_OF_ONE:,} more characters]"
