"""What was decided, as the one line that stays in the notebook. Pure but for the clock on the wall."""

from __future__ import annotations

import time

from claude_kernel.prompts.offers import DECLINED, EDITED_PART, KEEP_PLANNING, NO, Offer
from claude_kernel.prompts.scene import Scene
from claude_kernel.prompts.things import sentence_of
from claude_kernel.protocol import Allow, Answers, Decision, Deny, Filled, events
from claude_kernel.render import Bundle, join_bundles, render_answer, render_notice, render_record
from claude_kernel.render.rows import text_in
from claude_kernel.render.visible import one_line

_OUR_WORDS = frozenset({NO, KEEP_PLANNING, DECLINED})


def render_decision(question: events.Question, decision: Decision, offer: Offer | None, scene: Scene) -> Bundle:
    """Who, what, which scope, when; for a form each question with its answer."""
    if isinstance(decision, Deny):
        return _refused(question, decision, scene)
    if isinstance(decision, Answers):
        return _answered(decision)
    if isinstance(decision, Filled):
        server = question.dialog.server if question.dialog else ""
        return render_record("You filled in", f"the form of {server or 'an MCP server'} · {_now()}")
    return _allowed(question, decision, offer, scene)


def _allowed(question: events.Question, decision: Allow, offer: Offer | None, scene: Scene) -> Bundle:
    if question.dialog is not None:
        return render_record("You agreed", f"to visit the page · {_now()}", question.dialog.url)
    agent = scene.find_agent(question)
    whose = f", asked by {one_line(agent, 60)}" if agent else ""
    if offer is not None and question.tool_name == "ExitPlanMode":
        return render_record("You approved the plan", f"· {offer.scope}{whose} · {_now()}")
    scope = "once, as you edited it" if decision.input is not None else offer.scope if offer else "once"
    keeps = f" ({offer.keeps})" if offer is not None and offer.keeps else ""
    return render_record("You allowed", f"{scope}{keeps}{whose} · {_now()}:", _what(question, decision, scene))


def _refused(question: events.Question, decision: Deny, scene: Scene) -> Bundle:
    verdict = "You sent the plan back" if question.tool_name == "ExitPlanMode" else "You denied"
    if question.form or question.dialog is not None:
        verdict = "You declined to answer"
    stopped = " and stopped" if decision.stop else ""
    agent = scene.find_agent(question)
    whose = f", asked by {one_line(agent, 60)}" if agent else ""
    reason = "" if decision.reason in _OUR_WORDS else f" saying “{one_line(decision.reason, 200)}”"
    what = (
        "" if question.form or question.dialog or question.tool_name == "ExitPlanMode" else _what(question, None, scene)
    )
    rest = f"{whose.lstrip(', ')}{reason} · {_now()}{':' if what else ''}".strip()
    return render_record(verdict + stopped, rest, what, good=False)


def _answered(decision: Answers) -> Bundle:
    rows = []
    for asked, given in decision.by_question.items():
        answer = given if isinstance(given, str) else ", ".join(given)
        rows.append(render_answer(asked, answer, _now()))
    return join_bundles(rows)


def _what(question: events.Question, decision: Allow | None, scene: Scene) -> str:
    given = question.input if decision is None or decision.input is None else decision.input
    path = text_in(given, "file_path", "notebook_path")
    subject = scene.short_path(path) if path else text_in(given, "command", "code", "url", "query", "pattern", "path")
    return subject if question.tool_name in EDITED_PART else f"{question.tool_name} {subject}".strip()


def render_withdrawn(question: events.Question, scene: Scene, *, reason: str = "") -> Bundle:
    """The card is gone without an answer: why."""
    reason = reason or scene.withdrawn.get(question.id) or "the turn or the kernel was stopped"
    asked = sentence_of(question, scene)
    return render_notice(f"No longer asked ({one_line(reason, 120)}): {asked}. Nothing was allowed. · {_now()}")


def _now() -> str:
    return time.strftime("%H:%M")
