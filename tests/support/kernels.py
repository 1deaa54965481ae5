"""A running Claude kernel and a plain client, as `jupyter_client` makes them. It knows no browser."""

from __future__ import annotations

import json
import os
import queue
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

SPEC = Path(__file__).parent.parent.parent / "kernelspec"
SECONDS = 30.0


def write_spec(folder: Path) -> Path:
    """The project's own kernelspec, run by the interpreter of the tests; returns what to put on JUPYTER_PATH."""
    target = folder / "kernels" / "claude"
    target.mkdir(parents=True)
    spec = json.loads((SPEC / "kernel.json").read_text())
    spec["argv"][0] = sys.executable
    (target / "kernel.json").write_text(json.dumps(spec))
    return folder


def write_stock_spec(folder: Path) -> Path:
    """A Python kernel as everybody has it."""
    target = folder / "kernels" / "python3"
    target.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (target / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
    return folder


@dataclass
class Ran:
    """Everything that one execute request brought."""

    reply: dict[str, Any]
    messages: list[dict[str, Any]] = field(default_factory=list)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [message["content"] for message in self.messages if message["msg_type"] == kind]

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """The mime bundles that a notebook holds afterwards, from top to bottom."""
        shown: dict[str, dict[str, Any]] = {}
        for message in self.messages:
            if message["msg_type"] in ("display_data", "update_display_data"):
                display_id = message["content"]["transient"]["display_id"]
                if message["msg_type"] == "display_data" or display_id in shown:
                    shown[display_id] = message["content"]["data"]
        return list(shown.values())

    @property
    def text(self) -> str:
        return "\n".join(str(data.get("text/plain", "")) for data in self.outputs)

    @property
    def html(self) -> str:
        return "\n".join(str(data.get("text/html", "")) for data in self.outputs)

    @property
    def stream(self) -> str:
        return "".join(content["text"] for content in self.of("stream"))


class Client:
    def __init__(self, manager: KernelManager) -> None:
        self.manager = manager
        self.kernel = manager.client()
        self.kernel.start_channels()
        self.kernel.wait_for_ready(timeout=SECONDS)

    @property
    def pid(self) -> int:
        return int(self.manager.provisioner.pid)

    def send(
        self, code: str, *, cell_id: str | None = "", metadata: dict[str, Any] | None = None, **content: Any
    ) -> str:
        """An execute request, as JupyterLab makes it unless told otherwise; returns its id. Each is a cell of its own
        unless one is named; a console's is none."""
        cell_id = uuid4().hex if cell_id == "" else cell_id
        asked = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        } | content
        given = ({"cellId": cell_id} if cell_id else {}) | (metadata or {})
        message = self.kernel.session.msg("execute_request", asked, metadata=given)
        self.kernel.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def wait(self, message_id: str, seconds: float = SECONDS) -> Ran:
        ran = Ran({})
        for message in self.follow(message_id, seconds):
            ran.messages.append(message)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            reply = self.kernel.get_shell_msg(timeout=seconds)
            if reply["parent_header"].get("msg_id") == message_id:
                ran.reply = reply["content"]
                return ran
        raise TimeoutError("no execute_reply")

    def follow(self, message_id: str, seconds: float = SECONDS) -> Iterator[dict[str, Any]]:
        """The iopub messages of one request, up to its idle."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                message = self.kernel.get_iopub_msg(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError("the kernel did not become idle") from None
            if message["parent_header"].get("msg_id") != message_id:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return
            yield message

    def run(self, code: str, seconds: float = SECONDS, **how: Any) -> Ran:
        return self.wait(self.send(code, **how), seconds)

    def interrupt(self) -> None:
        self.manager.interrupt_kernel()

    def close(self) -> None:
        self.kernel.stop_channels()


@contextmanager
def running_kernel(
    spec_path: Path, environment: dict[str, str], folder: Path, name: str = "claude"
) -> Iterator[Client]:
    specs = KernelSpecManager(kernel_dirs=[str(spec_path / "kernels")], ensure_native_kernel=False)
    manager = KernelManager(kernel_name=name, kernel_spec_manager=specs)
    path = os.pathsep.join([str(Path(__file__).parent.parent.parent), environment.get("PYTHONPATH", "")])
    manager.start_kernel(env=environment | {"PYTHONPATH": path}, cwd=str(folder))
    try:
        client = Client(manager)
        try:
            yield client
        finally:
            client.close()
    finally:
        if manager.has_kernel:
            manager.shutdown_kernel(now=False)
