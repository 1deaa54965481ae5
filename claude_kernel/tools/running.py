"""`run_python`: code is run in the person's namespace as a cell is, shown as it happens, and told to Claude.

It asks nobody: whoever calls it has permission. It runs in the context of the running cell, so that outputs land there.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from claude_kernel.images import MOST_IMAGE_BYTES
from claude_kernel.protocol.events import Image
from claude_kernel.render.ansi import strip_ansi

MOST_CHARACTERS = 20_000
"""Of what was printed and shown; the middle is left out of more."""
MOST_IMAGES = 8
_IMAGE_TYPES = ("image/png", "image/jpeg")


class PythonRan(msgspec.Struct, frozen=True):
    text: str
    images: tuple[Image, ...] = ()
    failed: bool = False
    shown: bool = False
    """Whether the notebook has got an output by it."""


class PythonRunner:
    """Runs one piece of code at a time in a shell: ipykernel's, or IPython's in a terminal."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[Any] | None = None
        self._stopped = False

    def begin(self) -> None:
        """A new cell runs: what was stopped belongs to an earlier one."""
        self._stopped = False

    @property
    def running(self) -> bool:
        return self._task is not None

    async def run(self, code: str) -> PythonRan:
        async with self._turn:
            heard = _Heard()
            with heard.listening(self._shell):
                failed = await self._run(code)
            return heard.to_result(failed)

    def start_no_more(self) -> None:
        """Until the next cell begins. Code that Claude had already asked to run would keep the loop from hearing that
        it was stopped. Any thread may say so."""
        self._stopped = True

    def stop(self) -> None:
        """Ends the code that runs, if any: in the main thread, as by a signal, or on the loop. No more is started."""
        self.start_no_more()
        task = self._task
        if task is None:
            return
        if asyncio.current_task(task.get_loop()) is task:  # a signal has come between two of its instructions
            raise KeyboardInterrupt
        task.cancel()

    async def _run(self, code: str) -> bool:
        """Whether it failed. What it raised has been shown by then."""
        shell, wrong = self._shell, None
        try:
            transformed = shell.transform_cell(code)
        except Exception:
            transformed, wrong = code, sys.exc_info()
        running = shell.run_cell_async(code, transformed_cell=transformed, preprocessing_exc_tuple=wrong)
        self._task = asyncio.ensure_future(self._guarded(running))
        try:
            await asyncio.wait({self._task})
            result = None if self._task.cancelled() else self._task.result()
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        finally:
            self._task = None
            shell.events.trigger("post_execute")  # figures are shown by this
            sys.stdout.flush()
            sys.stderr.flush()
        return result is None or not result.success

    async def _guarded(self, running: Any) -> Any:
        """A KeyboardInterrupt that escaped from a task would end the loop, and with it the kernel."""
        if self._stopped:  # asked only now: from here on whoever stops it finds the task
            running.close()
            return None
        try:
            return await running
        except KeyboardInterrupt:
            print("KeyboardInterrupt", file=sys.stderr)  # noqa: T201 - it is the person's output
            return None


class _Heard:
    """A copy of what the code prints and shows, in order."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._images: list[Image] = []
        self._shown = False

    @contextlib.contextmanager
    def listening(self, shell: Any) -> Iterator[None]:
        hooked = [part for part in (shell.display_pub, shell.displayhook) if hasattr(part, "register_hook")]
        told = shell._showtraceback
        out, err = _Tee(sys.stdout, self._print), _Tee(sys.stderr, self._print)
        for part in hooked:
            part.register_hook(self._message)
        # As text: an error output would make nbclient and papermill fail a cell in which Claude goes on.
        shell._showtraceback = lambda _type, _value, lines: err.write("\n".join(lines) + "\n")
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                yield
        finally:
            shell._showtraceback = told
            for part in hooked:
                part.unregister_hook(self._message)

    def to_result(self, failed: bool) -> PythonRan:
        text = strip_ansi("".join(self._parts)).strip("\n")
        more = len(self._images) - MOST_IMAGES
        notes = [f"({more} more images are not sent.)"] if more > 0 else []
        if failed and not text:
            notes.append("It was interrupted.")
        said = "\n".join([_cut(text), *notes]).strip("\n") or (
            "Done; the images follow." if self._images else "Done; it printed nothing."
        )
        return PythonRan(said, tuple(self._images[:MOST_IMAGES]), failed, self._shown)

    def _print(self, text: str) -> None:
        self._shown = self._shown or bool(text)
        self._parts.append(text)

    def _message(self, message: dict[str, Any]) -> dict[str, Any]:
        data = message.get("content", {}).get("data") or {}
        self._shown = self._shown or bool(data)
        image = next((kind for kind in _IMAGE_TYPES if kind in data), None)
        if image is not None and (found := _image_in(image, data[image])) is not None:
            self._images.append(found)
        elif data.get("text/plain"):
            self._parts.append(f"{data['text/plain']}\n")
        return message


def _image_in(kind: str, data: Any) -> Image | None:
    encoded = base64.b64encode(data).decode() if isinstance(data, bytes) else str(data)
    return Image(kind, encoded.replace("\n", "")) if len(encoded) * 3 // 4 <= MOST_IMAGE_BYTES else None


def _cut(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    half = MOST_CHARACTERS // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


class _Tee(io.TextIOBase):
    """A stream that is listened to. Everything but writing is the stream's own."""

    def __init__(self, stream: Any, heard: Callable[[str], None]) -> None:
        self._stream = stream
        self._heard = heard

    def write(self, text: str) -> int:
        self._heard(text)
        return int(self._stream.write(text) or len(text))

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return bool(self._stream.isatty())

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
