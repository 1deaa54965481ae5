"""Whose turn a row of the stream belongs to, as the connection tells it; `test_turns` has the rules one by one."""

from __future__ import annotations

from typing import Any

import pytest
from protocol.replay import feed
from protocol.rows import ABORTED, FOREIGN, Json, ends, lifecycle, prompted, result, text_row, turns

from claude_kernel.protocol import Connection, Prompt
from claude_kernel.protocol import events as ev
from claude_kernel.protocol.events import Outcome

# --- whose turn -----------------------------------------------------------------------------------------------------

ScriptStep = tuple[str, Any]
TURNS: list[tuple[str, list[ScriptStep], list[tuple[str, str | None]]]] = [
    (
        "a turn, by order",
        [("say", "a"), ("row", text_row("1")), ("row", result())],
        [("TurnStarted", "a"), ("TurnEnded", "a")],
    ),
    (
        "a turn, by name",
        [
            ("say", "a"),
            ("row", lifecycle("a", "queued")),
            ("row", lifecycle("a", "started")),
            ("row", text_row("1")),
            ("row", result(user_message_uuids=["a"])),
            ("row", lifecycle("a", "completed")),
        ],
        [("TurnStarted", "a"), ("TurnEnded", "a")],
    ),
    (
        "a turn, named by its result in the singular",
        [("say", "a"), ("say", "b"), ("row", result(user_message_uuid="b"))],
        [("TurnEnded", "b")],
    ),
    (
        "the late result of an interrupted turn does not end the next one, by order",
        [
            ("say", "a"),
            ("row", text_row("1")),
            ("interrupt", None),
            ("say", "b"),
            ("row", result(**ABORTED)),
            ("row", text_row("2")),
            ("row", result()),
        ],
        [("TurnStarted", "a"), ("TurnEnded", "a"), ("TurnStarted", "b"), ("TurnEnded", "b")],
    ),
    (
        "the late result of a turn interrupted before it said anything, by order",
        [("say", "a"), ("interrupt", None), ("say", "b"), ("row", result(**ABORTED)), ("row", result())],
        [("TurnEnded", "a"), ("TurnEnded", "b")],
    ),
    (
        "the late result of an interrupted turn does not end the next one, by name",
        [
            ("say", "a"),
            ("row", lifecycle("a", "started")),
            ("interrupt", None),
            ("say", "b"),
            ("row", lifecycle("b", "started")),
            ("row", result(**ABORTED, user_message_uuids=["a"])),
            ("row", lifecycle("a", "cancelled")),
            ("row", result(user_message_uuids=["b"])),
        ],
        [("TurnStarted", "a"), ("TurnStarted", "b"), ("TurnEnded", "a"), ("TurnEnded", "b")],
    ),
    (
        "the late result of an interrupted turn, where turns are named but results are not",
        [
            ("say", "a"),
            ("row", lifecycle("a", "started")),
            ("interrupt", None),
            ("say", "b"),
            ("row", lifecycle("b", "queued")),
            ("row", result(**ABORTED)),
            ("row", lifecycle("b", "started")),
            ("row", result()),
        ],
        [("TurnStarted", "a"), ("TurnEnded", "a"), ("TurnStarted", "b"), ("TurnEnded", "b")],
    ),
    (
        "a second result for a turn that has ended",
        [
            ("say", "a"),
            ("row", result(user_message_uuids=["a"])),
            ("say", "b"),
            ("row", result(user_message_uuids=["a"])),
            ("row", result(user_message_uuids=["b"])),
        ],
        [("TurnEnded", "a"), ("UnaskedTurnEnded", None), ("TurnEnded", "b")],
    ),
    (
        "a turn that nobody asked for, between two cells",
        [
            ("say", "a"),
            ("row", result()),
            ("row", text_row("home")),
            ("row", result(**FOREIGN)),
            ("say", "b"),
            ("row", text_row("2")),
            ("row", result()),
        ],
        [
            ("TurnEnded", "a"),
            ("UnaskedTurnStarted", None),
            ("UnaskedTurnEnded", None),
            ("TurnStarted", "b"),
            ("TurnEnded", "b"),
        ],
    ),
    (
        "a prompt sent during an unasked turn waits, by order",
        [
            ("row", text_row("home")),
            ("say", "a"),
            ("row", text_row("more")),
            ("row", result(**FOREIGN)),
            ("row", text_row("ours")),
            ("row", result()),
        ],
        [("UnaskedTurnStarted", None), ("UnaskedTurnEnded", None), ("TurnStarted", "a"), ("TurnEnded", "a")],
    ),
    (
        "a prompt sent during an unasked turn waits, by name",
        [
            ("row", text_row("home")),
            ("say", "a"),
            ("row", lifecycle("a", "queued")),
            ("row", text_row("more")),
            ("row", result()),
            ("row", lifecycle("a", "started")),
            ("row", text_row("ours")),
            ("row", result(user_message_uuids=["a"])),
        ],
        [("UnaskedTurnStarted", None), ("UnaskedTurnEnded", None), ("TurnStarted", "a"), ("TurnEnded", "a")],
    ),
    (
        "two prompts answered in one turn",
        [
            ("say", "a"),
            ("say", "b"),
            ("row", lifecycle("a", "started")),
            ("row", text_row("both")),
            ("row", result(user_message_uuids=["a", "b"])),
        ],
        [("TurnStarted", "a"), ("TurnEnded", "a"), ("TurnEnded", "b")],
    ),
    (
        "a turn of ours that content came before, then one that is not ours",
        [
            ("say", "a"),
            ("row", lifecycle("a", "queued")),
            ("row", text_row("early")),
            ("row", result(user_message_uuids=["a"])),
            ("row", text_row("home")),
            ("row", result(**FOREIGN)),
        ],
        [("UnaskedTurnStarted", None), ("TurnEnded", "a"), ("UnaskedTurnStarted", None), ("UnaskedTurnEnded", None)],
    ),
    (
        "a background agent's own rows start no turn",
        [
            ("row", text_row("working", parent_tool_use_id="t")),
            ("row", {"type": "stream_event", "event": {"type": "message_stop"}, "parent_tool_use_id": "t"}),
        ],
        [],
    ),
]


