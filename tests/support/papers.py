"""Paper that a test can read back: what was sent, in order, and what a front end would show of it now.

`Notebook` stands for the page: an update finds its output by its display id, in whichever cell that is, and replaces
all of it, as JupyterLab does. Where a front end would silently drop a message, this fails. `Hourglass` is a loop whose
clock runs as fast as the work allows. Neither knows what a turn is.
"""

from __future__ import annotations

import asyncio
import json
import re
import selectors
from collections.abc import Coroutine
from typing import Any, NamedTuple, TypeVar

Mime = dict[str, Any]
Result = TypeVar("Result")


class Sent(NamedTuple):
    kind: str
    """`show`, `update` or `write`."""
    display_id: str
    mime: Mime
    size: int
    """Bytes of the message's content, as Jupyter encodes it."""
    at: float
    outputs: tuple[str, ...]
    """The display ids of the cell's outputs, top to bottom, once this has arrived."""

    @property
    def html(self) -> str:
        return str(self.mime.get("text/html", ""))

    @property
    def is_live_line(self) -> bool:
        return '<p class="live">' in self.html

    @property
    def is_style(self) -> bool:
        return self.html.startswith("<style>")


class Notebook:
    """All cells' outputs. Their papers write on it."""

    def __init__(self) -> None:
        self.cells: list[CellPaper] = []

    def cell(self) -> CellPaper:
        return CellPaper(self)

    def find(self, display_id: str) -> CellPaper | None:
        return next((cell for cell in self.cells if display_id in cell.shown), None)


class CellPaper:
    """One cell's outputs: a `Paper`."""

    def __init__(self, notebook: Notebook | None = None) -> None:
        self.notebook = notebook or Notebook()
        self.notebook.cells.append(self)
        self.sent: list[Sent] = []
        self.shown: dict[str, Mime] = {}
        self.metadata: dict[str, dict[str, Any]] = {}
        self.written = ""

    # --- Paper ----------------------------------------------------------------------------------------------------

    def show(self, mime: dict[str, Any], display_id: str, metadata: dict[str, Any]) -> None:
        assert display_id, "an output without a display id can never be updated"
        assert self.notebook.find(display_id) is None, f"{display_id} was shown before"
        self.shown[display_id] = dict(mime)
        self._note("show", mime, display_id, metadata)

    def update(self, mime: dict[str, Any], display_id: str, metadata: dict[str, Any]) -> None:
        cell = self.notebook.find(display_id)
        assert cell is not None, f"{display_id} was never shown: every front end would drop this"
        cell.shown[display_id] = dict(mime)
        self._note("update", mime, display_id, metadata)

    def write(self, text: str, *, error: bool = False) -> None:
        self.written += text
        self._note("write", {"stderr" if error else "stdout": text}, "", {})

    def _note(self, kind: str, mime: Mime, display_id: str, metadata: dict[str, Any]) -> None:
        content = {"data": mime, "metadata": metadata, "transient": {"display_id": display_id}}
        size = len(json.dumps(content, ensure_ascii=False).encode())
        self.metadata[display_id] = metadata
        now = asyncio.get_running_loop().time()
        self.sent.append(Sent(kind, display_id, dict(mime), size, now, tuple(self.shown)))

    # --- what can be asked of it ----------------------------------------------------------------------------------

    @property
    def outputs(self) -> list[Mime]:
        """What a front end shows now, top to bottom."""
        return list(self.shown.values())

    @property
    def html(self) -> str:
        return "\n".join(str(mime.get("text/html", "")) for mime in self.outputs)

    @property
    def visible(self) -> str:
        """The words on the page, without markup."""
        return re.sub(r"<[^>]+>", "", re.sub(r"<style>.*?</style>", "", self.html, flags=re.S))

    @property
    def plain(self) -> str:
        """The page where only text can be shown."""
        return "\n\n".join(text for mime in self.outputs if (text := str(mime.get("text/plain", ""))))

    @property
    def sent_bytes(self) -> int:
        return sum(sent.size for sent in self.sent)

    @property
    def saved_bytes(self) -> int:
        """What the notebook keeps on disk."""
        return sum(len(json.dumps(mime, ensure_ascii=False).encode()) for mime in self.outputs)

    def sent_to(self, display_id: str) -> list[Sent]:
        return [sent for sent in self.sent if sent.display_id == display_id]


class _NoWaiting(selectors.DefaultSelector):
    """Where a loop would wait for a timer, its clock jumps ahead instead."""

    hourglass: Hourglass | None = None

    def select(self, timeout: float | None = None) -> Any:
        if timeout is not None and timeout > 0 and self.hourglass is not None:
            self.hourglass.now += timeout
            timeout = 0
        return super().select(timeout)


class Hourglass(asyncio.SelectorEventLoop):
    """`await asyncio.sleep(5)` takes five seconds of its own time and none of ours. Not for child processes."""

    def __init__(self) -> None:
        self.now = 0.0
        selector = _NoWaiting()
        super().__init__(selector)
        selector.hourglass = self

    def time(self) -> float:
        return self.now


def run_by_hourglass(work: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=Hourglass) as runner:
        return runner.run(work)
