"""The journal: what is written comes back, and no damage costs more than the line that it is in."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from claude_kernel.journal import (
    Back,
    Book,
    Budget,
    Journal,
    Turn,
    Unasked,
    Went,
    forget_old,
    is_session_id,
    journals_of,
    open_journal,
    read_lines,
)


def turn(name: str, after: str = "", session: str = "s1", **more: object) -> Turn:
    return Turn(prompt_id=name, prompt=f"say {name}", after=after, session_id=session, place=f"at-{name}", **more)  # type: ignore[arg-type]


def names(journal: Journal) -> list[str]:
    return [each.prompt_id for each in journal.turns]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "journal.jsonl"


def write(path: Path, *lines: object) -> Journal:
    journal = Journal(path, Book(notebook="/nb.ipynb", folder="/work"))
    for line in lines:
        journal.add(line)  # type: ignore[arg-type]
    return journal


def test_what_was_written_is_read_again_by_its_owner_alone(path: Path) -> None:
    written = write(path, turn("a", cost_usd=0.5), turn("b", "a"), Unasked(cost_usd=0.25, by_model={"m": 0.25}))
    again = Journal(path)
    assert names(again) == names(written) == ["a", "b"]
    assert again.cost_usd == 0.75
    assert again.by_model == {"m": 0.25}
    assert again.book.folder == "/work"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_turn_is_written_twice_and_counts_once(path: Path) -> None:
    write(path, turn("a"), turn("a", outcome="finished", cost_usd=1.0))
    again = Journal(path)
    assert names(again) == ["a"]
    assert again.turns[0].outcome == "finished"
    assert again.cost_usd == 1.0


DAMAGE = [
    b"\x00\x00\xff\n",
    b"not json\n",
    b'{"kind":"of another version","x":1}\n',
    b'{"kind":"turn"}\n',
    b'{"kind":"turn","prompt_id":7}\n',
    b"[1,2]\n",
    b"\n",
    b'{"kind":"turn","prompt_id":"half',
]


@pytest.mark.parametrize("damage", DAMAGE, ids=repr)
def test_a_damaged_line_costs_itself_and_nothing_after_it(path: Path, damage: bytes) -> None:
    write(path, turn("a"))
    with path.open("ab") as file:
        file.write(damage)
    journal = Journal(path)
    assert names(journal) == ["a"]
    journal.add(turn("b", "a"))
    journal.add(turn("c", "b"))
    assert names(Journal(path)) == ["a", "b", "c"]


def test_a_file_in_which_nothing_is_left_begins_again(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"half a line")
    write(path, turn("a"))
    assert [type(line) for line in read_lines(path)] == [Book, Turn]


def test_fields_of_a_later_version_are_passed_over(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'{"kind":"turn","prompt_id":"a","mood":"good","session_id":"s1"}\n')
    assert names(Journal(path)) == ["a"]


def test_a_disk_that_cannot_be_written_is_told_and_costs_the_memory_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    journal = write(tmp_path / "file" / "journal.jsonl", turn("a"))
    assert names(journal) == ["a"]
    assert "is not kept for after a restart" in journal.trouble
    (tmp_path / "file").unlink()
    journal.add(turn("b", "a"))
    assert journal.trouble == ""


def test_with_no_path_nothing_is_written_and_all_is_known() -> None:
    journal = Journal(None)
    journal.add(turn("a", cost_usd=0.5))
    assert (names(journal), journal.cost_usd) == (["a"], 0.5)


def test_going_back_drops_turns_and_keeps_what_they_cost(path: Path) -> None:
    write(path, turn("a", cost_usd=1.0), turn("b", "a", cost_usd=1.0), turn("c", "b", cost_usd=1.0), Back(turns=1))
    journal = Journal(path)
    assert (names(journal), journal.went_back, journal.cost_usd) == (["a"], True, 3.0)
    journal.add(turn("d", "a", "s2"))
    assert (names(Journal(path)), Journal(path).went_back) == (["a", "d"], False)
    journal.add(Went(session_id="s1"))
    assert names(Journal(path)) == ["a", "b", "c"]
    journal.add(Went(session_id="s2"))
    assert names(Journal(path)) == ["a", "d"]
    journal.add(Went())
    assert (names(Journal(path)), Journal(path).session_id) == ([], "")
    assert Journal(path).sessions == {"s1", "s2"}


def test_the_end_of_a_turn_that_was_dropped_does_not_bring_it_back(path: Path) -> None:
    write(path, turn("a"), turn("b", "a"), Back(turns=1), turn("b", "a", outcome="finished"))
    assert names(Journal(path)) == ["a"]


def test_two_kernels_on_one_notebook_keep_their_conversations_apart(path: Path) -> None:
    one, two = Journal(path, Book(folder="/work")), Journal(path, Book(folder="/work"))
    one.add(turn("a1", session="a"))
    two.add(turn("b1", session="b"))
    one.add(turn("a2", "a1", session="a"))
    two.add(turn("b2", "b1", session="b"))
    again = Journal(path)
    assert names(again) == ["b1", "b2"]
    assert set(again.all) == {"a1", "a2", "b1", "b2"}
    assert b"".join(path.read_bytes().splitlines(keepends=True)[-1:]).endswith(b"\n")


def test_a_circle_of_turns_ends(path: Path) -> None:
    write(path, turn("a", "b"), turn("b", "a"), Went(session_id="s1"))
    assert sorted(names(Journal(path))) == ["a", "b"]


def test_the_last_word_on_the_budget_counts(path: Path) -> None:
    write(path, Budget(usd=1.0), Budget(usd=0.0))
    assert Journal(path).budget == 0.0


def test_a_notebook_has_a_journal_for_each_name_and_a_console_a_new_one_each_time(tmp_path: Path) -> None:
    environ = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    opened = [open_journal(Path("/nb.ipynb"), tmp_path, name, environ).path for name in ("", "", "other")]
    assert opened[0] == opened[1] != opened[2]
    consoles = [open_journal(None, tmp_path, "", environ).path for _ in range(2)]
    assert consoles[0] != consoles[1]
    open_journal(Path("/nb.ipynb"), tmp_path, "", environ).add(turn("a"))
    open_journal(Path("/nb.ipynb"), tmp_path / "elsewhere", "x", environ).add(turn("b"))
    assert [names(journal) for journal in journals_of(tmp_path, environ)] == [["a"]]


@pytest.mark.parametrize(
    "word", ["", "abc", "--resume", "-x-y-z", "../../etc", "a/b/c", "a" * 82, "ab cd", "ab\ncd", "*", None, 7, ["abcd"]]
)
def test_what_cannot_be_a_session_is_none(word: object) -> None:
    assert not is_session_id(word)


def test_a_session_id_is_one() -> None:
    assert is_session_id("0b8a5d5e-1f2c-4a57-9d31-52f1f4a4b9a7")


def test_events_wait_on_disk_until_they_are_wanted(path: Path) -> None:
    happened = msgspec.Raw(b'[{"t":1}]')
    write(path, turn("a"), turn("a", events=happened), turn("b", "a"))
    journal = Journal(path)
    journal.add(turn("c", "b", events=happened))
    assert [bytes(each.events) for each in journal.turns] == [b"[]"] * 3
    assert [bytes(each.events) for each in journal.with_events(journal.turns)] == [b'[{"t":1}]', b"[]", b'[{"t":1}]']


def test_without_a_file_events_are_held(tmp_path: Path) -> None:
    unwritable = tmp_path / "file"
    unwritable.write_text("")
    for journal in (Journal(None), Journal(unwritable / "journal.jsonl")):
        journal.add(turn("a", events=msgspec.Raw(b'[{"t":1}]')))
        assert bytes(journal.with_events(journal.turns)[0].events) == b'[{"t":1}]'


def test_what_is_old_is_forgotten(tmp_path: Path) -> None:
    environ = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    own = tmp_path / "claude-kernel"
    for name in ("notebooks/old.jsonl", "notebooks/new.jsonl", "notebooks/old.txt", "undone/2020-01-01/a.txt"):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text("x")
    for name in ("notebooks/old.jsonl", "notebooks/old.txt", "undone/2020-01-01"):
        os.utime(own / name, (1e9, 1e9))
    forget_old(0, environ)
    assert (own / "notebooks/old.jsonl").exists()
    forget_old(90, environ)
    assert sorted(path.name for path in own.rglob("*")) == ["new.jsonl", "notebooks", "old.txt", "undone"]
    forget_old(90, {"CLAUDE_CONFIG_DIR": str(tmp_path / "nowhere")})
