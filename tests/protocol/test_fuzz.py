"""Random cuts, junk, and rows that no CLI ever wrote: nothing is lost, nothing raises, and the stream goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from protocol.replay import SCENES, Json, cli_rows, events_of, feed, load, replay, to_line

from claude_kernel.protocol import DIALECTS, Allow, Connection, Prompt
from claude_kernel.protocol import events as ev

quick = settings(
    derandomize=True, database=None, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)

SMALL = [(scene, process) for scene in SCENES for process in load(scene) if len(load(scene)) == 1 and len(process) < 70]
SUGGESTION = {"type": "prompt_suggestion", "suggestion": "still here"}

# --- cuts and junk --------------------------------------------------------------------------------------------------

NOT_JSON = st.binary(max_size=40).map(lambda noise: b"! " + noise.replace(b"\n", b" "))
NO_OBJECT = st.sampled_from([b"[1, 2]", b"42", b'"words"', b"null", b"true"])
UNKNOWN = st.sampled_from(
    [b"{}", b'{"type": "hologram"}', b'{"jsonrpc": "2.0"}', b'{"type": "system", "subtype": "mood"}']
)
BLANK = st.sampled_from([b"", b" ", b"\r", b"\t \r"])


@quick
@given(st.data())
def test_random_cuts_and_junk_change_nothing_but_what_is_reported(data: st.DataObject) -> None:
    scene, process = data.draw(st.sampled_from(SMALL))
    sizes = data.draw(st.lists(st.integers(1, 5000), min_size=1, max_size=20))
    places = st.integers(0, len(process) - 1)
    junk: dict[int, bytes] = {}
    expected: dict[type[ev.Event], int] = {}
    for kind, lines in ((ev.LineDropped, NOT_JSON | NO_OBJECT), (ev.Unrecognized, UNKNOWN), (None, BLANK)):
        drawn = data.draw(st.lists(st.tuples(places, lines), max_size=5))
        for place, line in drawn:
            junk[place] = junk.get(place, b"") + line + b"\n"
        if kind is not None:
            expected[kind] = len(drawn)
    events = replay(process, *sizes, junk=junk).events
    reports = [event for event in events if isinstance(event, ev.LineDropped | ev.Unrecognized)]
    assert {kind: sum(type(report) is kind for report in reports) for kind in expected} == expected
    assert [event for event in events if event not in reports] == list(events_of(scene))


# --- rows that no CLI ever wrote ------------------------------------------------------------------------------------

ROWS = [row for scene in SCENES for row in cli_rows(scene) if len(json.dumps(row)) < 3000]
TYPES = sorted({row["type"] for row in ROWS} | {"callback.request", "session.created", "error", "prompt_suggestion"})


def fields_of(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(fields_of, value.values()))
    return set().union(*map(fields_of, value)) if isinstance(value, list) else set()


FIELDS = sorted({field for row in ROWS for field in fields_of(row)} | {"jsonrpc", "method", "params", "id", "delta"})
SUBTYPES = sorted({str(value) for row in ROWS for value in (row.get("subtype"), row.get("request", {}).get("subtype"))})
# Named characters only: drawing from all of Unicode has hypothesis build its tables first, which takes seconds.
TEXT = st.text(alphabet='a0 \n\r"\\é\u2028東🙂\x00', max_size=5)
NAMES = st.sampled_from(FIELDS) | TEXT
SCALARS: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**30, -(10**400), 1e308])
    | st.floats()
    | TEXT
    | st.sampled_from(["\ud800", "a", "p", "q1", "tool_use", "text", "text_delta", "success", "error", *SUBTYPES])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=8
)
OBJECTS = st.builds(
    lambda kind, subtype, body: {**body, "type": kind, "subtype": subtype},
    st.sampled_from(TYPES),
    st.sampled_from(SUBTYPES),
    st.dictionaries(NAMES, VALUES, max_size=6),
) | st.dictionaries(NAMES, VALUES, max_size=6)


def busy(dialect: str) -> Connection:
    """A connection that waits for everything one can wait for."""
    connection = Connection(DIALECTS[dialect])
    connection.send_prompt(Prompt(text="x", id="p"))
    if not DIALECTS[dialect].host_runs_tools:
        connection.interrupt()
        question = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}
        feed(connection, {"type": "control_request", "request_id": "q1", "request": question})
    return connection


def survives(connection: Connection, line: bytes) -> None:
    """Takes the line, goes on reading, answers whatever is open, and ends."""
    connection.receive_data(line)
    assert feed(connection, SUGGESTION) == [ev.PromptSuggested("still here")]
    for question in connection.open_questions:
        sent = connection.answer(question.id, Allow())
        assert sent.count(b"\n") == (0 if connection.dialect.host_runs_tools else 1)
    refusals = connection.bytes_to_send()
    assert refusals == b"" or refusals.endswith(b"\n")
    assert connection.receive_data(b"")[-1] == ev.StreamEnded()


def to_odd_line(message: Any) -> bytes:
    """As JSON with its escapes, so that lone surrogates can be written at all."""
    return json.dumps(message).encode() + b"\n"


@quick
@given(st.sampled_from(sorted(DIALECTS)), st.lists(OBJECTS, min_size=1, max_size=4))
def test_no_object_whatever_it_holds_raises(dialect: str, messages: list[Json]) -> None:
    survives(busy(dialect), b"".join(map(to_odd_line, messages)))


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for step, inner in steps for found in paths(inner, (*path, step)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    step, *rest = path
    copy = value.copy()
    copy[step] = replaced(value[step], tuple(rest), new)
    return copy


@quick
@given(st.data())
def test_no_recorded_row_raises_whatever_part_of_it_is_replaced(data: st.DataObject) -> None:
    row = data.draw(st.sampled_from(ROWS))
    for _ in range(data.draw(st.integers(1, 3))):
        row = replaced(row, data.draw(st.sampled_from(paths(row)[1:] or [()])), data.draw(VALUES))
    survives(busy(data.draw(st.sampled_from(sorted(DIALECTS)))), to_odd_line(row))


@quick
@given(st.data())
def test_no_recorded_line_raises_whatever_bytes_of_it_are_lost(data: st.DataObject) -> None:
    line = to_line(data.draw(st.sampled_from(ROWS))).rstrip(b"\n")
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, min(len(line), start + 10)))
    noise = data.draw(st.binary(max_size=4))
    survives(busy("direct"), line[:start] + noise + line[end:] + b"\n")


@quick
@given(st.lists(st.binary(max_size=50), max_size=10))
def test_no_bytes_raise(chunks: list[bytes]) -> None:
    connection = Connection(line_limit=64)
    for chunk in chunks:
        connection.receive_data(chunk)
    connection.receive_data(b"")


# --- depth and size, which random values do not reach ---------------------------------------------------------------

HOLE = "HOLE"
TOOL_CALL = {"type": "tool_use", "id": "t", "input": {"x": HOLE}}
TOOL_RESULT = {"type": "tool_result", "content": [HOLE]}
DELTA = {"type": "content_block_delta", "index": HOLE, "delta": {"type": "text_delta", "text": "x"}}
QUESTION = {"subtype": "can_use_tool", "tool_name": "T", "input": {"x": HOLE}}
HOLES: dict[str, Json] = {
    "an unknown row": {"type": "hologram", "x": HOLE},
    "an unknown system row": {"type": "system", "subtype": "mood", "patch": {"x": HOLE}},
    "a task": {"type": "system", "subtype": "task_updated", "patch": {"status": HOLE}},
    "an error": {"type": "error", "error": {"x": HOLE}},
    "a failure": {"type": "result", "is_error": True, "errors": [HOLE]},
    "a cost": {"type": "result", "total_cost_usd": HOLE},
    "a model's cost": {"type": "result", "model_usage_since_last_result": {"m": {"costUSD": HOLE}}},
    "a time": {"type": "rate_limit_event", "rate_limit_info": {"resetsAt": HOLE}},
    "a tool's input": {"type": "assistant", "message": {"content": [TOOL_CALL]}},
    "a tool's result": {"type": "user", "tool_use_result": HOLE, "message": {"content": [TOOL_RESULT]}},
    "a question": {"type": "control_request", "request_id": "q", "request": QUESTION},
    "an index": {"type": "stream_event", "event": DELTA},
}
FILLINGS = {
    **{f"{depth} lists deep": "[" * depth + "]" * depth for depth in (100, 300, 450, 950, 1000, 5000)},
    **{f"{depth} objects deep": '{"x":' * depth + "1" + "}" * depth for depth in (100, 400, 1000)},
    "400 digits": "1" + "0" * 400,
    "5000 digits": "9" * 5000,
    "a float past all floats": "1e999",
    "not a number": "NaN",
    "infinity": "-Infinity",
}


def fill(hole: str, filling: str) -> bytes:
    return json.dumps(HOLES[hole]).replace(f'"{HOLE}"', filling).encode() + b"\n"


@pytest.mark.parametrize("filling", FILLINGS)
@pytest.mark.parametrize("hole", HOLES)
def test_neither_depth_nor_size_raises(hole: str, filling: str) -> None:
    survives(busy("direct"), fill(hole, FILLINGS[filling]))


def test_a_result_with_a_number_past_all_numbers_still_ends_the_turn() -> None:
    connection = Connection()
    connection.send_prompt(Prompt(text="x", id="p"))
    (ended,) = connection.receive_data(fill("a cost", FILLINGS["400 digits"]))
    assert isinstance(ended, ev.TurnEnded)


def test_the_rows_that_are_mutated_are_of_every_kind() -> None:
    asked = {"stream_event", "assistant", "user", "system", "result", "control_request", "control_response"}
    assert set(TYPES) >= asked
