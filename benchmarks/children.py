"""Where the measuring CLI is, how a session, a kernel or a client of another package starts it, and texts for it."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.kernels import Client, running_kernel, write_spec, write_stock_spec
from support.model_script import big_text
from support.texts import prose

PROGRAM = Path(__file__).with_name("child.py")
COMMAND = (sys.executable, "-I", str(PROGRAM))
PIECE = 25
"""Characters in a delta: 1 MB comes in 43,000."""
_STAMP = re.compile(r"(?:<<|&lt;&lt;)(\d{9,})(?:>>|&gt;&gt;)")


def write_launcher(folder: Path) -> Path:
    """The same program as one executable file, for whoever takes nothing else."""
    path = folder / "claude"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -I {PROGRAM} "$@"\n')
    path.chmod(0o755)
    return path


def write_prose(folder: Path, characters: int) -> Path:
    """As Claude writes: mostly paragraphs, now and then a list, a table or some code."""
    return _write(folder / f"prose-{characters}.md", prose, characters)


def write_dense(folder: Path, characters: int) -> Path:
    """The worst: every few lines a heading, a link, a table, code, a formula."""
    return _write(folder / f"dense-{characters}.md", big_text, characters)


def _write(path: Path, text: Callable[[int], str], characters: int) -> Path:
    if not path.exists():
        path.write_text(text(characters))
    return path


def streaming(path: Path, *, piece: int = PIECE, pause_ms: float = 0) -> str:
    return f"bench:text:{piece}:{pause_ms}:{path}"


def find_stamps(text: str) -> list[int]:
    return [int(found) for found in _STAMP.findall(text)]


def kernel_environment(folder: Path) -> dict[str, str]:
    """A home of its own: no setting of the person who measures counts."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "CLAUDE_KERNEL_BENCH")}
    return kept | {"HOME": str(home), "TMPDIR": str(folder), "CLAUDE_CODE_PATH": str(write_launcher(folder))}


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="claude-kernel-bench-") as folder:
        yield Path(folder)


@contextmanager
def claude_kernel(folder: Path, environment: dict[str, str] | None = None) -> Iterator[Client]:
    """Our kernel with the measuring CLI behind it."""
    spec = folder / "jupyter"
    if not (spec / "kernels" / "claude").exists():
        write_spec(spec)
    with running_kernel(spec, environment or kernel_environment(folder), folder) as client:
        yield client


@contextmanager
def stock_kernel(folder: Path) -> Iterator[Client]:
    spec = folder / "jupyter"
    if not (spec / "kernels" / "python3").exists():
        write_stock_spec(spec)
    with running_kernel(spec, kernel_environment(folder), folder, name="python3") as client:
        yield client
