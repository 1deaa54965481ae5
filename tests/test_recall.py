"""`%claude export`, `rewind`, `resume` and `last`, where nothing needs the CLI."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from support.papers import CellPaper
from support.talk import faulty, run

from claude_kernel.conversation import Conversation
from claude_kernel.desk import Page
from claude_kernel.errors import UsageError
from claude_kernel.journal import Journal, Turn
from claude_kernel.protocol import events as ev
from claude_kernel.recording import pack
from claude_kernel.steering import steer


def said(tmp_path: Path, journal: Journal, line: str, cell: str = "") -> str:
    async def scene() -> str:
        talk = Conversation(faulty("junk", cwd=str(tmp_path)), journal=journal, notebook=tmp_path / "nb.ipynb")
        try:
            return await steer(talk, line, Page(CellPaper(), cell=cell))
        finally:
            await talk.close()

    return run(scene())


@pytest.fixture
def journal() -> Journal:
    journal = Journal(None)
    answer = msgspec.json.encode(pack([(0.0, ev.TextFinished(text="an answer"))]))
    journal.add(Turn(prompt_id="a", prompt="say walnut", cell="cell-a", outcome="finished", events=msgspec.Raw(answer)))
    return journal


def test_an_export_overwrites_nothing_and_its_two_files_belong_together(tmp_path: Path, journal: Journal) -> None:
    (tmp_path / "nb-conversation.json").write_text("mine")
    (tmp_path / "nb-conversation-2.md").symlink_to(tmp_path / "nowhere")
    assert "`nb-conversation-3.md`, `nb-conversation-3.json`" in said(tmp_path, journal, "export")
    assert (tmp_path / "nb-conversation.json").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()
    assert "an answer" in (tmp_path / "nb-conversation-3.md").read_text()
    assert json.loads((tmp_path / "nb-conversation-3.json").read_text())["turns"][0]["prompt"] == "say walnut"
    assert "`v1.2.md`, `v1.2.json` (1 prompt)" in said(tmp_path, journal, "export v1.2.md")


def test_an_export_that_cannot_be_written_says_so(tmp_path: Path, journal: Journal) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        said(tmp_path, journal, "export missing/name")
    with pytest.raises(UsageError, match="nothing to export"):
        said(tmp_path, Journal(None), "export")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("rewind", "was not run in this conversation"),
        ("rewind 2", "from 1 to 1"),
        ("rewind -1", "from 1 to 1"),
        ("rewind many", "from 1 to 1"),
        ("resume", "no earlier conversation"),
        ("resume ../../x", "not known here"),
        ("undo 9", "from 1 to 1"),
    ],
)
def test_what_cannot_be_is_answered_with_what_can(tmp_path: Path, journal: Journal, line: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        said(tmp_path, journal, line)
    assert [turn.prompt_id for turn in journal.turns] == ["a"]


@pytest.mark.parametrize("line", ["rewind", "rewind 1", "undo", "last"])
def test_where_nothing_was_said_there_is_nothing_to_take_back(tmp_path: Path, line: str) -> None:
    with pytest.raises(UsageError, match="nothing was said"):
        said(tmp_path, Journal(None), line)


def test_back_before_the_first_cell_is_a_new_conversation(tmp_path: Path, journal: Journal) -> None:
    assert "1 prompt from there on is" in said(tmp_path, journal, "rewind", "cell-a")
    assert journal.turns == []
    assert journal.went_back
