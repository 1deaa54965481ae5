"""Every tool call the real CLI was recorded making is shown, without the notes that it wrote for the model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claude_kernel.protocol.events import Image
from claude_kernel.render import CallState, ToolCall, render_call

TRANSCRIPTS = sorted((Path(__file__).parent.parent / "transcripts").glob("*.jsonl"))


def blocks(row: Any) -> Iterator[dict[str, Any]]:
    message = row.get("message") if isinstance(row, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    yield from (block for block in content if isinstance(block, dict)) if isinstance(content, list) else ()


def calls_in(transcript: Path) -> list[ToolCall]:
    calls: dict[str, ToolCall] = {}
    for line in transcript.read_text().splitlines():
        row = json.loads(line).get("m")
        for block in blocks(row):
            if block.get("type") == "tool_use":
                calls[block["id"]] = ToolCall(block["id"], block["name"], block["input"])
            elif block.get("type") == "tool_result" and block["tool_use_id"] in calls:
                end(calls[block["tool_use_id"]], block, row.get("tool_use_result"))
    return list(calls.values())


def end(call: ToolCall, block: dict[str, Any], result: Any) -> None:
    content = block.get("content") or ""
    parts: list[dict[str, Any]] = content if isinstance(content, list) else [{"type": "text", "text": content}]
    call.state = CallState.FAILED if block.get("is_error") else CallState.DONE
    call.text = "\n".join(part["text"] for part in parts if part["type"] == "text")
    call.images = tuple(Image(p["source"]["media_type"], p["source"]["data"]) for p in parts if p["type"] == "image")
    call.result = result


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda path: path.stem)
def test_recorded_calls_are_shown(transcript: Path) -> None:
    for call in calls_in(transcript):
        bundle = render_call(call, project="/home/me/project")
        assert bundle.size < 50_000
        assert bundle.text.split("\n")[0].endswith(("✓", "failed", "running")) or "✗ exit" in bundle.text
        assert "tools-used-before-summary" not in bundle.html
        assert "internal metadata" not in bundle.html


def test_there_are_recordings() -> None:
    assert sum(len(calls_in(transcript)) for transcript in TRANSCRIPTS) > 20
