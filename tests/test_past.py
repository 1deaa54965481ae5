"""Which conversation a notebook held: by its journal, else by what its file says, which a stranger may have written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from claude_kernel.journal import Back, Journal, Turn, Went
from claude_kernel.past import Where, find_notebook, find_past, find_session, is_another, read_session

MINE = "0b8a5d5e-1f2c-4a57-9d31-52f1f4a4b9a7"
OTHER = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    folder = tmp_path / "work"
    folder.mkdir()
    transcript(tmp_path, folder, MINE)
    transcript(tmp_path, tmp_path / "elsewhere", OTHER)
    return folder


def transcript(home: Path, folder: Path, session_id: str) -> None:
    kept = home / "config" / "projects" / ("".join(c if c.isalnum() else "-" for c in str(folder)))
    kept.mkdir(parents=True, exist_ok=True)
    row = {"type": "user", "cwd": str(folder), "message": {"role": "user", "content": "walnut"}}
    (kept / f"{session_id}.jsonl").write_text(json.dumps(row) + "\n")


def notebook(folder: Path, *told: Any) -> Path:
    """Each is what one cell's output carries."""
    cells = [{"outputs": [{"metadata": {"claude": each}}]} for each in told]
    path = folder / "nb.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    return path


def test_the_last_answered_cell_names_the_conversation(folder: Path) -> None:
    path = notebook(folder, {"session_id": OTHER}, {"session_id": MINE}, {"model": "opus"})
    assert read_session(path) == MINE
    past = find_past(Journal(None), path, folder, demo=False)
    assert past is not None
    assert (past.where, past.copied, past.first_prompt) == (Where.HERE, True, "walnut")


HOSTILE: list[Any] = [
    "--dangerously-skip-permissions",
    "-p",
    "../../../etc/passwd",
    "/etc/passwd",
    "a\nb-c-d",
    "x" * 1_000_000,
    "*",
    "????????-????-????-????-????????????",
    7,
    None,
    True,
    ["0b8a5d5e"],
    {"session_id": MINE},
    "‮0b8a5d5e",
    "",
]


@pytest.mark.parametrize("told", HOSTILE, ids=lambda told: repr(told)[:30])
def test_a_hostile_notebook_names_nothing(folder: Path, told: Any) -> None:
    more = {"mode": "bypassPermissions", "permissions": {"allow": ["Bash"]}, "resume_at": "x", "cli": "/bin/sh"}
    path = notebook(folder, {"session_id": told, **more})
    assert read_session(path) == ""
    assert find_past(Journal(None), path, folder, demo=False) is None
    assert find_session(told, folder, demo=False) is Where.GONE


STRANGE = [
    b"",
    b"\xff\xfe",
    b"[]",
    b"{}",
    b'{"cells": 7}',
    b'{"cells": [7]}',
    b'{"cells": [{"outputs": 7}]}',
    b'{"cells": [{"outputs": [{"metadata": []}]}]}',
    b'{"cells": [{"outputs": [{"metadata": {"claude": [1]}}]}]}',
    b'{"cells": ' + b"[" * 200_000,
]


@pytest.mark.parametrize("content", STRANGE, ids=lambda content: repr(content)[:40])
def test_a_file_that_is_no_notebook_names_nothing(folder: Path, content: bytes) -> None:
    (folder / "nb.ipynb").write_bytes(content)
    assert read_session(folder / "nb.ipynb") == ""
    assert read_session(folder / "missing.ipynb") == ""


def test_a_conversation_of_another_folder_or_machine_is_known_as_that(folder: Path) -> None:
    for session_id, where in ((OTHER, Where.ELSEWHERE), (MINE[::-1], Where.GONE)):
        past = find_past(Journal(None), notebook(folder, {"session_id": session_id}), folder, demo=False)
        assert past is not None
        assert past.where is where


def test_the_journal_comes_before_the_file_and_is_not_a_copy(folder: Path) -> None:
    journal = Journal(None)
    journal.add(Turn(prompt_id="a", prompt="say a", session_id=MINE, place="at-a", cost_usd=0.5))
    past = find_past(journal, notebook(folder, {"session_id": OTHER}), folder, demo=False)
    assert past is not None
    assert (past.session_id, past.where, past.copied, past.prompts) == (MINE, Where.HERE, False, 1)
    assert "1 prompt" in past.told()
    assert "$0.50" in past.told()
    assert "say a" in past.render().text
    journal.add(Went(session_id=OTHER))  # said to go on with another's, and nothing asked since
    past = find_past(journal, None, folder, demo=False)
    assert past is not None
    assert past.copied
    journal.add(Went())
    assert find_past(journal, notebook(folder, {"session_id": MINE}), folder, demo=False) is None


