"""Undoing the files that the demo changed: what comes back, what stays, and answers like the real CLI's (2.1.326)."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest
from demo.conftest import Json, Run, Start
from support.messages_api import MessagesApi
from support.recorder import Scene
from support.talk import run

from claude_kernel.demo.cli import Demo
from claude_kernel.demo.rules import Rules
from claude_kernel.demo.shelf import Conversation, Shelf
from claude_kernel.demo.turn import Turn
from claude_kernel.demo.wire import Wire

ON = {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "true"}
NO_CHECKPOINT = "No file checkpoint found for this message."
NOT_ENABLED = "File rewinding is not enabled."
DONE = {"canRewind": True, "skippedLinks": 0}


def look(demo: Run, uuid: str) -> Json:
    return demo.ask("rewind_files", user_message_id=uuid, dry_run=True)


def rewind(demo: Run, uuid: str) -> Json:
    return demo.ask("rewind_files", user_message_id=uuid)


def test_it_answers_as_the_real_cli_did(start: Start, tmp_path: Path) -> None:
    recorded = Path(__file__).parent.parent / "transcripts" / "rewind.jsonl"
    rows = [json.loads(line) for line in recorded.read_text().splitlines()]
    answers = [row["m"] for row in rows if row["dir"] == "<" and row["m"]["type"] == "control_response"]
    dry, done, unknown = [answer["response"] for answer in answers[1:]]  # the first is to `initialize`
    demo = start(**ON)
    said = demo.change("Write r.txt with `new`")
    assert look(demo, said) == {**dry["response"], "filesChanged": [str(tmp_path / "r.txt")]}
    assert rewind(demo, said) == done["response"]
    assert rewind(demo, str(uuid4())) == {"error": unknown["error"]}
    assert not (tmp_path / "r.txt").exists()


def test_each_prompt_is_a_place_to_go_back_to_and_forward_again(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"a\r\nlast")
    path.chmod(0o755)
    demo = start(**ON)
    before = demo.change("hello")
    first = demo.change("Replace `a` with `b` in notes.txt")
    second = demo.change("Replace `b` with `c` in notes.txt")
    after = demo.change("hello")
    path.chmod(0o644)
    texts = {before: b"a\r\nlast", first: b"a\r\nlast", second: b"b\r\nlast", after: b"c\r\nlast"}
    path.write_bytes(b"by hand")
    for uuid, text in [*texts.items(), *reversed(texts.items())]:
        assert rewind(demo, uuid) == DONE
        assert path.read_bytes() == text
    assert path.stat().st_mode & 0o777 == 0o755
    assert look(demo, before) == {"canRewind": True, "filesChanged": [], "insertions": 0, "deletions": 0}


def test_what_a_person_changed_before_a_prompt_is_kept(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "new.txt"
    demo = start(**ON)
    written = demo.change("Write new.txt with `a`")
    path.write_text("by hand\n")
    edited = demo.change("Replace `by` with `with` in new.txt")
    rewind(demo, edited)
    assert path.read_text() == "by hand\n"
    rewind(demo, written)
    assert not path.exists()


def test_a_file_that_the_shell_removed_comes_back_and_what_only_the_shell_did_stays(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("a\n")
    demo = start("--allowedTools=Bash", **ON)
    said = demo.change("Replace `a` with `b` in notes.txt")
    demo.change("Run `rm notes.txt; echo > other.txt`")
    assert look(demo, said)["insertions"] == 1
    rewind(demo, said)
    assert (tmp_path / "notes.txt").read_text() == "a\n"
    assert (tmp_path / "other.txt").exists()


def test_checkpoints_outlive_the_process_and_go_with_a_fork(start: Start, config: Path, tmp_path: Path) -> None:
    first = start(**ON)
    _, _, answers = first.prompt("hello")
    said = first.change("Write new.txt with `a`")
    first.finish()
    content = config / "claude-kernel" / "demo" / "files"
    assert not content.exists()  # a file that was not there needs none
    changed = start(f"--resume={first.session_id}", **ON).change("Replace `a` with `b` in new.txt")
    (only,) = content.iterdir()
    assert (only.stat().st_mode & 0o777, content.stat().st_mode & 0o777) == (0o600, 0o700)
    # The turns that wrote are dropped, their checkpoints are not.
    fork = start(f"--resume={first.session_id}", f"--resume-session-at={answers[-1]}", "--fork-session", **ON)
    rewind(fork, changed)
    assert (tmp_path / "new.txt").read_text() == "a\n"
    rewind(fork, said)
    assert not (tmp_path / "new.txt").exists()


def test_another_folder_does_not_reach_back(start: Start, tmp_path: Path) -> None:
    first = start(**ON)
    said = first.change("Write new.txt with `a`")
    (tmp_path / "elsewhere").mkdir()
    demo = start(f"--resume={first.session_id}", folder=tmp_path / "elsewhere", **ON)
    assert look(demo, said)["filesChanged"] == []
    rewind(demo, said)
    assert (tmp_path / "new.txt").exists()


def test_where_there_is_no_checkpoint_it_says_so(start: Start) -> None:
    off = start()
    said = off.change("Write new.txt with `a`")
    assert look(off, said) == {"canRewind": False, "error": NOT_ENABLED}
    assert rewind(off, said) == {"error": NOT_ENABLED}
    on = start(f"--resume={off.session_id}", **ON)
    command, _, _ = on.prompt("/help")
    for uuid in (said, command, str(uuid4())):
        assert look(on, uuid) == {"canRewind": False, "error": NO_CHECKPOINT}
        assert rewind(on, uuid) == {"error": NO_CHECKPOINT}
    forgetful = on.change("Write other.txt with `a`")
    on.say("/clear")
    assert rewind(on, forgetful) == {"error": NO_CHECKPOINT}


def test_what_an_agent_changed_is_not_covered(config: Path, tmp_path: Path) -> None:
    shelf = Shelf(config / "claude-kernel" / "demo")
    conversation = Conversation(shelf, tmp_path, str(uuid4()), checkpointing=True)
    demo = Demo(Wire(lambda _: None), Rules(tmp_path, "bypassPermissions"), conversation, [], None)
    conversation.say("write two files", "said")
    for name, parent in (("own.txt", None), ("agents.txt", "toolu_1")):
        done = run(Turn(demo, "", parent=parent).use("Write", file_path=name, content="a"))
        assert not done.failed
    assert conversation.rewind("said", dry_run=False) == DONE
    assert [path.name for path in tmp_path.iterdir()] == ["agents.txt"]


def test_a_link_in_a_files_place_is_left_alone(start: Start, tmp_path: Path) -> None:
    demo = start(**ON)
    said = demo.change("Write new.txt with `a`")
    (tmp_path / "new.txt").unlink()
    (tmp_path / "target").write_text("precious")
    (tmp_path / "new.txt").symlink_to("target")
    assert rewind(demo, said) == {"canRewind": True, "skippedLinks": 1}
    assert (tmp_path / "target").read_text() == "precious"


def test_what_cannot_be_put_back_is_an_error_and_the_demo_goes_on(start: Start, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a\n")
    demo = start(**ON)
    said = demo.change("Replace `a` with `b` in notes.txt")
    (tmp_path / "notes.txt").unlink()
    (tmp_path / "notes.txt").mkdir()
    assert "Failed to rewind" in rewind(demo, said)["error"]
    assert "Hello" in demo.say("hello")


@pytest.mark.usefixtures("cli_env")
def test_the_real_cli_counts_and_restores_the_same(
    start: Start, cli_home: Path, messages_api: MessagesApi, tmp_path: Path
) -> None:
    """The same two changes in both, and the same questions."""
    scene = Scene(cli_home / "real", messages_api)
    (ours := tmp_path / "ours").mkdir()
    theirs = scene.project
    for folder in (ours, theirs):
        (folder / "notes.txt").write_text("one\nsame\ntwo")
    demo, real = start(folder=ours, **ON), scene.start(env=ON)
    real.ready()
    path = str(theirs / "notes.txt")
    real.prompt(f"tool:Read:{json.dumps({'file_path': path})}")
    asked = []
    for old, new in (("one", "1"), ("two", "2")):
        given = {"file_path": path, "old_string": old, "new_string": new}
        uuid = real.say(f"tool:Edit:{json.dumps(given)}")
        real.until_ended(uuid)
        asked.append((demo.change(f"Replace `{old}` with `{new}` in notes.txt"), uuid))
    for mine, uuid in reversed(asked):
        dry, real_dry = look(demo, mine), real.ask("rewind_files", user_message_id=uuid, dry_run=True)["response"]
        assert real_dry.pop("filesChanged") == [path]
        assert dry.pop("filesChanged") == [str(ours / "notes.txt")]
        assert dry == real_dry
        assert rewind(demo, mine) == real.ask("rewind_files", user_message_id=uuid)["response"]
        assert (ours / "notes.txt").read_text() == (theirs / "notes.txt").read_text()
    assert real.finish() == 0
    assert (ours / "notes.txt").read_text() == "one\nsame\ntwo"
