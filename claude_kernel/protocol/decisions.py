"""What may be answered to a question, and what a prompt holds: plain values that the dialects turn into bytes."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from claude_kernel.protocol.events import Image


class Allow(msgspec.Struct, frozen=True, kw_only=True):
    """Go ahead. `input` replaces what was asked for; `permissions` are rules to keep, as the CLI suggested them."""

    input: dict[str, Any] | None = None
    permissions: tuple[dict[str, Any], ...] = ()


class Deny(msgspec.Struct, frozen=True, kw_only=True):
    """No. The reason reaches Claude word for word; `stop` ends the turn as well."""

    reason: str
    stop: bool = False


class Answers(msgspec.Struct, frozen=True):
    """The answers to an AskUserQuestion form, by question text: a label, free text, or several of them."""

    by_question: dict[str, str | list[str]]


class Filled(msgspec.Struct, frozen=True):
    """An MCP server's form, filled in."""

    content: dict[str, Any]


Decision = Allow | Deny | Answers | Filled


def new_id() -> str:
    return str(uuid.uuid4())


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the person. Its id is ours; the CLI names the turn by it."""

    text: str
    images: tuple[Image, ...] = ()
    id: str = msgspec.field(default_factory=new_id)
