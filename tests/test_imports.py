"""Imports point down only, and `import claude_kernel` costs next to nothing."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "claude_kernel"

# Each layer may import those before it, and itself. A new module needs a row: where does it stand?
LAYERS = [
    {"errors", "cells", "demo", "fill", "paper", "tables", "terminal", "trust", "typed", "wirelog"},
    {"kept", "protocol"},
    {"cli", "journal", "processes", "guard", "images", "render", "trouble"},
    {"desk", "transport", "past", "recording", "reply", "pieces", "prompts", "tools"},
    {"export", "link", "screen", "shown", "console", "underway"},
    {"serving", "inbox", "questions"},
    {"session"},
    {"chat", "memory"},
    {"conversation"},
    {"recall", "spending", "undoing"},
    {"steering"},
    {"completion", "faces", "settings"},
    {"kernel", "magic"},
    {"__main__", "commands"},
]
NARROW = {
    "render": {"errors", "protocol"},
    "prompts": {"errors", "protocol", "render", "trouble"},
    "pieces": {"render"},
    "screen": {"paper", "pieces", "protocol", "render"},
    "console": {"paper", "protocol", "render"},
    "cells": set(),
    "journal": {"trust"},
    "recording": {"protocol", "render"},
    "demo": set(),
    "trust": set(),
}
"""These know less than their height would let them: rendering is pure, asking and showing know no session."""

JUPYTER = {"ipykernel", "ipywidgets", "IPython", "jupyter_client", "traitlets", "zmq", "comm"}
FACES = {"commands", "kernel", "magic", "__main__", "prompts", "settings"}
"""All that know Jupyter. The others run wherever a loop does."""


def _imports(path: Path) -> set[str]:
    """The modules or packages directly under claude_kernel that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names]
                if node.module == "claude_kernel"
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("claude_kernel.")}
    return found - {"__version__"}


def _foreign_imports(path: Path) -> set[str]:
    """The top-level packages that a file imports, wherever in it."""
    tree = ast.parse(path.read_text())
    found = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    found |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    return {name.split(".")[0] for name in found}


def _part(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def test_every_module_imports_only_what_stands_below_it() -> None:
    height = {name: level for level, layer in enumerate(LAYERS) for name in layer}
    for path in PACKAGE.rglob("*.py"):
        part = _part(path)
        if part == "__init__":
            continue
        for imported in _imports(path):
            if part in NARROW:
                assert imported == part or imported in NARROW[part], f"{path} imports {imported}"
            assert part in height, f"{part} has no place in the layers"
            same = imported == part
            assert same or height[imported] <= height[part], f"{path} imports {imported}, which stands above it"


def test_the_protocol_does_no_io() -> None:
    forbidden = {"asyncio", "subprocess", "socket", "threading", "time", "os", "logging", "ipykernel", "IPython"}
    for path in (PACKAGE / "protocol").glob("*.py"):
        imported = _foreign_imports(path)
        assert not imported & forbidden, f"{path.name} imports {imported & forbidden}"


def test_only_the_faces_know_jupyter() -> None:
    knowing = {_part(path) for path in PACKAGE.rglob("*.py") if _foreign_imports(path) & JUPYTER}
    assert knowing == FACES


def _loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_but_the_standard_library() -> None:
    added = {name.split(".")[0] for name in _loaded_by("import claude_kernel") - _loaded_by("pass")}
    assert added - set(sys.stdlib_module_names) == {"claude_kernel"}
    assert not added & {"asyncio", "subprocess", "json", "logging"}


def test_the_engine_pulls_in_neither_widgets_nor_ipython_nor_the_sdk() -> None:
    loaded = _loaded_by("import claude_kernel; claude_kernel.Session; claude_kernel.Claude")
    for heavy in (
        "ipywidgets",
        "IPython",
        "ipykernel",
        "claude_agent_sdk",
        "jupyter_client",
        "markdown_it",
        "pygments",
    ):
        assert heavy not in loaded
