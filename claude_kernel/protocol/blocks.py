"""Content that comes twice, as deltas and again whole, becomes one text here. It knows content blocks and no turns.

With partial messages on, the CLI streams each block and then repeats it in an `assistant` row of its own, one block a
row, under the same message id, before the block's stop (scene `text`, CLI 2.1.326). Deltas have no id that joins them
to that row, so whole blocks are matched to streamed ones by message and by kind, in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from claude_kernel.protocol.events import (
    Event,
    Image,
    MessageFinished,
    MessageStarted,
    TextFinished,
    TextStreamed,
    ThinkingFinished,
    ThinkingStreamed,
    ToolFinished,
    ToolInputStreamed,
    ToolStarted,
)
from claude_kernel.protocol.wire import AssistantRow, Block, Delta, StreamBody, StreamRow, UserRow

TOOL_BLOCKS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_DELTA_KINDS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "tool_use"}


class _Streamed(msgspec.Struct):
    """A block of which deltas have come."""

    kind: str
    parts: list[str] = []
    tool_use_id: str = ""
    name: str = ""
    matched: bool = False


class _OpenMessage(msgspec.Struct):
    id: str | None
    blocks: dict[int, _Streamed] = {}


class BlockJoiner:
    def __init__(self) -> None:
        self._open: dict[str | None, _OpenMessage] = {}
        self._tools_started: set[str] = set()
        self.context_tokens: int | None = None
        """What the conversation's own last request held, with its answer."""

    def stream(self, body: StreamBody, parent: str | None) -> Iterator[Event]:
        if body.type == "content_block_delta":
            if body.delta is not None:
                yield from self._delta(body.index, body.delta, parent)
        elif body.type == "content_block_start":
            yield from self._block_started(body, parent)
        elif body.type == "message_start":
            yield from self._message_started(body, parent)
        elif body.type == "message_delta":
            output = _count(body.usage, "output_tokens")
            if parent is None and self.context_tokens is not None:
                self.context_tokens += output
            yield MessageFinished(
                output_tokens=output, stop_reason=body.delta.stop_reason if body.delta else None, parent=parent
            )

    def more_text(self, row: StreamRow) -> TextStreamed | None:
        """A delta of a text block that is open; nothing where `stream` has more to think about."""
        body, parent = row.event, row.parent_tool_use_id
        delta, message = body.delta, self._open.get(parent)
        if delta is None or message is None or delta.type != "text_delta" or body.type != "content_block_delta":
            return None
        block = message.blocks.get(body.index)
        if block is None or block.matched or block.kind != "text":
            return None
        block.parts.append(delta.text)
        return TextStreamed(delta.text, parent)

    def whole(self, row: AssistantRow) -> Iterator[Event]:
        """The blocks of an `assistant` row; what was streamed already is not repeated."""
        parent, message = row.parent_tool_use_id, row.message
        if message is None:
            return
        usage = message.usage or row.usage
        current = self._open.get(parent)
        # One of the two may have no id: deltas in indexed, whole messages in jsonrpc.
        same = current is not None and (current.id == message.id or None in (current.id, message.id))
        if not same and usage:
            self._note_context(usage, parent)
        titles = _by_id(row.tool_use_meta)
        for block in _as_blocks(message.content):
            if block.type in TOOL_BLOCKS:
                yield from self._tool_started(block, parent, titles.get(block.id, {}))
            elif block.type == "text":
                rest = self._rest(current, same, "text", block.text)
                if rest:
                    yield TextStreamed(text=rest, parent=parent)
                yield TextFinished(text=block.text, parent=parent)
            elif block.type == "thinking":
                rest = self._rest(current, same, "thinking", block.thinking)
                if rest:
                    yield ThinkingStreamed(text=rest, parent=parent)
                seconds = None if row.thinking_duration_ms is None else row.thinking_duration_ms / 1000
                yield ThinkingFinished(text=block.thinking, seconds=seconds, parent=parent)

    def flush(self) -> Iterator[Event]:
        """At the end of a turn: what was streamed and never repeated whole is finished as it stands."""
        for parent in list(self._open):
            yield from self._flush(parent)

    def _message_started(self, body: StreamBody, parent: str | None) -> Iterator[Event]:
        yield from self._flush(parent)
        message = body.message
        self._open[parent] = _OpenMessage(message.id if message else None)
        usage = message.usage if message else None
        if usage:
            self._note_context(usage, parent)
        yield MessageStarted(model=message.model if message else "", input_tokens=_context(usage), parent=parent)

    def _block_started(self, body: StreamBody, parent: str | None) -> Iterator[Event]:
        block = body.content_block
        if block is None:
            return
        kind = "tool_use" if block.type in TOOL_BLOCKS else block.type
        self._message(parent).blocks[body.index] = _Streamed(kind, tool_use_id=block.id, name=block.name)
        if kind == "tool_use":
            yield ToolInputStreamed(tool_use_id=block.id, name=block.name, fragment="", parent=parent)
        elif block.text or block.thinking:
            first = Delta(type=f"{kind}_delta", text=block.text, thinking=block.thinking)
            yield from self._delta(body.index, first, parent)

    def _delta(self, index: int, delta: Delta, parent: str | None) -> Iterator[Event]:
        kind = _DELTA_KINDS.get(delta.type)
        if kind is None:  # signatures, citations
            return
        blocks = self._message(parent).blocks
        block = blocks.get(index)
        if block is None or block.matched or block.kind != kind:
            # Without a message_start (indexed) the next message begins at index 0 again.
            block = blocks[index] = _Streamed(kind)
        if kind == "text":
            block.parts.append(delta.text)
            yield TextStreamed(text=delta.text, parent=parent)
        elif kind == "thinking":
            block.parts.append(delta.thinking)
            yield ThinkingStreamed(text=delta.thinking, parent=parent)
        else:
            yield ToolInputStreamed(
                tool_use_id=block.tool_use_id, name=block.name, fragment=delta.partial_json, parent=parent
            )

    def _tool_started(self, block: Block, parent: str | None, meta: dict[str, Any]) -> Iterator[Event]:
        if block.id in self._tools_started:
            return
        self._tools_started.add(block.id)
        yield ToolStarted(
            tool_use_id=block.id,
            name=block.name,
            input=block.input if isinstance(block.input, dict) else {},
            parent=parent,
            display_name=str(meta.get("display_name") or ""),
        )

    def _rest(self, streamed: _OpenMessage | None, same: bool, kind: str, whole: str) -> str:
        """What of a whole block has not been streamed. Under another message's id only the very same text is taken
        for a repetition. A whole that contradicts its deltas adds nothing here: `…Finished` carries it, and that is
        the authority."""
        for block in streamed.blocks.values() if streamed else ():
            if block.kind != kind or block.matched:
                continue
            so_far = "".join(block.parts)
            if same or so_far == whole:
                block.matched = True
                return whole[len(so_far) :] if whole.startswith(so_far) else ""
        return whole

    def _flush(self, parent: str | None) -> Iterator[Event]:
        message = self._open.pop(parent, None)
        for block in message.blocks.values() if message else ():
            if block.matched or not block.parts:
                continue
            text = "".join(block.parts)
            if block.kind == "text":
                yield TextFinished(text=text, parent=parent)
            else:
                yield ThinkingFinished(text=text, parent=parent)

    def _message(self, parent: str | None) -> _OpenMessage:
        message = self._open.get(parent)
        if message is None:  # deltas without a message_start (indexed)
            message = self._open[parent] = _OpenMessage(None)
        return message

    def _note_context(self, usage: dict[str, Any], parent: str | None) -> None:
        if parent is None:
            self.context_tokens = _context(usage)


