"""How things ended and what they cost."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from claude_kernel.protocol import events as ev
from claude_kernel.protocol import outcomes
from claude_kernel.protocol.events import Outcome
from claude_kernel.protocol.wire import RateLimitRow, ResultRow, SystemRow

Json = dict[str, Any]


def result(**fields: Any) -> ResultRow:
    return msgspec.convert({"type": "result", **fields}, ResultRow)


OUTCOMES: list[tuple[Json, bool, Outcome]] = [
    ({"subtype": "success", "is_error": False}, False, Outcome.FINISHED),
    ({"subtype": "success", "is_error": False}, True, Outcome.FINISHED),
    ({"subtype": "success"}, False, Outcome.FINISHED),
    ({}, False, Outcome.FINISHED),
    ({"subtype": "error_during_execution"}, False, Outcome.FAILED),
    ({"subtype": "error_during_execution", "is_error": True}, False, Outcome.FAILED),
    ({"subtype": "error_during_execution", "is_error": True}, True, Outcome.INTERRUPTED),
    ({"subtype": "error_during_execution", "terminal_reason": "aborted_streaming"}, False, Outcome.INTERRUPTED),
    ({"subtype": "error_during_execution", "terminal_reason": "aborted_tools"}, False, Outcome.INTERRUPTED),
    ({"subtype": "error_max_turns", "is_error": True}, False, Outcome.MAX_TURNS),
    ({"subtype": "error_max_turns", "is_error": True}, True, Outcome.MAX_TURNS),
    ({"subtype": "error_max_budget_usd", "is_error": True}, False, Outcome.MAX_BUDGET),
    ({"subtype": "success", "is_error": True, "terminal_reason": "api_error"}, False, Outcome.API_ERROR),
    ({"subtype": "success", "is_error": True, "api_error_status": 400}, False, Outcome.API_ERROR),
    ({"subtype": "success", "is_error": True}, False, Outcome.FAILED),
    ({"subtype": "error_of_tomorrow"}, False, Outcome.FAILED),
]


@pytest.mark.parametrize(("fields", "interrupted", "outcome"), OUTCOMES, ids=str)
def test_the_outcome_is_read_from_more_than_the_subtype(fields: Json, interrupted: bool, outcome: Outcome) -> None:
    assert outcomes.outcome_of(result(**fields), interrupted=interrupted) is outcome


def ended(ledger: outcomes.Ledger | None = None, **fields: Any) -> ev.TurnEnded:
    ledger = ledger or outcomes.Ledger()
    row = result(**fields)
    return ledger.turn_ended(row, "p", ledger.usage(row, None), interrupted=False, session_id="s")


def test_a_finished_turn_carries_the_answer() -> None:
    assert ended(
        subtype="success",
        is_error=False,
        result="4",
        structured_output={"n": 4},
        duration_ms=2845,
        num_turns=2,
        permission_denials=[{"tool_name": "Bash"}, {}],
        local_command="cost",
    ) == ev.TurnEnded(
        prompt_id="p",
        outcome=Outcome.FINISHED,
        text="4",
        structured={"n": 4},
        session_id="s",
        seconds=2.845,
        steps=2,
        refused_tools=("Bash", ""),
        local_command="cost",
    )


def test_the_bridge_dialect_names_for_time_and_steps_are_read() -> None:
    turn = ended(subtype="success", duration_seconds=5.2, turn_count=3)
    assert (turn.seconds, turn.steps) == (5.2, 3)


ERROR_TEXTS: list[tuple[Json, str]] = [
    ({"errors": ["No conversation found", "Sorry"]}, "No conversation found\nSorry"),
    ({"errors": [{"odd": 1}]}, "{'odd': 1}"),
    ({"error": "Maximum turns exceeded"}, "Maximum turns exceeded"),
    ({"error": {"code": "X", "message": "It broke"}}, "It broke"),
    ({"result": "API Error: 400"}, "API Error: 400"),
    ({"result": ["odd"]}, "error_during_execution"),
    ({}, "error_during_execution"),
]


@pytest.mark.parametrize(("fields", "words"), ERROR_TEXTS, ids=str)
def test_a_failed_turn_says_why_and_has_no_answer(fields: Json, words: str) -> None:
    turn = ended(subtype="error_during_execution", is_error=True, **fields)
    assert (turn.error, turn.text) == (words, "")


def test_an_interrupted_turn_is_no_failure() -> None:
    turn = ended(subtype="error_during_execution", is_error=True, terminal_reason="aborted_tools", errors=["noise"])
    assert (turn.error, turn.outcome) == ("", Outcome.INTERRUPTED)


def test_the_kind_of_error_is_the_last_one_named_or_the_results_own() -> None:
    failure = {"subtype": "success", "is_error": True, "api_error_status": 429, "api_error_type": "rate_limit_error"}
    ledger = outcomes.Ledger()
    assert ended(ledger, **failure).error_kind == "rate_limit_error"
    ledger.error_kind = "rate_limit"
    assert ended(ledger, **failure).error_kind == "rate_limit"
    assert ended(ledger, subtype="success").error_kind == ""
    assert ended(ledger, **failure).api_status == 429


# --- cost -----------------------------------------------------------------------------------------------------------


def test_a_turns_cost_is_what_its_models_spent_since_the_last_result() -> None:
    spent = {"opus": {"costUSD": 0.5}, "haiku": {"costUSD": 0.25}, "free": {}}
    usage = outcomes.Ledger().usage(result(total_cost_usd=9.0, model_usage_since_last_result=spent), None)
    assert (usage.cost_usd, usage.session_cost_usd) == (0.75, 9.0)
    assert usage.by_model == {"opus": 0.5, "haiku": 0.25, "free": 0.0}


def test_without_that_it_is_the_difference_of_the_totals() -> None:
    ledger = outcomes.Ledger()
    costs = [ledger.usage(result(total_cost_usd=total), None).cost_usd for total in (0.5, 0.75, 0.75)]
    assert costs == [0.5, 0.25, 0.0]


def test_a_total_that_went_back_costs_nothing() -> None:
    ledger = outcomes.Ledger()
    ledger.usage(result(total_cost_usd=0.5), None)
    assert ledger.usage(result(total_cost_usd=0.25), None).cost_usd == 0.0


def test_a_reset_starts_the_count_again() -> None:
    ledger = outcomes.Ledger()
    ledger.usage(result(total_cost_usd=0.5), None)
    ledger.reset()
    assert ledger.usage(result(total_cost_usd=0.25), None).cost_usd == 0.25


def test_a_cost_that_is_not_told_is_unknown_not_zero() -> None:
    assert outcomes.Ledger().usage(result(), None) == ev.Usage()


@pytest.mark.parametrize("odd", ["x", None, [], {}, 10**400], ids=lambda odd: str(odd)[:9])
def test_a_cost_that_is_no_number_counts_as_nothing(odd: Any) -> None:
    usage = outcomes.Ledger().usage(result(model_usage_since_last_result={"m": {"costUSD": odd}}), None)
    assert usage.cost_usd == 0.0


def test_tokens_and_window_are_read() -> None:
    row = result(
        usage={
            "input_tokens": 1,
            "output_tokens": 2,
            "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 4,
            "service_tier": "standard",
        },
        modelUsage={"haiku": {"contextWindow": 200_000}, "opus": {"contextWindow": 1_000_000}, "odd": {}},
    )
    assert outcomes.Ledger().usage(row, 321) == ev.Usage(
        input_tokens=1,
        output_tokens=2,
        cache_read_tokens=3,
        cache_write_tokens=4,
        context_tokens=321,
        context_window=1_000_000,
    )


# --- errors and limits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        ({"code": "SESSION_NOT_FOUND", "message": "Session not found"}, "Session not found", "SESSION_NOT_FOUND"),
        ({"type": "invalid_request", "message": "Wrong"}, "Wrong", "invalid_request"),
        ({"odd": 1}, "{'odd': 1}", ""),
        ("words", "words", ""),
        (None, "unknown error", ""),
    ],
    ids=str,
)
def test_an_error_is_a_word_or_an_object(error: Any, message: str, code: str) -> None:
    assert outcomes.decode_error(error) == (message, code)


@pytest.mark.parametrize(
    ("resets", "at"), [(4102444800, 4102444800.0), (1.5, 1.5), ("soon", None), (None, None), (10**400, None)]
)
def test_a_rate_limit_says_when_it_ends(resets: Any, at: float | None) -> None:
    details = {"status": "rejected", "resetsAt": resets, "rateLimitType": "five_hour"}
    assert outcomes.decode_rate_limit(RateLimitRow(details)) == ev.RateLimited("rejected", at, "five_hour", details)


# --- system rows ----------------------------------------------------------------------------------------------------

SYSTEM_ROWS: list[tuple[Json, ev.Event]] = [
    (
        {
            "subtype": "init",
            "session_id": "s",
            "model": "opus",
            "permissionMode": "plan",
            "cwd": "/p",
            "claude_code_version": "2.1.17",
            "tools": ["Bash", "Read"],
            "mcp_servers": [{"name": "n", "status": "connected"}, "odd"],
            "slash_commands": ["compact", "/cost"],
        },
        ev.SessionStarted(
            "s",
            "opus",
            "plan",
            "/p",
            "2.1.17",
            ("Bash", "Read"),
            ({"name": "n", "status": "connected"},),
            ("compact", "cost"),
        ),
    ),
    (
        {"subtype": "init", "session_id": "s", "tools": [{"name": "Bash", "description": "d"}, {}]},
        ev.SessionStarted("s", tools=("Bash", "")),
    ),
    ({"subtype": "status", "status": "requesting"}, ev.StatusChanged("requesting")),
    ({"subtype": "status", "permissionMode": "acceptEdits"}, ev.StatusChanged(None, "acceptEdits")),
    ({"subtype": "thinking_tokens", "estimated_tokens": 6}, ev.ThinkingCounted(6)),
    (
        {
            "subtype": "task_started",
            "task_id": "k",
            "tool_use_id": "t",
            "description": "An errand",
            "task_type": "local_agent",
            "subagent_type": "Explore",
            "is_backgrounded": True,
        },
        ev.TaskStarted("k", "t", "An errand", "local_agent", "Explore", background=True),
    ),
    (
        {"subtype": "task_updated", "task_id": "k", "patch": {"status": "completed", "end_time": 1}},
        ev.TaskUpdated("k", "completed", {"status": "completed", "end_time": 1}),
    ),
    (
        {
            "subtype": "task_progress",
            "task_id": "k",
            "description": "Reading a.txt",
            "last_tool_name": "Read",
            "usage": {"tool_uses": 2},
        },
        ev.TaskUpdated("k", "running", {"description": "Reading a.txt", "tool": "Read", "usage": {"tool_uses": 2}}),
    ),
    (
        {
            "subtype": "task_notification",
            "task_id": "k",
            "tool_use_id": "t",
            "status": "completed",
            "summary": "s",
            "output_file": "/o",
        },
        ev.TaskFinished("k", "t", "completed", "s", "/o"),
    ),
    (
        {"subtype": "background_tasks_changed", "tasks": [{"task_id": "k"}]},
        ev.BackgroundTasksChanged(({"task_id": "k"},)),
    ),
    (
        {"subtype": "compact_boundary", "compact_metadata": {"trigger": "manual", "pre_tokens": 9, "post_tokens": 3}},
        ev.ConversationCompacted("manual", 9, 3),
    ),
    ({"subtype": "compact_boundary"}, ev.ConversationCompacted()),
    (
        {"subtype": "api_retry", "attempt": 2, "max_retries": 10, "retry_delay_ms": 1178, "error": "unknown"},
        ev.RetryNoticed(2, 10, 1.178, "unknown"),
    ),
    (
        {"subtype": "api_retry", "attempt": 1, "max_retries": 10, "error_status": 529, "error": "overloaded"},
        ev.RetryNoticed(1, 10, None, "overloaded", 529),
    ),
]


@pytest.mark.parametrize(("fields", "event"), SYSTEM_ROWS, ids=[row["subtype"] for row, _ in SYSTEM_ROWS])
def test_every_known_system_row_is_an_event(fields: Json, event: ev.Event) -> None:
    row = msgspec.convert({"type": "system", **fields}, SystemRow)
    assert outcomes.SYSTEM[row.subtype](row) == event


def test_the_table_of_system_rows_is_tested_whole() -> None:
    assert {fields["subtype"] for fields, _ in SYSTEM_ROWS} == outcomes.SYSTEM.keys()
