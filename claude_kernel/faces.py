"""What the kernel and the magic share towards ipykernel: outputs, clicks while a cell runs, the stop button.

`_main_asyncio_lock`, `dispatch_shell` and `_publish_status` are not public: ipykernel is pinned below 8, and the tests
would show a change.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from claude_kernel.conversation import Conversation

COMM_MESSAGES = frozenset({"comm_open", "comm_msg", "comm_close"})


class KernelPaper:
    """A cell's outputs, by way of the kernel's own display publisher and streams."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def show(self, mime: dict[str, Any], display_id: str, metadata: dict[str, Any]) -> None:
        self._publish(mime, display_id, metadata, update=False)

    def update(self, mime: dict[str, Any], display_id: str, metadata: dict[str, Any]) -> None:
        self._publish(mime, display_id, metadata, update=True)

    def write(self, text: str, *, error: bool = False) -> None:
        content = {"name": "stderr" if error else "stdout", "text": text}
        self._kernel.send_response(self._kernel.iopub_socket, "stream", content)

    def _publish(self, mime: dict[str, Any], display_id: str, metadata: dict[str, Any], *, update: bool) -> None:
        self._kernel.shell.display_pub.publish(
            data=mime, metadata=metadata, transient={"display_id": display_id}, update=update
        )


@contextlib.contextmanager
def interruptible(conversation: Conversation) -> Iterator[None]:
    """A SIGINT during a turn is the stop button: of the turn, and of Python code that Claude runs in this thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def stop(*_signal: object) -> None:
        loop.call_soon_threadsafe(lambda: asyncio.ensure_future(conversation.interrupt()))
        if conversation.tools is not None:
            conversation.tools.runner.stop()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def interrupt_from_thread(conversation: Conversation, loop: asyncio.AbstractEventLoop) -> None:
    """The same from another thread. Python code that runs keeps the loop from hearing anything but a signal."""
    runner = conversation.tools.runner if conversation.tools is not None else None
    if runner is not None:
        runner.start_no_more()
    if runner is not None and runner.running and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        loop.call_soon_threadsafe(lambda: asyncio.ensure_future(conversation.interrupt()))


# --- widgets answer while a cell runs -------------------------------------------------------------------------------


def peek_type(kernel: Any, msg: list[Any]) -> str:
    """Without the content: the message's signature is then not recorded, and it can be read again."""
    _, frames = kernel.session.feed_identities(msg, copy=False)
    return str(kernel.session.deserialize(frames, content=False, copy=False)["header"]["msg_type"])


def peek_content(kernel: Any, msg: list[Any]) -> dict[str, Any]:
    """Likewise, for what a message asks; it is checked when it is carried out."""
    _, frames = kernel.session.feed_identities(msg, copy=False)
    content = kernel.session.unpack(frames[4].bytes)
    return content if isinstance(content, dict) else {}


def dispatch_comm_now(kernel: Any, msg: list[Any]) -> None:
    """ipykernel 7.4 handles comm messages during a cell, but says neither busy nor idle for them, and ipywidgets
    then holds back every second state change: a text box would deliver its first letter only."""
    idents, frames = kernel.session.feed_identities(msg, copy=False)
    message = kernel.session.deserialize(frames, content=True, copy=False)
    kernel._publish_status("busy", "shell", parent=message)
    handler: Callable[..., Any] = kernel.shell_handlers[message["header"]["msg_type"]]
    try:
        handler(kernel.shell_stream, idents, message)
    except Exception:
        kernel.log.exception("a comm message failed")
    kernel._publish_status("idle", "shell", parent=message)  # releases the widgets' throttle
    kernel._publish_status("busy", "shell")  # the cell still runs: keeps the indicator true


def mend_comms(kernel: Any) -> None:
    """For a stock kernel, once: its own dispatch is bound when it starts, what that calls is not."""
    if getattr(kernel, "_claude_mended", False):
        return
    kernel._claude_mended = True
    stock = kernel.dispatch_shell

    async def dispatch(msg: list[Any], /, subshell_id: str | None = None, *, concurrent: bool = False) -> None:
        if concurrent and subshell_id is None:
            dispatch_comm_now(kernel, msg)
        else:
            await stock(msg, subshell_id=subshell_id, concurrent=concurrent)

    kernel.dispatch_shell = dispatch
