"""Content that comes twice is one content; tool results in all their shapes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from claude_kernel.protocol import events as ev
from claude_kernel.protocol.blocks import BlockJoiner, decode_result_content, decode_tool_results, join_text
from claude_kernel.protocol.wire import AssistantRow, Block, StreamBody, UserRow

Json = dict[str, Any]
PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}


def start(message_id: str | None = "m1", **usage: int) -> Json:
    return {"type": "message_start", "message": {"id": message_id, "model": "opus", "usage": usage}}


def block_start(index: int, **block: Any) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def text_delta(text: str, index: int = 0) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}


def thinking_delta(text: str, index: int = 0) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "thinking_delta", "thinking": text}}


def whole(*blocks: Json, message_id: str | None = "m1", **more: Any) -> Json:
    return {"message": {"id": message_id, "content": list(blocks)}, **more}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def thinking(words: str) -> Json:
    return {"type": "thinking", "thinking": words, "signature": "s"}


def join(*rows: Json, joiner: BlockJoiner | None = None) -> list[ev.Event]:
    """Rows with a `type` are stream events, the others whole messages."""
    joiner = joiner or BlockJoiner()
    events: list[ev.Event] = []
    for row in rows:
        parent = row.get("parent_tool_use_id")
        if "type" in row:
            events += joiner.stream(msgspec.convert(row, StreamBody), parent)
        else:
            events += joiner.whole(msgspec.convert({**row, "type": "assistant"}, AssistantRow))
    return [*events, *joiner.flush()]


def said(events: list[ev.Event]) -> list[tuple[str, str]]:
    kinds = (ev.TextStreamed, ev.TextFinished, ev.ThinkingStreamed, ev.ThinkingFinished)
    return [(type(event).__name__, event.text) for event in events if isinstance(event, kinds)]


def streamed_and_finished(*pieces: str) -> list[tuple[str, str]]:
    return [*(("TextStreamed", piece) for piece in pieces), ("TextFinished", "".join(pieces))]


ONE_TEXT: list[tuple[str, list[Json], list[tuple[str, str]]]] = [
    ("whole only", [whole(text("Hello"))], streamed_and_finished("Hello")),
    (
        "deltas and whole",
        [start(), text_delta("Hel"), text_delta("lo"), whole(text("Hello"))],
        streamed_and_finished("Hel", "lo"),
    ),
    (
        "deltas only, finished at the turn's end",
        [start(), text_delta("Hel"), text_delta("lo")],
        streamed_and_finished("Hel", "lo"),
    ),
    (
        "deltas, and a whole that goes further (interrupted streams)",
        [start(), text_delta("Hel"), whole(text("Hello"))],
        streamed_and_finished("Hel", "lo"),
    ),
    (
        "a whole that contradicts its deltas has the last word",
        [start(), text_delta("Hi"), whole(text("Hello"))],
        [("TextStreamed", "Hi"), ("TextFinished", "Hello")],
    ),
    (
        "deltas without a message_start (indexed)",
        [text_delta("Hel"), text_delta("lo"), whole(text("Hello"))],
        streamed_and_finished("Hel", "lo"),
    ),
    (
        "a whole without an id (jsonrpc)",
        [start(), text_delta("Hello"), whole(text("Hello"), message_id=None)],
        streamed_and_finished("Hello"),
    ),
    (
        "the whole of another message is another text",
        [start("m1"), text_delta("one"), whole(text("two"), message_id="m2")],
        [("TextStreamed", "one"), ("TextStreamed", "two"), ("TextFinished", "two"), ("TextFinished", "one")],
    ),
    (
        "two texts in one message, a row each",
        [
            start(),
            text_delta("one"),
            whole(text("one")),
            text_delta("two", 1),
            whole(text("two")),
        ],
        streamed_and_finished("one") + streamed_and_finished("two"),
    ),
    (
        "two texts in one message, one row",
        [start(), text_delta("one"), text_delta("two", 1), whole(text("one"), text("two"))],
        [("TextStreamed", "one"), ("TextStreamed", "two"), ("TextFinished", "one"), ("TextFinished", "two")],
    ),
    (
        "two messages without a message_start, both at index 0 (indexed)",
        [
            text_delta("Hel"),
            text_delta("lo"),
            whole(text("Hello")),
            text_delta("wor"),
            text_delta("ld"),
            whole(text("world"), message_id="m2"),
        ],
        streamed_and_finished("Hel", "lo") + streamed_and_finished("wor", "ld"),
    ),
    (
        "a text at the index that an earlier message gave to a tool (indexed)",
        [block_start(0, type="tool_use", id="t", name="Bash"), text_delta("done"), whole(text("done"))],
        streamed_and_finished("done"),
    ),
    (
        "a new message finishes the one before",
        [start("m1"), text_delta("one"), start("m2"), text_delta("two")],
        streamed_and_finished("one") + streamed_and_finished("two"),
    ),
    (
        "a block that starts with text",
        [start(), block_start(0, **text("Hel")), text_delta("lo"), whole(text("Hello"))],
        streamed_and_finished("Hel", "lo"),
    ),
    (
        "thinking, then text",
        [start(), thinking_delta("hm"), whole(thinking("hm")), text_delta("so", 1), whole(text("so"))],
        [("ThinkingStreamed", "hm"), ("ThinkingFinished", "hm"), *streamed_and_finished("so")],
    ),
    (
        "thinking only whole",
        [whole(thinking("hm"))],
        [("ThinkingStreamed", "hm"), ("ThinkingFinished", "hm")],
    ),
    (
        "thinking never repeated",
        [start(), block_start(0, type="thinking", thinking="h"), thinking_delta("m")],
        [("ThinkingStreamed", "h"), ("ThinkingStreamed", "m"), ("ThinkingFinished", "hm")],
    ),
    ("content that is a string", [{"message": {"content": "Hello"}}], streamed_and_finished("Hello")),
    ("content that is an empty string", [{"message": {"content": ""}}], []),
    ("no content", [{"message": {}}, {"message": None}], []),
    ("an empty block", [start(), block_start(0, **text("")), whole(text(""))], [("TextFinished", "")]),
    ("an empty block never repeated", [start(), block_start(0, **text(""))], []),
    (
        "blocks and deltas of unknown kinds",
        [
            start(),
            {"type": "ping"},
            {"type": "content_block_start", "index": 0},
            {"type": "content_block_delta", "index": 0},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "x"}},
            whole({"type": "redacted_thinking", "data": "x"}, {"type": "hologram"}),
        ],
        [],
    ),
]


@pytest.mark.parametrize(("name", "rows", "expected"), ONE_TEXT, ids=[name for name, *_ in ONE_TEXT])
def test_text_that_comes_twice_is_one_text(name: str, rows: list[Json], expected: list[tuple[str, str]]) -> None:
    assert said(join(*rows)) == expected, name


def test_a_sub_agents_stream_does_not_mix_with_the_conversations_own() -> None:
    agent = {"parent_tool_use_id": "t"}
    events = join(
        start("m1"),
        {**start("m2"), **agent},
        text_delta("ours"),
        {**text_delta("theirs"), **agent},
        {**whole(text("theirs"), message_id="m2"), **agent},
        whole(text("ours")),
    )
    assert [event for event in events if not isinstance(event, ev.MessageStarted)] == [
        ev.TextStreamed("ours"),
        ev.TextStreamed("theirs", parent="t"),
        ev.TextFinished("theirs", parent="t"),
        ev.TextFinished("ours"),
    ]


def test_the_seconds_of_thinking_come_with_its_end() -> None:
    assert join(whole(thinking("hm"), thinking_duration_ms=1500))[-1] == ev.ThinkingFinished("hm", seconds=1.5)


# --- tools ----------------------------------------------------------------------------------------------------------


def input_delta(fragment: str, index: int = 1) -> Json:
    delta = {"type": "input_json_delta", "partial_json": fragment}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def test_a_tools_input_streams_under_its_id_and_name() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    events = join(
        start(),
        block_start(1, **{**call, "input": {}}),
        input_delta('{"comm'),
        input_delta('and":"ls"}'),
        whole(call, tool_use_meta=[{"id": "t1", "display_name": "Shell"}]),
        whole(call),
    )
    assert events[1:] == [
        ev.ToolInputStreamed("t1", "Bash", ""),
        ev.ToolInputStreamed("t1", "Bash", '{"comm'),
        ev.ToolInputStreamed("t1", "Bash", 'and":"ls"}'),
        ev.ToolStarted("t1", "Bash", {"command": "ls"}, display_name="Shell"),
    ]


@pytest.mark.parametrize("kind", ["tool_use", "server_tool_use", "mcp_tool_use"])
def test_every_kind_of_tool_call_is_a_tool_started(kind: str) -> None:
    assert join(whole({"type": kind, "id": "t", "name": "n", "input": None})) == [ev.ToolStarted("t", "n", {})]


@pytest.mark.parametrize("meta", [[{"id": ["t"]}], [{"id": None}], [{}], [{"id": "other"}]], ids=str)
def test_tool_notes_that_name_no_tool_are_ignored(meta: list[Json]) -> None:
    assert join(whole({"type": "tool_use", "id": "t", "name": "n"}, tool_use_meta=meta)) == [
        ev.ToolStarted("t", "n", {})
    ]


def results(*blocks: Json, **more: Any) -> list[ev.ToolFinished]:
    return list(decode_tool_results(msgspec.convert({"type": "user", "message": {"content": blocks}, **more}, UserRow)))


RESULT_CONTENT: list[tuple[Any, str, tuple[ev.Image, ...]]] = [
    ("words", "words", ()),
    ("", "", ()),
    (None, "", ()),
    (5, "", ()),
    ([], "", ()),
    ([text("one"), text("two")], "one\ntwo", ()),
    (["one", text("two")], "one\ntwo", ()),
    ([PNG], "", (ev.Image("image/png", "iVBO"),)),
    ([text("one"), PNG], "one", (ev.Image("image/png", "iVBO"),)),
    ([{"type": "image", "source": {}}], "", (ev.Image("", ""),)),
    ([{"type": "hologram"}, 5, None, {"text": 5}], "", ()),
]


@pytest.mark.parametrize(("content", "words", "images"), RESULT_CONTENT, ids=lambda value: str(value)[:30])
def test_a_result_may_be_words_blocks_or_nothing(content: Any, words: str, images: tuple[ev.Image, ...]) -> None:
    assert decode_result_content(content) == (words, images)
    assert results({"type": "tool_result", "tool_use_id": "t", "content": content}) == [
        ev.ToolFinished("t", text=words, images=images)
    ]


def test_a_tools_end_carries_its_structured_result_and_its_parent() -> None:
    block = {"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": True}
    assert results(text("beside"), block, tool_use_result={"stdout": ""}, parent_tool_use_id="p") == [
        ev.ToolFinished("t", text="no", is_error=True, result={"stdout": ""}, parent="p")
    ]


@pytest.mark.parametrize(
    ("meta", "refused"),
    [
        ([{"id": "t", "non_execution_kind": "user-rejected"}], "user-rejected"),
        ([{"id": "t"}], None),
        ([{"id": "t", "non_execution_kind": 5}], None),
        ([{"id": {}, "non_execution_kind": "user-rejected"}], None),
        ([], None),
    ],
    ids=str,
)
def test_a_tool_that_never_ran_says_why(meta: list[Json], refused: str | None) -> None:
    (finished,) = results({"type": "tool_result", "tool_use_id": "t"}, tool_result_meta=meta)
    assert finished.refused == refused


def test_a_user_row_without_a_message_holds_no_results() -> None:
    assert list(decode_tool_results(UserRow())) == []


def test_the_text_of_a_message_is_that_of_its_text_blocks() -> None:
    assert join_text([Block(type="text", text="a"), Block(type="tool_use"), Block(type="text", text="b")]) == "ab"
    assert (join_text("words"), join_text(None)) == ("words", "")


# --- how full the context is ----------------------------------------------------------------------------------------


def test_a_message_starts_with_all_of_its_context_and_ends_with_its_output() -> None:
    usage = {"input_tokens": 1, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 300}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4000}}
    joiner = BlockJoiner()
    assert join(start("m1", **usage), end, joiner=joiner) == [
        ev.MessageStarted("opus", 321),
        ev.MessageFinished(4000, "end_turn"),
    ]
    assert joiner.context_tokens == 4321


def test_a_sub_agents_context_is_not_the_conversations() -> None:
    agent = {"parent_tool_use_id": "t"}
    joiner = BlockJoiner()
    join(
        start(input_tokens=7),
        {**start("m2", input_tokens=1000), **agent},
        {"type": "message_delta", "usage": {"output_tokens": 5}, **agent},
        {**whole(text("x"), message_id="m3"), "usage": {"input_tokens": 9}, **agent},
        joiner=joiner,
    )
    assert joiner.context_tokens == 7


@pytest.mark.parametrize(
    "row",
    [
        {"message": {"id": "m", "content": [], "usage": {"input_tokens": 7, "cache_read_input_tokens": None}}},
        {"message": {"id": "m", "content": []}, "usage": {"input_tokens": 7}},
    ],
    ids=["in the message", "beside it (bridge)"],
)
def test_without_a_stream_the_context_is_read_from_the_whole_message(row: Json) -> None:
    joiner = BlockJoiner()
    join(row, joiner=joiner)
    assert joiner.context_tokens == 7


def test_a_stream_that_says_nothing_of_usage_leaves_the_context_unknown() -> None:
    joiner = BlockJoiner()
    events = join({"type": "message_start"}, {"type": "message_delta"}, joiner=joiner)
    assert events == [ev.MessageStarted(), ev.MessageFinished()]
    assert joiner.context_tokens is None
