"""Asking by typed keys, for front ends without widgets: consoles, VS Code's input box. The same choices, in words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from claude_kernel.errors import UsageError
from claude_kernel.prompts.answers import Answer, read_answer, render_numbered
from claude_kernel.prompts.fields import Field, find_fields
from claude_kernel.prompts.offers import Editable, Offer, find_editable, find_offers, refusal
from claude_kernel.prompts.scene import Scene
from claude_kernel.protocol import Allow, Answers, Decision, Deny, Filled, events
from claude_kernel.render import Bundle, render_notice

AskLine = Callable[[str], Awaitable[str]]
Show = Callable[[Bundle], None]
Decided = tuple[Decision, Offer | None]

_MOST_TRIES = 3
_YES = {"yes": "y", "session": "s", "always": "a", "everywhere": "u", "edit": "e", "no": "n", "stop": "x"}


async def ask_by_keys(question: events.Question, scene: Scene, ask_line: AskLine, show: Show) -> Decided:
    """Nothing typed, as when an input box is escaped, is no."""
    if question.dialog is not None:
        return await _ask_dialog(question, question.dialog, ask_line, show), None
    if question.form:
        return await _ask_form(question, ask_line, show), None
    return await _ask_permission(question, scene, ask_line, show)


async def ask_choice(offers: Sequence[Offer], ask_line: AskLine, show: Show) -> Decided:
    """Nothing typed is the last of them, which is the safe one."""
    keys = ", ".join(f"[{offer.key}] {offer.label}" for offer in offers)
    for _ in range(_MOST_TRIES):
        typed = (await ask_line(f"{keys}: ")).strip().lower()
        found = next((offer for offer in offers if typed in (offer.key, offer.label.lower())), None)
        if found is not None:
            return found.decision, found
        if not typed:
            break
        show(render_notice(f"“{typed}” is none of the answers."))
    return offers[-1].decision, offers[-1]


# --- permission and plan --------------------------------------------------------------------------------------------


async def _ask_permission(question: events.Question, scene: Scene, ask_line: AskLine, show: Show) -> Decided:
    offers, editable = find_offers(question, scene), find_editable(question)
    prompt = _prompt(question, offers, editable)
    for offer in offers:
        if offer.keeps:
            show(render_notice(f"[{offer.key}] {offer.scope}: {offer.keeps}"))
    for _ in range(_MOST_TRIES):
        typed = (await ask_line(prompt)).strip()
        word, _, rest = typed.partition(" ")
        key = word.lower().rstrip(":,.")
        key = _YES.get(key, key)
        if key in ("", "n"):
            return refusal(question, rest), None
        if key == "x":
            return refusal(question, rest, stop=True), None
        if key == "e" and editable is not None and not rest:
            edited = await _ask_edited(question, editable, ask_line, show)
            if edited is not None:
                return edited, None
            continue
        for offer in offers:
            if offer.key == key and not rest:
                return offer.decision, offer
        show(render_notice(f"“{typed}” is none of the answers. Nothing was allowed."))
    return refusal(question, ""), None


def _prompt(question: events.Question, offers: Sequence[Offer], editable: Editable | None) -> str:
    if question.tool_name == "ExitPlanMode":
        return "Approve? [y] and ask for each edit, [a] and accept edits, [n what to change] keep planning, [x] stop: "
    words = {"y": "[y]es once", "s": "[s]ession", "a": "[a]lways here", "u": "[u] always everywhere"}
    keys = [words[offer.key] for offer in offers] + (["[e]dit"] if editable is not None else [])
    return f"Allow? {', '.join(keys)}, [n]o (n and why), [x] no and stop: "


async def _ask_edited(question: events.Question, editable: Editable, ask_line: AskLine, show: Show) -> Decision | None:
    """None: back to the question."""
    what = editable.key.capitalize() if editable.key else "Input (JSON)"
    typed = await ask_line(f"{what} to run instead (nothing: back): ")
    if not typed.strip():
        return None
    try:
        return editable.decode(question, typed)
    except UsageError as error:
        show(render_notice(f"{error} Nothing was sent."))
        return None


# --- questions and dialogs --------------------------------------------------------------------------------------------


async def _ask_form(question: events.Question, ask_line: AskLine, show: Show) -> Answers | Deny:
    answers: dict[str, Answer] = {}
    for number, asked in enumerate(question.form, 1):
        show(render_numbered(asked, number, len(question.form)))
        several = "numbers with commas" if asked.multiple else f"1 to {len(asked.choices)}"
        hint = f"{several}, or your own words" if asked.choices else "your answer"
        typed = await ask_line(f"{asked.header or 'Answer'} ({hint}; nothing: decline): ")
        given = read_answer(asked, typed)
        if given is None:
            return refusal(question, "")
        answers[asked.text] = given
    return Answers(answers)


async def _ask_dialog(question: events.Question, dialog: events.Dialog, ask_line: AskLine, show: Show) -> Decision:
    if dialog.url:
        typed = await ask_line("Visited the page? [y]es, [n]o: ")
        return Allow() if typed.strip().lower() in ("y", "yes") else refusal(question, "")
    filled: dict[str, Any] = {}
    for field in find_fields(dialog.schema):
        given = await _ask_field(field, ask_line, show)
        if given is not None:
            filled[field.name] = given
        elif field.required:
            return refusal(question, "")
    return Filled(filled)


async def _ask_field(field: Field, ask_line: AskLine, show: Show) -> Any:
    choices = ", ".join(f"{number} {label}" for number, label in enumerate(field.labels, 1))
    hint = choices or ("yes or no" if field.kind == "boolean" else field.description)
    nothing = "decline" if field.required else "leave out"
    for _ in range(_MOST_TRIES):
        typed = (await ask_line(f"{field.title} ({hint + '; ' if hint else ''}nothing: {nothing}): ")).strip()
        if not typed:
            return None
        if field.values:
            if typed.isascii() and typed.isdigit() and 0 < int(typed) <= len(field.values):
                return field.values[int(typed) - 1]
            if typed in field.values:
                return typed
            show(render_notice(f"“{typed}” is none of the choices."))
            continue
        try:
            return field.decode(typed)
        except UsageError as error:
            show(render_notice(str(error)))
    return None