def test_where_it_had_gone_back_to_is_where_it_goes_on(folder: Path) -> None:
    journal = Journal(None)
    journal.add(Turn(prompt_id="a", session_id=MINE, place="at-a"))
    journal.add(Turn(prompt_id="b", session_id=MINE, place="at-b", after="a"))
    journal.add(Back(turns=1))
    past = find_past(journal, None, folder, demo=False)
    assert past is not None
    assert past.place == "at-a"
    journal.add(Back(turns=0))
    assert find_past(journal, None, folder, demo=False) is None


def test_a_hostile_first_prompt_is_shown_as_text(folder: Path) -> None:
    journal = Journal(None)
    journal.add(Turn(prompt_id="a", prompt="<img src=x onerror=alert(1)>\n# big", session_id=MINE, place="p"))
    past = find_past(journal, None, folder, demo=False)
    assert past is not None
    assert "<img" not in past.render().html
    assert "\n# big" not in past.render().text


# --- which notebook -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", ["", "nb.ipynb", "/work/nb.txt", "/work/console-1"])
def test_what_is_no_notebooks_path_is_none(named: str) -> None:
    assert find_notebook({"JPY_SESSION_NAME": named}) is None
    assert find_notebook({}) is None


ASK = "from claude_kernel.past import find_notebook; print(find_notebook())"
NAMED = {"JPY_SESSION_NAME": "/work/nb.ipynb"}


def asked(argv: list[str], environ: dict[str, str]) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in NAMED}
    root = str(Path(__file__).parent.parent)
    done = subprocess.run(argv, env=clean | environ, capture_output=True, text=True, check=True, cwd=root)
    return done.stdout.strip()


def test_the_kernel_of_a_server_has_its_notebook_also_from_within_a_script_around_it() -> None:
    kernel = [sys.executable, "-c", ASK, "-f", "/tmp/kernel-1.json"]
    assert asked(kernel, NAMED) == "/work/nb.ipynb"
    around = f"import subprocess, sys; subprocess.run({kernel!r}, check=True)"
    assert asked([sys.executable, "-c", around, "-f", "/tmp/kernel-1.json"], NAMED) == "/work/nb.ipynb"


def test_a_kernel_started_from_within_a_notebook_does_not_take_that_notebooks_place() -> None:
    kernel = [sys.executable, "-c", ASK, "-f", "/tmp/kernel-2.json"]
    code = f"import subprocess; subprocess.run([{sys.executable!r}, '-c', {ASK!r}, '-f', '/tmp/kernel-' + '2.json'])"
    assert asked([sys.executable, "-c", code], NAMED) == "None"
    assert asked(kernel, NAMED) == "/work/nb.ipynb"


@pytest.mark.parametrize(
    ("cells", "written", "another"),
    [
        ([{"id": "x"}], 200, True),
        ([], 200, True),
        ([{"id": "x"}, {"id": "asked"}], 200, False),
        ([{"id": "x"}], 50, False),  # not saved since
        ([{"source": "old"}], 200, False),  # saved without ids
        ("no list", 200, False),
    ],
)
def test_a_new_notebook_at_the_path_of_another_is_known_by_its_cells(
    folder: Path, cells: Any, written: float, another: bool
) -> None:
    journal = Journal(folder / "journal.jsonl")
    journal.add(Turn(prompt_id="a", prompt="say a", session_id=MINE, cell="asked", at=100.0))
    path = folder / "Untitled.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    os.utime(path, (written, written))
    assert is_another(journal, path) is another
    assert not is_another(Journal(None), path)
    assert not is_another(journal, folder / "missing.ipynb")


def test_the_journal_of_the_notebook_that_was_there_before_is_put_aside(folder: Path) -> None:
    journal = Journal(folder / "journal.jsonl")
    journal.add(Turn(prompt_id="a", prompt="say a", session_id=MINE))
    fresh = journal.put_aside()
    assert (fresh.path, fresh.all, fresh.session_id) == (journal.path, {}, "")
    fresh.add(Turn(prompt_id="b", prompt="say b", session_id=OTHER))
    kept = sorted(tuple(Journal(path).all) for path in folder.glob("*.jsonl"))
    assert kept == [("a",), ("b",)]
    assert Journal(None).put_aside().path is None
