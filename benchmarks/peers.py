"""Two published magics for Claude Code in a notebook, on the same CLI, used as their documentation says.

Against: jupyter-cc and claude-code-jupyter-staging, each in an environment of its own below .venv-peers. They take the
CLI that their claude-agent-sdk carries, so there that file is the measuring CLI. What they ask the CLI for is their
choice: without partial messages nothing of a text can be shown before it is whole.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.kernels import Client, running_kernel

from benchmarks.answers import size_of
from benchmarks.children import claude_kernel, kernel_environment, scratch, streaming, write_dense, write_launcher
from benchmarks.rows import Effort, Row, in_turn, ratio

ENVIRONMENTS = Path(__file__).parent.parent / ".venv-peers"
SHORT, LONG = 800, 200_000
PACE_MS = 25.0
"""For the short answer: 0.8 s for all of it, and the first piece of it at once."""
FIRST_WORDS = "what the numbers say"
APART_SECONDS = 0.4
"""One of them takes cells that come at once after one another for Run All, and refuses them."""
TURN_SECONDS = 60.0


@dataclass(frozen=True)
class Peer:
    name: str
    extension: str
    oldest_python: tuple[int, int]


PEERS = (Peer("jupyter-cc", "jupyter_cc", (3, 13)), Peer("claude-code-jupyter-staging", "cc_jupyter", (3, 11)))


@dataclass(frozen=True)
class Seen:
    first_seconds: float
    size: int


def measure_peers(effort: Effort) -> Iterator[Row]:
    for peer in PEERS:
        python = install(peer)
        with scratch() as folder:
            write_peer_spec(folder / "jupyter" / "kernels" / "peer", python)
            theirs_folder, ours_folder = folder / "theirs", folder / "ours"
            theirs_folder.mkdir()
            ours_folder.mkdir()
            environment = kernel_environment(theirs_folder)
            with (
                running_kernel(folder / "jupyter", environment, theirs_folder, name="peer") as theirs,
                claude_kernel(ours_folder) as ours,
            ):
                theirs.run(f"%load_ext {peer.extension}")
                yield from _compare(f"{peer.name} {version_of(peer)}", ours, theirs, folder, effort)


def _compare(name: str, ours: Client, theirs: Client, folder: Path, effort: Effort) -> Iterator[Row]:
    short = streaming(write_dense(folder, SHORT), pause_ms=PACE_MS)
    _ask(theirs, f"%cc {short}")  # both are warm
    _ask(ours, short)
    first = in_turn(
        effort.rounds(3),
        lambda: _ask(ours, short).first_seconds,
        lambda: _ask(theirs, f"%cc {short}").first_seconds,
    )
    details = {"seconds": {"ours": first[0], name: first[1]}}
    what = "Prompt to the first visible text, 0.8 KB in 0.8 s"
    yield Row(what, name, ratio(first[0], first[1]), "×", None, details=details)
    for characters, size in ((SHORT, "0.8 KB"), (LONG, "200 KB")):
        prompt = short if characters == SHORT else streaming(write_dense(folder, characters))
        our, their = _ask(ours, prompt), _ask(theirs, f"%cc {prompt}")
        sizes = {"bytes": {"ours": our.size, name: their.size}}
        what = f"Bytes to the front end, {size}"
        yield Row(what, name, our.size / their.size, "×", None, details=sizes)


def _ask(client: Client, code: str) -> Seen:
    """Until the first words are in any message, and until the cell's end."""
    time.sleep(APART_SECONDS)
    began = time.perf_counter()
    first: float | None = None
    size = 0
    for message in client.follow(client.send(code), TURN_SECONDS):
        size += size_of(message)
        if first is None and FIRST_WORDS in json.dumps(message["content"], default=str):
            first = time.perf_counter() - began
    client.kernel.get_shell_msg(timeout=TURN_SECONDS)
    if first is None:
        raise RuntimeError(f"the answer to {code.split(':')[0]} was never shown")
    return Seen(first, size)


# --- their environments ---------------------------------------------------------------------------------------------


def install(peer: Peer) -> Path:
    """Its interpreter; made once, with what the package index holds then."""
    home = ENVIRONMENTS / peer.name
    python = home / "bin" / "python"
    if not (home / ".installed").exists():
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([find_python(peer.oldest_python), "-m", "venv", str(home)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, peer.name, "ipykernel"], check=True)
        (home / ".installed").touch()
    for bundled in home.glob("lib/*/site-packages/claude_agent_sdk/_bundled"):
        (bundled / "claude").unlink(missing_ok=True)
        write_launcher(bundled)
    return python


def version_of(peer: Peer) -> str:
    name = peer.name.replace("-", "_")
    (described,) = (ENVIRONMENTS / peer.name).glob(f"lib/*/site-packages/{name}-*.dist-info")
    return described.name.removeprefix(f"{name}-").removesuffix(".dist-info")


def find_python(oldest: tuple[int, int]) -> str:
    """Ours where it is new enough, else the newest on the PATH or in pyenv's folder."""
    if sys.version_info >= oldest:
        return sys.executable
    for minor in range(oldest[1] + 2, oldest[1] - 1, -1):
        beside = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/3.{minor}.*/bin/python")
        for candidate in (shutil.which(f"python3.{minor}"), *map(str, beside)):
            if candidate and subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
                return candidate
    raise RuntimeError(f"needs Python {oldest[0]}.{oldest[1]}, and there is none")


def write_peer_spec(folder: Path, python: Path) -> None:
    folder.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Peer", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))
