"""Whose turn a row belongs to, with and without the CLI's help."""

from __future__ import annotations

import pytest

from claude_kernel.protocol.turns import OUR_ORIGINS, TurnTracker


def tracker(*prompt_ids: str) -> TurnTracker:
    turns = TurnTracker()
    for prompt_id in prompt_ids:
        turns.prompt_sent(prompt_id)
    return turns


def named_tracker(*prompt_ids: str) -> TurnTracker:
    turns = tracker(*prompt_ids)
    for prompt_id in prompt_ids:
        turns.named(prompt_id, "queued")
    return turns


# --- by name: command_lifecycle -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt_id", "state", "starts"),
    [("a", "started", True), ("a", "queued", False), ("a", "completed", False), ("foreign", "started", False)],
)
def test_only_a_started_row_that_names_a_prompt_of_ours_starts_a_turn(prompt_id: str, state: str, starts: bool) -> None:
    turns = tracker("a")
    assert turns.named(prompt_id, state) is starts
    assert turns.current == ("a" if starts else None)


def test_a_turn_starts_once() -> None:
    turns = tracker("a")
    assert turns.named("a", "started")
    assert not turns.named("a", "started")
    assert turns.content_came() is None


def test_where_turns_are_named_content_before_the_name_is_not_ours() -> None:
    turns = named_tracker("a")
    assert turns.content_came() is None
    assert turns.unasked
    turns.named("a", "started")
    assert (turns.unasked, turns.current) == (False, "a")


# --- by order -------------------------------------------------------------------------------------------------------


def test_where_turns_are_not_named_the_oldest_prompt_is_answered_first() -> None:
    turns = tracker("a", "b")
    assert turns.content_came() == "a"
    assert turns.content_came() is None
    assert turns.result_came([], "") == ["a"]
    turns.close("a")
    assert turns.content_came() == "b"


def test_content_with_no_prompt_waiting_is_nobodys() -> None:
    turns = tracker()
    assert turns.content_came() is None
    assert turns.unasked


# --- results --------------------------------------------------------------------------------------------------------


def test_a_result_ends_the_prompts_it_names() -> None:
    turns = named_tracker("a", "b", "c")
    assert turns.result_came(["b", "a"], "") == ["b", "a"]
    assert turns.result_came(["unknown"], "") == []


@pytest.mark.parametrize("origin", ["", *sorted(OUR_ORIGINS)])
def test_a_result_that_names_nothing_ends_the_running_turn(origin: str) -> None:
    turns = named_tracker("a", "b")
    turns.named("b", "started")
    assert turns.result_came([], origin) == ["b"]


def test_a_result_that_names_nothing_ends_the_oldest_prompt_where_none_runs() -> None:
    assert tracker("a", "b").result_came([], "") == ["a"]


def test_a_result_of_foreign_origin_is_never_ours() -> None:
    turns = tracker("a")
    turns.content_came()
    assert turns.result_came([], "task-notification") == []


def test_the_result_of_an_unasked_turn_does_not_end_a_prompt_that_waits() -> None:
    turns = tracker()
    turns.content_came()
    turns.prompt_sent("a")
    assert turns.result_came([], "") == []
    turns.unasked = False
    assert turns.content_came() == "a"


def test_a_result_with_no_prompt_waiting_ends_nothing() -> None:
    assert tracker().result_came([], "") == []


# --- interrupts -----------------------------------------------------------------------------------------------------


def test_an_interrupt_marks_what_was_sent_before_it() -> None:
    turns = tracker("a")
    turns.interrupt_sent()
    turns.prompt_sent("b")
    assert turns.was_interrupted("a")
    assert not turns.was_interrupted("b")
    assert not turns.was_interrupted("never sent")


def test_a_closed_prompt_no_longer_waits() -> None:
    turns = tracker("a")
    assert turns.is_waiting("a")
    turns.close("a")
    turns.close("a")
    assert not turns.is_waiting("a")
