"""What a person may answer to a question, as data: each offer is a button, a key and a decision. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from claude_kernel.errors import UsageError
from claude_kernel.prompts.rules import PROJECT, SESSION, USER, Kept, find_kept
from claude_kernel.prompts.scene import Scene
from claude_kernel.protocol import Allow, Decision, Deny, events

NO = "The user did not allow this. Do not try it in another way; ask them, or go on without it."
KEEP_PLANNING = "The user wants to keep planning. Ask them what to change."
DECLINED = "The user declined to answer these questions."


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    """What is typed where there are no buttons."""
    label: str
    decision: Decision
    verdict: str
    """For the record: Allowed, Approved."""
    scope: str = ""
    keeps: str = ""
    """What it allows from now on, in full."""
    main: bool = True
    """False: behind "More…"."""


class Editable(msgspec.Struct, frozen=True):
    """What can be changed before it is allowed: the command, the code, or the whole input as JSON."""

    text: str
    key: str = ""
    """The part of the input that it is; the whole where empty."""

    def decode(self, question: events.Question, text: str) -> Allow:
        """Exactly this text is what runs. Raises `UsageError` where it cannot be."""
        if self.key:
            if not text.strip():
                raise UsageError(f"There is no {self.key}.")
            return Allow(input={**question.input, self.key: text})
        try:
            given: Any = json.loads(text)
        except ValueError as error:
            raise UsageError(f"This is not JSON: {error}.") from None
        if not isinstance(given, dict):
            raise UsageError("The input must be a JSON object, in braces.")
        return Allow(input=given)


def find_offers(question: events.Question, scene: Scene) -> tuple[Offer, ...]:
    """In order of safety: this once, then ever more. Refusing is not here: it takes a reason."""
    if question.tool_name == "ExitPlanMode":
        return _plan_offers()
    once = Offer(key="y", label="Allow once", decision=Allow(), verdict="Allowed", scope="once")
    return (once,) if question.needs_person else (once, *_lasting_offers(question, scene))


def _plan_offers() -> tuple[Offer, ...]:
    ways = (("y", "default", "ask for each edit"), ("a", "acceptEdits", "accept edits"))
    return tuple(
        Offer(
            key=key,
            label=f"Approve, {words}",
            decision=Allow(permissions=({"type": "setMode", "mode": mode, "destination": SESSION},)),
            verdict="Approved the plan",
            scope=words,
        )
        for key, mode, words in ways
    )


def _lasting_offers(question: events.Question, scene: Scene) -> Iterator[Offer]:
    places = (
        ("s", SESSION, "for this session"),
        ("a", PROJECT, "always, in this project"),
        ("u", USER, "always, in every project"),
    )
    for key, place, scope in places:
        kept = find_kept(question, scene, place)
        if not kept.permissions or (place != SESSION and not kept.rules):
            continue
        yield Offer(
            key=key,
            label=_LABELS[place](kept),
            decision=Allow(permissions=kept.permissions),
            verdict="Allowed",
            scope=scope,
            keeps=kept.words,
            main=place != USER,
        )


def _session_label(kept: Kept) -> str:
    if not kept.rules:
        return f"{kept.besides[:1].upper()}{kept.besides[1:]} this session"
    if kept.besides:
        return f"Allow and {kept.besides} this session"
    return f"Allow {kept.label} for this session".replace("  ", " ")


def _always_label(kept: Kept) -> str:
    besides = f", {kept.besides}" if kept.besides else ""
    return f"Always allow {kept.label}".rstrip() + besides


def _everywhere_label(kept: Kept) -> str:
    return f"Always allow {kept.label} in every project".replace("  ", " ")


_LABELS = {
    SESSION: _session_label,
    PROJECT: _always_label,
    USER: _everywhere_label,
}


EDITED_PART = {"Bash": "command", "mcp__notebook__run_python": "code"}


def find_editable(question: events.Question) -> Editable | None:
    if question.tool_name == "ExitPlanMode":
        return None
    key = EDITED_PART.get(question.tool_name, "")
    part = question.input.get(key)
    if isinstance(part, str):
        return Editable(part, key)
    return Editable(json.dumps(question.input, indent=2, ensure_ascii=False))


def refusal(question: events.Question, reason: str, *, stop: bool = False) -> Deny:
    reason = reason.strip()
    if reason:
        return Deny(reason=reason, stop=stop)
    if question.form:
        return Deny(reason=DECLINED, stop=stop)
    return Deny(reason=KEEP_PLANNING if question.tool_name == "ExitPlanMode" else NO, stop=stop)