def decode_tool_results(row: UserRow) -> Iterator[ToolFinished]:
    refusals = _by_id(row.tool_result_meta)
    for block in _as_blocks(row.message.content if row.message else None):
        if block.type != "tool_result":
            continue
        text, images = decode_result_content(block.content)
        yield ToolFinished(
            tool_use_id=block.tool_use_id,
            text=text,
            images=images,
            is_error=bool(block.is_error),
            result=row.tool_use_result,
            refused=_word(refusals.get(block.tool_use_id, {}).get("non_execution_kind")),
            parent=row.parent_tool_use_id,
        )


def decode_result_content(content: Any) -> tuple[str, tuple[Image, ...]]:
    """`content` may be a string, a list of blocks, or nothing."""
    if isinstance(content, str):
        return content, ()
    texts: list[str] = []
    images: list[Image] = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict) and isinstance(block.get("source"), dict):
            source = block["source"]
            images.append(Image(str(source.get("media_type") or ""), str(source.get("data") or "")))
        elif isinstance(block, dict) and isinstance(block.get("text"), str):
            texts.append(block["text"])
    return "\n".join(texts), tuple(images)


def join_text(content: str | list[Block] | None) -> str:
    return "".join(block.text for block in _as_blocks(content) if block.type == "text")


def _as_blocks(content: str | list[Block] | None) -> list[Block]:
    if isinstance(content, str):
        return [Block(type="text", text=content)] if content else []
    return content or []


def _by_id(metas: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {meta["id"]: meta for meta in metas if isinstance(meta.get("id"), str)}


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _context(usage: dict[str, Any] | None) -> int:
    return sum(_count(usage, key) for key in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"))


def _count(usage: dict[str, Any] | None, key: str) -> int:
    value = (usage or {}).get(key)
    return value if isinstance(value, int) else 0