@pytest.mark.parametrize(("name", "script", "expected"), TURNS, ids=[name for name, *_ in TURNS])
def test_each_result_ends_the_turn_it_belongs_to(
    name: str, script: list[ScriptStep], expected: list[tuple[str, str | None]]
) -> None:
    connection = Connection()
    events: list[ev.Event] = []
    for step, value in script:
        if step == "say":
            connection.send_prompt(Prompt(text="x", id=value))
        elif step == "interrupt":
            connection.interrupt()
        else:
            events += feed(connection, value)
    assert turns(events) == expected, name


def test_what_was_only_streamed_is_finished_before_its_turn_ends() -> None:
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "so far"}}
    *_, finished, ended = feed(prompted("a"), {"type": "stream_event", "event": delta}, result())
    assert finished == ev.TextFinished("so far")
    assert isinstance(ended, ev.TurnEnded)


def test_the_next_turn_is_not_called_interrupted() -> None:
    connection = prompted("a")
    feed(connection, text_row("1"))
    connection.interrupt()
    connection.send_prompt(Prompt(text="x", id="b"))
    failed = result(subtype="error_during_execution", is_error=True)
    assert [end.outcome for end in ends(feed(connection, failed, failed))] == [Outcome.INTERRUPTED, Outcome.FAILED]


def test_prompts_that_shared_a_turn_are_paid_for_once_and_failed_alike() -> None:
    connection = prompted("a", "b")
    error = text_row("API Error", error="rate_limit")
    cost = {"total_cost_usd": 0.5, "usage": {"output_tokens": 7}}
    failure = result(is_error=True, api_error_status=429, user_message_uuids=["a", "b"], **cost)
    first, second = ends(feed(connection, error, failure))
    assert (first.usage, second.usage.cost_usd, second.usage.output_tokens) == (ev.Usage(), 0.5, 7)
    assert [end.error_kind for end in (first, second)] == ["rate_limit", "rate_limit"]


def test_an_unasked_turn_says_what_it_came_to() -> None:
    row = result(result="home", total_cost_usd=0.5, **FOREIGN)
    assert feed(Connection(), row) == [
        ev.UnaskedTurnEnded(
            "task-notification", Outcome.FINISHED, "home", "s", ev.Usage(cost_usd=0.5, session_cost_usd=0.5)
        )
    ]


def test_a_failure_before_any_prompt_says_why() -> None:
    row = result(subtype="error_during_execution", is_error=True, errors=["No conversation found"])
    (ended,) = feed(Connection(), row)
    assert isinstance(ended, ev.UnaskedTurnEnded)
    assert (ended.outcome, ended.text) == (Outcome.FAILED, "No conversation found")


# --- the run of JSON-RPC --------------------------------------------------------------------------------------------


def run_reply(**reply: Any) -> Json:
    return {"jsonrpc": "2.0", "id": "a", **reply}


def test_the_reply_to_a_run_after_its_result_adds_nothing() -> None:
    connection = prompted("a", dialect="jsonrpc")
    row = {"jsonrpc": "2.0", "method": "message", "params": result(result="4")}
    assert turns(feed(connection, row, run_reply(result={}))) == [("TurnEnded", "a")]


@pytest.mark.parametrize(
    ("reply", "interrupted", "outcome", "error"),
    [
        ({"result": {}}, False, Outcome.FINISHED, ""),
        ({"result": {}}, True, Outcome.FINISHED, ""),
        ({"error": {"code": -32000, "message": "it broke"}}, False, Outcome.FAILED, "it broke"),
        ({"error": {}}, False, Outcome.FAILED, "{}"),
        ({"error": {"code": -32800, "message": "Interrupted by user"}}, True, Outcome.INTERRUPTED, ""),
    ],
    ids=str,
)
def test_the_reply_to_a_run_without_a_result_ends_the_turn(
    reply: Json, interrupted: bool, outcome: Outcome, error: str
) -> None:
    connection = prompted("a", dialect="jsonrpc")
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "so f"}}
    feed(connection, {"jsonrpc": "2.0", "method": "message", "params": {"type": "stream_event", "event": delta}})
    if interrupted:
        connection.interrupt()
    assert feed(connection, run_reply(**reply)) == [
        ev.TextFinished("so f"),
        ev.TurnEnded("a", outcome, error=error),
    ]
