"""Kernelspecs put where Jupyter looks, and taken away again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from commands.keyboard import Typed
from jupyter_client.kernelspec import KernelSpecManager

from claude_kernel.commands.specs import Place

KERNELSPEC = Path(__file__).parent.parent.parent / "kernelspec"


def read(folder: Path) -> dict[str, object]:
    spec: dict[str, object] = json.loads((folder / "kernel.json").read_text())
    return spec


def test_both_kernels_are_registered_for_this_very_python(typed: Typed, home: Path) -> None:
    said = typed("install")
    kernels = home / "jupyter_data_dir" / "kernels"
    assert said.code == 0
    assert said.out.splitlines() == [
        f"claude was registered: {kernels / 'claude'}",
        f"claude-demo was registered: {kernels / 'claude-demo'}",
    ]
    for name, source in (("claude", KERNELSPEC), ("claude-demo", KERNELSPEC / "demo")):
        spec, original = read(kernels / name), read(source)
        assert spec["argv"] == [sys.executable, "-m", "claude_kernel", "-f", "{connection_file}"]
        assert {key: spec.get(key) for key in original if key not in ("argv", "metadata")} == {
            key: value for key, value in original.items() if key not in ("argv", "metadata")
        }
        assert {file.name for file in (kernels / name).iterdir()} == {"kernel.json", "logo-svg.svg"}
        assert (kernels / name).stat().st_mode & 0o777 == 0o755
    found = KernelSpecManager(kernel_dirs=[str(kernels)]).get_kernel_spec("claude")
    assert (found.resource_dir, found.argv[0]) == (str(kernels / "claude"), sys.executable)


def test_it_can_be_repeated_and_undone_and_undone_again(typed: Typed, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    assert "claude was registered: " in typed("install", "--prefix", str(prefix)).out
    again = typed("install", "--prefix", str(prefix))
    assert (again.code, again.out.count("was registered anew")) == (0, 2)
    gone = typed("uninstall", "--prefix", str(prefix))
    assert (gone.code, gone.out.count("was removed")) == (0, 2)
    assert list((prefix / "share/jupyter/kernels").iterdir()) == []
    nothing = typed("uninstall", "--prefix", str(prefix))
    assert (nothing.code, nothing.out.count("is not registered")) == (0, 2)


def test_the_demo_can_be_left_out(typed: Typed, tmp_path: Path) -> None:
    typed("install", "--no-demo", "--prefix", str(tmp_path / "p"))
    assert [one.name for one in (tmp_path / "p/share/jupyter/kernels").iterdir()] == ["claude"]


def test_what_pip_installed_is_left_to_pip(typed: Typed) -> None:
    before = read(Path(sys.prefix, "share/jupyter/kernels/claude"))
    installed = typed("install", "--sys-prefix", "--no-demo")
    assert (installed.code, "as part of the package" in installed.out) == (0, True)
    removed = typed("uninstall", "--sys-prefix", "--no-demo")
    assert (removed.code, "pip uninstall claude-kernel" in removed.out) == (0, True)
    assert read(Path(sys.prefix, "share/jupyter/kernels/claude")) == before


@pytest.mark.parametrize("argv", [["other", "-f", "x"], None])
def test_somebody_elses_kernel_of_that_name_is_never_touched(typed: Typed, tmp_path: Path, argv: object) -> None:
    theirs = tmp_path / "p/share/jupyter/kernels/claude"
    theirs.mkdir(parents=True)
    (theirs / "kernel.json").write_text(json.dumps({"argv": argv}) if argv else "not json")
    before = (theirs / "kernel.json").read_text()
    said = typed("install", "--no-demo", "--prefix", str(tmp_path / "p"))
    assert said.code == 1
    assert "another kernel is called claude" in said.err
    assert "did not put it there" in typed("uninstall", "--no-demo", "--prefix", str(tmp_path / "p")).out
    assert (theirs / "kernel.json").read_text() == before


def test_a_spec_of_ours_that_another_tool_registered_is_replaced_but_not_removed(typed: Typed, tmp_path: Path) -> None:
    place = tmp_path / "p/share/jupyter/kernels/claude"
    place.mkdir(parents=True)
    (place / "kernel.json").write_text((KERNELSPEC / "kernel.json").read_text())
    assert "did not put it there" in typed("uninstall", "--no-demo", "--prefix", str(tmp_path / "p")).out
    assert "registered anew" in typed("install", "--no-demo", "--prefix", str(tmp_path / "p")).out
    assert Place("claude", place).marked


def test_a_folder_that_cannot_be_written_is_named(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = typed("install", "--prefix", str(tmp_path / "file"))
    assert said.code == 1
    assert f"{tmp_path / 'file' / 'share/jupyter/kernels/claude'} cannot be written" in said.err
