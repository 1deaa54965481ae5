"""The kernelspecs that this package brings, and where Jupyter keeps them. It changes nothing but what it is told to.

What `install` writes carries a mark, so that `uninstall` removes that and nothing else: neither the files of the
package itself, which pip owns, nor a kernel of the same name that somebody else put there.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

from claude_kernel.errors import EnvironmentTrouble

CLAUDE, DEMO = "claude", "claude-demo"
_MARK = "claude_kernel"
_IN_CHECKOUT = {CLAUDE: "kernelspec", DEMO: "kernelspec/demo"}


class Place(NamedTuple):
    """A kernel's name and the folder that holds its spec, or would hold it."""

    name: str
    folder: Path
    prefix: str | None = None
    """`None` is the person's own Jupyter folder."""

    def read(self) -> dict[str, Any] | None:
        try:
            spec = json.loads((self.folder / "kernel.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return spec if isinstance(spec, dict) else None

    @property
    def taken(self) -> bool:
        return self.folder.exists()

    @property
    def marked(self) -> bool:
        """`install` put it there."""
        metadata = (self.read() or {}).get("metadata")
        return isinstance(metadata, dict) and _MARK in metadata

    @property
    def ours(self) -> bool:
        """It starts this package, whoever put it there."""
        argv = (self.read() or {}).get("argv")
        return isinstance(argv, list) and argv[1:3] == ["-m", "claude_kernel"]

    @property
    def of_package(self) -> bool:
        """Installing the package put it there."""
        return not self.marked and any(self.folder.resolve() == folder for folder in _package_folders(self.name))


def add_place_arguments(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="for your own account, whichever Jupyter it runs (default)")
    where.add_argument("--sys-prefix", action="store_true", help="in this Python environment")
    where.add_argument("--prefix", metavar="DIR", help="in DIR/share/jupyter/kernels")
    parser.add_argument(
        "--demo", action=argparse.BooleanOptionalAction, default=True, help="the offline demo kernel as well"
    )


def chosen_places(arguments: argparse.Namespace) -> list[Place]:
    from jupyter_core.paths import jupyter_data_dir

    prefix = sys.prefix if arguments.sys_prefix else arguments.prefix
    data = Path(prefix, "share", "jupyter") if prefix else Path(jupyter_data_dir())
    names = [CLAUDE, DEMO] if arguments.demo else [CLAUDE]
    return [Place(name, (data / "kernels" / name).absolute(), prefix) for name in names]


def put_spec(place: Place) -> None:
    """Raises `EnvironmentTrouble` where it cannot be written or where the package lacks its own spec."""
    from jupyter_client.kernelspec import KernelSpecManager

    source = _find_source(place.name)
    with tempfile.TemporaryDirectory(prefix="claude-kernel-") as staged:
        for file in source.iterdir():
            if file.is_file():
                shutil.copyfile(file, Path(staged, file.name))
        spec = json.loads((source / "kernel.json").read_text("utf-8"))
        # Whichever Jupyter reads this, the kernel runs with the Python that has this package.
        spec["argv"][0] = sys.executable
        spec["metadata"] = {**spec.get("metadata", {}), _MARK: {"registered_by": "claude-kernel install"}}
        Path(staged, "kernel.json").write_text(json.dumps(spec, indent=2) + "\n", "utf-8")
        Path(staged).chmod(0o755)  # the copy takes the folder's mode, and a temporary folder is closed to others
        try:
            KernelSpecManager().install_kernel_spec(staged, place.name, user=place.prefix is None, prefix=place.prefix)
        except OSError as error:
            raise EnvironmentTrouble(f"{place.folder} cannot be written: {error.strerror or error}") from error


def remove_spec(place: Place) -> None:
    try:
        shutil.rmtree(place.folder)
    except OSError as error:
        raise EnvironmentTrouble(f"{place.folder} cannot be removed: {error.strerror or error}") from error


def _find_source(name: str) -> Path:
    for folder in (*_package_folders(name), _checkout() / _IN_CHECKOUT[name]):
        if (folder / "kernel.json").is_file():
            return folder
    raise EnvironmentTrouble(
        f"The files of the kernel {name} are missing from this installation. "
        "Install the package anew: `pip install --force-reinstall --no-deps claude-kernel`."
    )


def _checkout() -> Path:
    return Path(__file__).resolve().parents[2]


def _package_folders(name: str) -> list[Path]:
    """Where pip has put the spec, by its own record: it differs between environments, accounts and systems."""
    try:
        files = distribution("claude-kernel").files or []
    except PackageNotFoundError:
        return []
    return [
        Path(str(file.locate())).resolve().parent
        for file in files
        if file.parts[-3:] == ("kernels", name, "kernel.json")
    ]
