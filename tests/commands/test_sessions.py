"""A folder's kept, from files as the CLI (2.1.326) writes them and from files that it never would."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from commands.keyboard import Typed

from claude_kernel import kept
from claude_kernel.kept import slug
from claude_kernel.render.figures import age_text

ID = "430e324e-8de9-43f7-910d-306a2b46b6b7"


def row(content: Any, cwd: Path, **more: Any) -> str:
    message = {"role": "user", "content": content}
    return json.dumps({"type": "user", "message": message, "cwd": str(cwd), "sessionId": ID, **more})


def keep(home: Path, folder: Path, *lines: str | bytes, name: str = ID, minutes_ago: float = 0) -> Path:
    place = home / ".claude" / "projects" / slug(folder)
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{name}.jsonl"
    path.write_bytes(b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines))
    then = time.time() - 60 * minutes_ago
    os.utime(path, (then, then))
    return path


def test_the_newest_comes_first_with_its_first_prompt(typed: Typed, home: Path, folder: Path) -> None:
    keep(home, folder, row("Why does it fail?\nIt did not.", folder), row("And now?", folder), minutes_ago=200)
    keep(home, folder, row("Tidy up", folder), name="another", minutes_ago=5.5)
    said = typed("sessions")
    assert said.code == 0
    assert said.out.splitlines()[:2] == [
        f"{'another':<36}  5 minutes ago  1 prompt   Tidy up",
        f"{ID}  3 hours ago    2 prompts  Why does it fail? ↵ It did not.",
    ]
    assert "Claude(resume=ID)" in said.out
    assert "claude --resume ID" in said.out


@pytest.mark.parametrize(
    ("content", "more", "prompt"),
    [
        ("a question", {}, "a question"),
        ([{"type": "text", "text": "look"}, {"type": "image", "source": {}}], {}, "look"),
        ([{"type": "image", "source": {"data": "x"}}], {}, "(an image)"),
        ("<command-name>/review</command-name>\n <command-args>the diff</command-args>", {}, "/review the diff"),
        ("<command-message>compact</command-message><command-name>/compact</command-name>", {}, "/compact"),
        ("<local-command-stdout>Compacted</local-command-stdout>", {}, None),
        ("[Request interrupted by user]", {}, None),
        ("a caveat", {"isMeta": True}, None),
        ("This session is being continued", {"isCompactSummary": True}, None),
        ("from a sub-agent", {"isSidechain": True}, None),
        ([{"type": "tool_result", "tool_use_id": "t", "content": "hi"}], {"toolUseResult": {"stdout": "hi"}}, None),
        ("   ", {}, None),
        (7, {}, None),
    ],
)
def test_only_what_a_person_said_is_a_prompt(
    typed: Typed, home: Path, folder: Path, content: object, more: dict[str, object], prompt: str | None
) -> None:
    keep(home, folder, row(content, folder, **more))
    found = typed("sessions", "--json").json["sessions"]
    assert [one["first_prompt"] for one in found] == ([prompt] if prompt else [])


def test_broken_lines_are_passed_over(typed: Typed, home: Path, folder: Path) -> None:
    keep(
        home,
        folder,
        "{not json",
        b'{"type": "user", "message": {"content": "\xff\xfe"}}',
        '"user"',
        '{"type": "user"}',
        '{"type": "user", "message": {"content": {"a": 1}}}',
        row("the one that counts", folder),
        row("cut in the mid", folder)[:-20],
    )
    (one,) = typed("sessions", "--json").json["sessions"]
    assert (one["id"], one["prompts"], one["first_prompt"]) == (ID, 1, "the one that counts")


def test_a_huge_file_is_read_up_to_a_limit_and_says_so(
    typed: Typed, home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "LONGEST_LINE", 2_000)
    monkeypatch.setattr(kept, "MOST_BYTES", 60_000)
    keep(home, folder, row("first", folder), row("x" * 5_000, folder), *[row("more", folder)] * 5_000)
    (one,) = typed("sessions", "--json").json["sessions"]
    assert (one["first_prompt"], one["whole"]) == ("first", False)
    assert 100 < one["prompts"] < 1_000
    assert f"{one['prompts']}+ prompts" in typed("sessions").out


def test_a_file_that_cannot_be_read_is_listed_with_the_reason(typed: Typed, home: Path, folder: Path) -> None:
    path = keep(home, folder, name="a-folder")
    path.unlink()
    path.mkdir()
    said = typed("sessions")
    assert said.code == 0
    assert "a-folder" in said.out
    assert "(cannot be read: Is a directory)" in said.out


def test_folders_that_share_a_name_are_told_apart(typed: Typed, home: Path, folder: Path) -> None:
    ours, theirs = folder / "a.b", folder / "a-b"
    assert slug(ours) == slug(theirs)
    keep(home, ours, row("ours", ours))
    keep(home, theirs, row("theirs", theirs), name="theirs")
    assert [one["first_prompt"] for one in typed("sessions", str(ours), "--json").json["sessions"]] == ["ours"]


def test_no_word_of_a_file_can_steer_the_terminal(typed: Typed, home: Path, folder: Path) -> None:
    keep(home, folder, row("\x1b[2J\x1b]0;owned\x07 \u202etxt", folder))
    out = typed("sessions").out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "‹U+001B›[2J" in out


def test_only_so_many_are_looked_at(typed: Typed, home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_FILES", 2)
    for number in range(5):
        keep(home, folder, row(f"prompt {number}", folder), name=f"s{number}", minutes_ago=number)
    out = typed("sessions").out
    assert "… and 3 older." in out
    assert "prompt 1" in out
    assert "prompt 2" not in out


def test_where_nothing_was_said_it_says_how_to_begin(typed: Typed, folder: Path) -> None:
    said = typed("sessions")
    assert said.code == 0
    assert f"No conversation was held in {folder} yet." in said.out
    assert "begins with the first cell" in said.out


def test_another_config_folder_is_looked_into(
    typed: Typed, home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(home, folder, row("hello", folder))
    (home / ".claude").rename(home / "config")
    assert typed("sessions", "--json").json["sessions"] == []
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "config"))
    assert len(typed("sessions", "--json").json["sessions"]) == 1


@pytest.mark.parametrize(
    ("path", "name"),
    [("/home/me/pro_ject.x é", "-home-me-pro-ject-x--"), ("/a/😀b", "-a---b"), ("/A1/b", "-A1-b")],
)
def test_a_folders_name_is_made_as_the_cli_makes_it(path: str, name: str) -> None:
    assert slug(Path(path)) == name


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "just now"), (59, "just now"), (60, "1 minute ago"), (7300, "2 hours ago"), (86400 * 45, "1 month ago")],
)
def test_an_age_is_told_in_one_unit(seconds: float, words: str) -> None:
    assert age_text(seconds) == words
