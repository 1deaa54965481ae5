"""Conversations of the demo after a restart: gone on with, forked, gone back in, and refused as by the real CLI."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from demo.conftest import Start
from support.talk import run, text, turn

from claude_kernel.cli import Options
from claude_kernel.demo.shelf import Conversation, NotKept, Shelf
from claude_kernel.session import Session

UNKNOWN = "00000000-0000-0000-0000-000000000000"
ASKED = "What did I say?"


def kept(config: Path) -> list[Path]:
    return sorted(config.glob("claude-kernel/demo/*"))


def test_a_conversation_goes_on_after_a_restart(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Session(Options(cli="demo", cwd=str(tmp_path))) as session:
            await turn(session, "hello there")
            session_id = session.session_id
        async with Session(Options(cli="demo", cwd=str(tmp_path), resume=session_id)) as session:
            assert "1. hello there" in text(await turn(session, ASKED))
            assert session.session_id == session_id

    run(scene())


def test_it_is_kept_in_the_configuration_folder_for_the_person_only(config: Path, tmp_path: Path, start: Start) -> None:
    run = start()
    run.say("hello")
    (path,) = kept(config)
    assert path.name == f"{run.session_id}.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_kept_where_nothing_was_said(config: Path, start: Start) -> None:
    run = start()
    run.ask("initialize")
    run.say("/help")
    run.say("/clear")
    assert run.finish()[0] == 0
    assert kept(config) == []


def test_a_configuration_folder_that_cannot_be_written_to_stops_nothing(start: Start, config: Path) -> None:
    (config / "claude-kernel").write_text("a file where a folder is needed")
    run = start(CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING="true")
    said = run.change("Write new.txt with `x`")
    assert "1. Write new.txt" in run.say(ASKED)
    assert run.ask("rewind_files", user_message_id=said, dry_run=True)["deletions"] == 1
    assert run.finish() == (0, "")


def test_a_conversation_of_another_folder_goes_on_too(start: Start, tmp_path: Path) -> None:
    first = start()
    first.say("hello")
    (tmp_path / "elsewhere").mkdir()
    assert "1. hello" in start(f"--resume={first.session_id}", folder=tmp_path / "elsewhere").say(ASKED)


def test_an_unknown_conversation_ends_as_in_the_real_cli(start: Start) -> None:
    recorded = Path(__file__).parent.parent / "transcripts" / "resume_unknown.jsonl"
    rows = [json.loads(line) for line in recorded.read_text().splitlines()]
    (real,) = [row["m"] for row in rows if row["dir"] == "<"]
    (said,) = [row["m"] for row in rows if row["dir"] == "!"]
    run = start(f"--resume={UNKNOWN}")
    assert run.finish() == (1, said + "\n")
    (ours,) = run.rows
    same = ("type", "subtype", "is_error", "errors", "session_id", "total_cost_usd", "num_turns", "modelUsage")
    assert {key: ours[key] for key in same} == {key: real[key] for key in same}


@pytest.mark.parametrize("name", ["../../notes", "notes", ""])
def test_what_is_no_id_names_no_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text("{}\n")
    conversation = Conversation(Shelf(tmp_path / "a" / "b"), tmp_path, name, checkpointing=False)
    with pytest.raises(NotKept, match="is not a UUID"):
        conversation.take_up(name)
    conversation.say("hello", UNKNOWN)
    assert [path.name for path in tmp_path.rglob("*")] == ["notes.jsonl"]


def test_a_fork_leaves_the_original_as_it_was(start: Start, config: Path) -> None:
    first = start()
    first.say("hello")
    (path,) = kept(config)
    before = path.read_bytes()
    fork = start(f"--resume={first.session_id}", "--fork-session")
    assert "1. hello" in fork.say(ASKED)
    assert fork.session_id != first.session_id
    assert path.read_bytes() == before
    assert "2. What did I say?" in start(f"--resume={fork.session_id}").say(ASKED)


def test_going_back_forgets_what_followed(start: Start) -> None:
    first = start()
    _, _, answers = first.prompt("hello")
    first.say("Think about it")
    back = (f"--resume={first.session_id}", f"--resume-session-at={answers[-1]}", "--fork-session")
    for _ in range(2):  # the original can be gone back in again
        fork = start(*back)
        said = fork.say(ASKED)
        assert "1. hello" in said
        assert "Think" not in said
    once_more = start(f"--resume={fork.session_id}", f"--resume-session-at={answers[-1]}", "--fork-session")
    assert "2." not in once_more.say(ASKED)
    assert "2. Think" in start(f"--resume={first.session_id}").say(ASKED)


def test_going_back_in_place_drops_the_branch(start: Start) -> None:
    first = start()
    _, _, answers = first.prompt("hello")
    _, _, dropped = first.prompt("Think about it")
    resumed = f"--resume={first.session_id}"
    assert "Think" not in start(resumed, f"--resume-session-at={answers[-1]}").say(ASKED)
    assert "Think" not in start(resumed).say(ASKED)
    assert start(resumed, f"--resume-session-at={dropped[-1]}").finish()[0] == 1


def test_one_can_go_back_to_a_turn_that_was_stopped(start: Start, tmp_path: Path) -> None:
    first = start("--allowedTools=Bash")
    os.mkfifo(tmp_path / "started")
    first.begin("Run `echo > started; sleep 60`")
    (tmp_path / "started").read_text()
    before = len(first.rows)
    first.ask("interrupt")
    result, rows = first.end(before)
    assert result["terminal_reason"] == "aborted_tools"
    first.say("hello")
    fork = start(f"--resume={first.session_id}", f"--resume-session-at={rows[-1]}", "--fork-session")
    said = fork.say(ASKED)
    assert "1. Run `echo" in said
    assert "2." not in said


@pytest.mark.parametrize("uuid", [UNKNOWN, "not-a-uuid"])
def test_going_back_to_an_unknown_message_ends_as_in_the_real_cli(uuid: str, start: Start) -> None:
    first = start()
    first.say("hello")
    run = start(f"--resume={first.session_id}", f"--resume-session-at={uuid}", "--fork-session")
    problem = f"No message found with message.uuid of: {uuid}"
    assert run.finish() == (1, f"{problem}\n")
    (row,) = run.rows
    assert (row["type"], row["subtype"], row["errors"]) == ("result", "error_during_execution", [problem])
    assert row["session_id"] != first.session_id


def test_what_was_compacted_cannot_be_gone_back_to(start: Start) -> None:
    first = start()
    _, _, answers = first.prompt("hello")
    first.say("/compact")
    first.say("Think about it")
    resumed = f"--resume={first.session_id}"
    assert "1. (before: 1 prompts)\n2. Think" in start(resumed).say(ASKED)
    assert start(resumed, f"--resume-session-at={answers[-1]}", "--fork-session").finish()[0] == 1


def test_a_line_that_was_cut_off_is_passed_over(start: Start, config: Path) -> None:
    first = start()
    first.say("hello")
    first.finish()
    (path,) = kept(config)
    with path.open("a") as file:
        file.write('{"said": "cut\n[1]\n{"row": 3}\n')
    assert "1. hello" in start(f"--resume={first.session_id}").say(ASKED)


def test_an_image_alone_is_remembered_too(start: Start) -> None:
    run = start()
    source = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}
    run.prompt([{"type": "image", "source": source}])
    assert "1. (an image)" in run.say(ASKED)
