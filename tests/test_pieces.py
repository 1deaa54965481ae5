"""What an output is made of: when a piece can still change, and that what cannot is rendered once."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from claude_kernel.pieces import Block, Checklist, Fixed, Foreign, Prose, Rows, Thought
from claude_kernel.protocol.events import ToolFinished, ToolStarted
from claude_kernel.render import Bundle, CallState, MarkdownSplitter, ToolCall, render_notice

PROJECT = "/home/me/project"


def call(call_id: str, state: CallState = CallState.DONE, name: str = "Bash") -> ToolCall:
    return ToolCall(call_id, name, {"command": f"echo {call_id}"}, state, started=0.0, finished=1.0)


@dataclass(eq=False)
class Counted:
    """A piece that counts how often it was rendered."""

    settled: bool = False
    rendered: int = 0

    def render(self, _now: float, _project: str) -> Bundle:
        self.rendered += 1
        return render_notice(f"rendered {self.rendered}")


def test_prose_renders_its_tail_and_hands_back_what_is_final() -> None:
    prose = Prose(MarkdownSplitter())
    assert prose.feed("**one**\n\ntwo", minimum=1_000) == []
    assert "<strong>one</strong>" in prose.render(0.0, PROJECT).html
    assert prose.feed("\n\nthree\n\nfour", minimum=3) == ["**one**\n\n", "two\n\n"]
    assert prose.render(0.0, PROJECT).text == "three\n\nfour"
    assert not prose.settled
    prose.finished = True
    assert prose.settled


@pytest.mark.parametrize("state", CallState)
def test_rows_are_settled_when_nothing_can_join_them_and_every_call_has_ended(state: CallState) -> None:
    rows = Rows([call("a"), call("b", state)])
    assert not rows.settled
    rows.growing = False
    assert rows.settled == (state not in (CallState.RUNNING, CallState.WAITING, CallState.HELD))


def test_rows_with_a_thought_are_settled_when_it_is_finished() -> None:
    thought = Thought("hm")
    rows = Rows([thought], growing=False)
    assert not rows.settled
    thought.finished = True
    assert rows.settled


def test_rows_keep_the_order_in_which_things_began() -> None:
    rows = Rows([Thought("first", 2.0, True), call("one"), call("two"), Thought("second", None, True), call("three")])
    text = rows.render(5.0, PROJECT).text
    places = [text.index(word) for word in ("first", "echo one", "echo two", "second", "echo three")]
    assert places == sorted(places)


def test_only_the_last_run_of_rows_that_still_grow_is_live() -> None:
    reads = [ToolCall(str(n), "Read", {"file_path": f"{PROJECT}/f{n}.py"}, CallState.DONE) for n in range(6)]
    growing = Rows([*reads, Thought("then", None, True), *reads]).render(0.0, PROJECT)
    assert growing.text.count("6 steps") == 1
    assert growing.text.count("3 steps") == 1  # the last three rows of the live run stay in sight
    assert (
        Rows([*reads, Thought("then", None, True), *reads], growing=False).render(0, PROJECT).text.count("6 steps") == 2
    )


def test_a_checklist_is_settled_with_the_turn_and_shows_where_things_stand() -> None:
    checklist = Checklist()
    for number, status in enumerate(["pending", "completed"]):
        todos = [{"content": "write", "status": status}]
        made = ToolCall.begun(ToolStarted(str(number), "TodoWrite", {"todos": todos}))
        made.end(ToolFinished(str(number)))
        checklist.calls.append(made)
    assert not checklist.settled
    assert checklist.render(0.0, PROJECT).text == "Plan 1 of 1 done\n    ✓ write"
    checklist.growing = False
    assert checklist.settled


def test_a_foreign_piece_is_somebody_elses_until_it_has_a_record() -> None:
    foreign = Foreign()
    assert not foreign.settled
    assert foreign.render(0.0, PROJECT) == Bundle("", "")
    decided = Foreign(bundle=render_notice("Allowed"))
    assert decided.settled
    assert decided.render(0.0, PROJECT).text == "Allowed"


def test_a_block_renders_what_is_settled_once_and_the_rest_each_time() -> None:
    settled, growing = Counted(settled=True), Counted()
    block = Block("id", [settled, growing])
    for _ in range(3):
        block.render(0.0, PROJECT)
    assert (settled.rendered, growing.rendered) == (1, 3)
    assert block.settled_bytes == len(render_notice("rendered 1").html)


def test_a_block_renders_anew_what_changed_after_it_had_settled_and_only_that() -> None:
    first, second = Counted(settled=True), Counted(settled=True)
    block = Block("id", [first, second], closed=True)
    before = block.render(0.0, PROJECT)
    block.dirty, block.final = False, True
    size = block.settled_bytes
    assert not block.needs_showing()
    block.changed(second)
    assert block.needs_showing()
    assert not block.final
    after = block.render(0.0, PROJECT)
    assert (first.rendered, second.rendered) == (1, 2)
    assert before.text == "rendered 1\n\nrendered 1"
    assert after.text == "rendered 1\n\nrendered 2"
    assert block.settled_bytes == size


def test_a_block_is_settled_when_it_is_closed_and_all_in_it_is() -> None:
    piece = Counted()
    block = Block("id", [Fixed(render_notice("x")), piece])
    assert not block.settled
    block.closed = True
    assert not block.settled
    piece.settled = True
    assert block.settled


def test_a_block_that_settled_without_changing_is_still_shown_once_with_its_plain_text() -> None:
    block = Block("id", [Fixed(render_notice("x"))], dirty=False)
    assert not block.needs_showing()
    block.closed = True
    assert block.needs_showing()
    block.final = True
    assert not block.needs_showing()


def test_a_block_finds_the_rows_that_hold_a_call() -> None:
    mine, other = call("a"), call("a")
    rows = Rows([mine])
    block = Block("id", [Rows([call("b")]), rows])
    assert block.find(mine) is rows
    assert block.find(other) is None  # the same, but not it
