"""How long it takes until something can begin: the import, the kernel, the first word of the first answer.

Against: a Python that imports json; ipykernel itself; the bare CLI.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from support.kernels import running_kernel, write_spec, write_stock_spec
from support.messages_api import MessagesApi
from support.real_cli import cli_environment, cli_path

from benchmarks.children import kernel_environment, scratch
from benchmarks.rows import Effort, Row, in_turn, ratio

ROOT = Path(__file__).parent.parent
ANSWER = "Hello, this is the first answer of all."


def measure_import(effort: Effort) -> Iterator[Row]:
    def start(module: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {module}"], cwd=ROOT, check=True)
        return 1000 * (time.perf_counter() - began)

    ours, base = in_turn(effort.rounds(30), lambda: start("claude_kernel"), lambda: start("json"))
    more = statistics.median(our - their for our, their in zip(ours, base, strict=True))
    details = {"milliseconds": {"import claude_kernel": ours, "import json": base}}
    yield Row("Time that `import claude_kernel` adds", "`import json`", more, "ms", 30, details=details)


def measure_kernel_start(effort: Effort) -> Iterator[Row]:
    with scratch() as folder:
        write_spec(folder / "jupyter")
        write_stock_spec(folder / "jupyter")
        environment = kernel_environment(folder)
        ours, stock = in_turn(
            effort.rounds(12),
            lambda: _start_kernel("claude", folder, environment),
            lambda: _start_kernel("python3", folder, environment),
        )
    details = {"seconds": {"ours": ours, "stock ipykernel": stock}}
    yield Row("Kernel start to its first reply", "stock ipykernel", ratio(ours, stock), "×", 1.2, details=details)


def _start_kernel(name: str, folder: Path, environment: dict[str, str]) -> float:
    specs = KernelSpecManager(kernel_dirs=[str(folder / "jupyter" / "kernels")], ensure_native_kernel=False)
    manager = KernelManager(kernel_name=name, kernel_spec_manager=specs)
    began = time.perf_counter()
    manager.start_kernel(env=environment | {"PYTHONPATH": str(ROOT)}, cwd=str(folder))
    try:
        client = manager.client()
        client.start_channels(stdin=False, hb=False, control=False)
        client.kernel_info()
        client.get_shell_msg(timeout=60)
        seconds = time.perf_counter() - began
        client.stop_channels()
        return seconds
    finally:
        manager.shutdown_kernel(now=True)


def measure_first_prompt(effort: Effort) -> Iterator[Row]:
    """The real CLI, its API on loopback. The bare CLI is prompted as soon as its process exists."""
    with scratch() as folder, MessagesApi() as api:
        home = folder / "home"
        environment = cli_environment(home, api.url)
        project = home / "project"
        project.mkdir()
        write_spec(folder / "jupyter")

        def in_a_kernel(read_seconds: float) -> float:
            kernel = environment | {"CLAUDE_CODE_PATH": str(cli_path())}
            with running_kernel(folder / "jupyter", kernel, project) as client:
                time.sleep(read_seconds)
                began = time.perf_counter()
                message_id = client.send(f"say:{ANSWER}")
                first = 0.0
                for message in client.follow(message_id):
                    html = str(message["content"].get("data", {}).get("text/html", ""))
                    if not first and ANSWER[:5] in html:
                        first = time.perf_counter() - began
                return first

        _bare_cli(environment, project)  # the very first run in a home is another matter
        at_once, later, bare = in_turn(
            effort.rounds(9),
            lambda: in_a_kernel(0.0),
            lambda: in_a_kernel(1.0),
            lambda: _bare_cli(environment, project),
        )
    details = {"seconds": {"at once": at_once, "after 1 s": later, "bare CLI": bare}}
    what = "First prompt to the first word, sent"
    yield Row(f"{what} when the kernel is up", "the bare CLI", ratio(at_once, bare), "×", 1.0, details=details)
    yield Row(f"{what} 1 s later", "the bare CLI", ratio(later, bare), "×", None, details=details)


def _bare_cli(environment: dict[str, str], project: Path) -> float:
    stream = ["--input-format", "stream-json", "--output-format", "stream-json"]
    command = [str(cli_path()), "-p", *stream, "--verbose", "--include-partial-messages"]
    began = time.perf_counter()
    with subprocess.Popen(
        command, cwd=project, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        row = {"type": "user", "message": {"role": "user", "content": f"say:{ANSWER}"}, "parent_tool_use_id": None}
        process.stdin.write(json.dumps(row | {"session_id": ""}).encode() + b"\n")
        try:
            for line in process.stdout:
                if b'"text_delta"' in line:
                    return time.perf_counter() - began
        finally:
            process.kill()
    raise RuntimeError("the bare CLI said nothing")
