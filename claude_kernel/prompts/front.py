"""The front end behind a running cell: who it is, whether it takes typed input, and a line typed by the person.

`Kernel.raw_input` would block the event loop, and with it the conversation: the same messages are sent here and the
socket is looked at now and then instead, so that the wait can be cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Protocol

import zmq

log = logging.getLogger("claude_kernel.prompts")

POLL_SECONDS = 0.05


class FrontEnd(Protocol):
    def client(self) -> str:
        """The client session that runs the cell; what one can do says nothing of another."""

    def takes_input(self) -> bool: ...

    async def ask_line(self, prompt: str) -> str: ...


class KernelFront:
    """Any ipykernel: ours, or the one that a magic runs in. To be used in the task of the running cell."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def client(self) -> str:
        return str(self._kernel.get_parent("shell").get("header", {}).get("session", ""))

    def takes_input(self) -> bool:
        return bool(self._kernel.get_parent("shell").get("content", {}).get("allow_stdin", False))

    async def ask_line(self, prompt: str) -> str:
        """One question at a time: whoever calls this keeps a queue."""
        kernel = self._kernel
        ident = kernel._parent_ident["shell"]
        while self._receive() != (None, None):  # what was typed for an earlier question
            log.warning("dropped input that nobody had asked for")
        content = {"prompt": prompt, "password": False}
        sent = kernel.session.send(
            kernel.stdin_socket, "input_request", content, kernel.get_parent("shell"), ident=ident
        )
        while True:
            senders, reply = self._receive()
            if reply is not None and self._is_ours(reply, senders, sent, ident):
                return str(reply["content"].get("value", ""))
            if reply is None:
                await asyncio.sleep(POLL_SECONDS)

    def _receive(self) -> tuple[Any, Any]:
        if not self._kernel.stdin_socket.poll(0):
            return None, None
        try:
            senders, reply = self._kernel.session.recv(self._kernel.stdin_socket, mode=zmq.NOBLOCK)
        except ValueError:  # not signed, or signed twice
            log.warning("dropped input that could not be read", exc_info=True)
            return (), {}
        return senders, reply

    @staticmethod
    def _is_ours(reply: dict[str, Any], senders: Any, sent: dict[str, Any], ident: Any) -> bool:
        """A front end that says which request it answers must mean this one; many do not say."""
        asked = reply.get("parent_header", {}).get("msg_id", sent["header"]["msg_id"])
        # the same client has another identity on each channel only in that the last part may be missing
        wanted = ident[0] if isinstance(ident, list | tuple) and ident else ident
        same = not senders or not wanted or senders[0] == wanted
        fits = reply.get("msg_type") == "input_reply" and isinstance(reply.get("content"), dict)
        if not fits or not same or asked != sent["header"]["msg_id"]:
            log.warning("dropped input that answers something else")
            return False
        return True
