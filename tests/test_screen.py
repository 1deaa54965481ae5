"""A turn on the screen: what is sent when, what stands there at the end, and what it costs."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from protocol.replay import SCENES, events_of
from support.model_script import big_text
from support.papers import CellPaper, Notebook, run_by_hourglass
from support.texts import prose

from claude_kernel.protocol import events as ev
from claude_kernel.render import Bundle, ToolCall, render_notice
from claude_kernel.screen import FASTEST_REPAINT_SECONDS, Screen

Step = ev.Event | Callable[[Screen], object] | float
"""An event, something to do with the screen, or seconds to let pass."""

DELTAS_PER_SECOND = 500
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
PICTURE = ev.Image("image/png", DOT)
ASYNC = {"isAsync": True, "status": "async_launched", "agentId": "a1"}


def turn_ended(outcome: ev.Outcome = ev.Outcome.FINISHED) -> ev.TurnEnded:
    usage = ev.Usage(input_tokens=1_000, output_tokens=20, cost_usd=0.01, context_tokens=20_000, context_window=200_000)
    return ev.TurnEnded(prompt_id="p", outcome=outcome, usage=usage)


def finish(screen: Screen, *, interrupted: bool = False) -> None:
    outcome = ev.Outcome.INTERRUPTED if interrupted else ev.Outcome.FINISHED
    screen.finish(turn_ended(outcome), last=[], interrupted=interrupted)


async def perform(screen: Screen, steps: Iterable[Step], gap_seconds: float = 0.0) -> None:
    for step in steps:
        if isinstance(step, float):
            await asyncio.sleep(step)
        elif isinstance(step, ev.Event):
            screen.take(step)
        else:
            step(screen)
        if gap_seconds:
            await asyncio.sleep(gap_seconds)


def play(steps: Iterable[Step], gap_seconds: float = 0.0, *, interrupted: bool = False) -> CellPaper:
    """The cell after a whole turn of these steps."""

    async def scene() -> CellPaper:
        paper = CellPaper()
        screen = Screen(paper, project="/home/me/project")
        screen.begin()
        await perform(screen, steps, gap_seconds)
        finish(screen, interrupted=interrupted)
        return paper

    return run_by_hourglass(scene())


def during(steps: Iterable[Step]) -> CellPaper:
    """The cell in the middle of a turn, at the very moment of the last step."""

    async def scene() -> CellPaper:
        paper = CellPaper()
        screen = Screen(paper, project="/home/me/project")
        screen.begin()
        await perform(screen, steps)
        return paper

    return run_by_hourglass(scene())


def said(text: str, piece: int = 100) -> Iterator[Step]:
    for at in range(0, len(text), piece):
        yield ev.TextStreamed(text[at : at + piece])
    yield ev.TextFinished(text)


def began(call_id: str, name: str = "Bash", parent: str | None = None, **given: Any) -> ev.ToolStarted:
    return ev.ToolStarted(call_id, name, given or {"command": f"echo {call_id}"}, parent=parent)


def ended(call_id: str, **how: Any) -> ev.ToolFinished:
    return ev.ToolFinished(call_id, **{"text": f"printed by {call_id}", **how})


def called(call_id: str, name: str = "Bash", **given: Any) -> Iterator[Step]:
    yield began(call_id, name, **given)
    yield ended(call_id)


# --- how a turn looks while it runs ---------------------------------------------------------------------------------


def test_the_first_delta_is_shown_at_once() -> None:
    paper = during([ev.TextStreamed("Hel")])
    assert "Hel" in paper.visible
    assert paper.sent[-1].at == 0.0


def test_further_deltas_are_gathered_and_shown_soon_after() -> None:
    hasty = during([ev.TextStreamed("one "), 0.001, ev.TextStreamed("two "), 0.001, ev.TextStreamed("three")])
    assert "three" not in hasty.visible
    patient = during([ev.TextStreamed("one "), 0.001, ev.TextStreamed("two "), 2 * FASTEST_REPAINT_SECONDS])
    assert "one two" in patient.visible


def test_the_live_line_is_the_last_output_as_long_as_the_turn_runs_and_then_the_footer() -> None:
    steps: list[Step] = [*said("One."), *called("t1"), 1.5, *said("Two."), ev.ThinkingStreamed("hm"), *called("t2")]
    paper = play(steps, 0.2)
    *running, last = paper.sent
    owner: dict[str, bool] = {}
    for sent in running:
        owner[sent.display_id] = sent.is_live_line
        if len(sent.outputs) > 1:  # a new line is shown below before a block takes the place of the old one
            assert owner[sent.outputs[-1]], "the live line was not the last output"
    assert 'class="live"' not in paper.html
    assert last.display_id == last.outputs[-1]
    assert 'class="foot"' in last.html
    assert re.search(r"s · 1\.0k in, 20 out · \$0\.010 · context 10%", str(last.mime["text/plain"]))


def test_the_live_line_says_what_is_happening_for_how_long_and_how_many_tokens() -> None:
    def live(*steps: Step) -> str:
        return str(during(steps).outputs[-1]["text/plain"])

    assert live() == "Starting"
    assert live(ev.SessionStarted("s", model="claude-opus-5-5")) == "Thinking"
    assert live(began("t", command="pytest -x")) == "Bash pytest -x"
    assert live(ev.ToolInputStreamed("t", "Write", "")) == "Preparing Write"
    assert live(ev.MessageFinished(output_tokens=1_234), began("t"), 12.5) == "Bash echo t · 12 s · 1.2k tokens"
    assert live(20.5).startswith("Still starting")
    assert live(ev.SilenceNoticed(70.0)).startswith("No word from Claude Code for 70 s")
    assert "trying again, 1 of 10" in live(ev.RetryNoticed(1, 10))
    assert live(ev.StatusChanged("compacting")) == "Summarising the conversation to make room"
    assert live(2.0, lambda screen: screen.waiting(True)) == "Waiting for you"
    assert live(lambda screen: screen.waiting(True), lambda screen: screen.waiting(False)) == "Working"


def test_a_quiet_turn_costs_one_small_message_a_second() -> None:
    paper = during([began("t"), 30.0])
    ticks = [sent for sent in paper.sent if sent.at > 0]
    assert 25 <= len(ticks) <= 31
    assert all(sent.is_live_line for sent in ticks)


def test_nothing_is_sent_after_the_end() -> None:
    async def scene() -> None:
        paper = CellPaper()
        screen = Screen(paper)
        screen.begin()
        screen.take(ev.TextStreamed("half"))
        screen.take(ev.TextStreamed(" a word"))
        finish(screen)
        count = len(paper.sent)
        await asyncio.sleep(60)
        assert len(paper.sent) == count

    run_by_hourglass(scene())


def test_every_output_of_a_turn_carries_the_metadata() -> None:
    def mark(screen: Screen) -> None:
        screen.metadata = {"claude": {"turn": "p"}}

    paper = play([mark, *said("Hello."), *called("t")])
    _style, *others = paper.shown
    assert all(paper.metadata[display_id] == {"claude": {"turn": "p"}} for display_id in others)


# --- what is settled stays ------------------------------------------------------------------------------------------


def test_text_that_is_settled_is_never_sent_again() -> None:
    text = "".join(f"Paragraph number-{n}. " + "word " * 60 + "\n\n" for n in range(200))
    paper = play(said(text, 25), 1 / DELTAS_PER_SECOND)
    settled: set[str] = set()
    for sent in paper.sent[:-1]:  # the last is the footer, where the live line was
        assert sent.display_id not in settled
        if sent.kind == "update" and "text/plain" in sent.mime and not sent.is_live_line:
            settled.add(sent.display_id)
    assert len(settled) == len(paper.outputs) - 2
    assert [int(n) for n in re.findall(r"number-(\d+)", paper.plain)] == list(range(200))
    assert [int(n) for n in re.findall(r"number-(\d+)", paper.visible)] == list(range(200))


def test_interim_repaints_carry_html_only() -> None:
    paper = play(said(prose(8_000), 5), 1 / DELTAS_PER_SECOND)
    repaints = [sent for sent in paper.sent if sent.kind == "update" and not sent.is_live_line]
    by_output = {sent.display_id: [s for s in repaints if s.display_id == sent.display_id] for sent in repaints}
    assert any(len(sent) > 3 for sent in by_output.values())
    for sent in by_output.values():
        assert all(set(interim.mime) == {"text/html"} for interim in sent[:-1])
        assert set(sent[-1].mime) == {"text/html", "text/plain"}


def test_the_style_sheet_comes_once_and_first() -> None:
    paper = play([*said(prose(20_000)), *called("t")])
    assert [number for number, sent in enumerate(paper.sent) if sent.is_style] == [0]
    assert paper.html.count("<style>") == 1
    assert len(paper.sent[0].html) <= 2_048


# --- tools ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "shown"),
    [
        ({}, "✓"),
        ({"is_error": True, "text": "Exit code 1\nno such file"}, "✗"),
        ({"is_error": True, "refused": "user-rejected", "text": "not now"}, "denied"),
    ],
)
def test_a_call_is_one_card_that_changes_in_place(how: dict[str, Any], shown: str) -> None:
    running = during([began("t", command="pytest")])
    assert "running" in running.visible
    paper = play([began("t", command="pytest"), 3.0, ended("t", **how)])
    (card,) = (mime for mime in paper.outputs if "pytest" in mime["text/plain"])
    assert shown in card["text/html"]
    assert shown in card["text/plain"]
    assert "running" not in paper.visible
    (display_id,) = (key for key, mime in paper.shown.items() if mime is card)
    assert paper.sent_to(display_id)[0].kind == "show"  # as the live line


def test_a_call_that_waits_for_a_person_says_so() -> None:
    question = ev.Question(id="q", tool_name="Bash", input={}, tool_use_id="t")
    assert "waiting for you" in during([began("t"), 1.0, ev.QuestionAsked(question), 1.0]).visible


def test_a_call_that_was_allowed_runs_from_then_on_and_one_that_was_denied_never_does() -> None:
    question = ev.QuestionAsked(ev.Question(id="q", tool_name="Bash", input={}, tool_use_id="t"))

    def answer(*, allowed: bool) -> Step:
        return lambda screen: screen.slot("t").settle(render_notice("decided"), allowed=allowed)

    asked: list[Step] = [began("t", command="pytest"), question, 60.0]
    running = during([*asked, answer(allowed=True)]).visible
    assert "running" in running
    assert "waiting for you" not in running
    assert "running" not in during([*asked, answer(allowed=False)]).visible
    assert "3.0 s" in play([*asked, answer(allowed=True), 3.0, ended("t")]).plain


def test_a_call_that_was_running_when_the_turn_was_stopped_is_interrupted() -> None:
    paper = play([*said("I will."), began("t"), 2.0], interrupted=True)
    assert "interrupted" in paper.plain
    assert "running" not in paper.visible


def test_many_calls_in_a_row_fold_into_one_line_of_one_output() -> None:
    steps = [step for n in range(10) for step in called(f"t{n}", "Read", file_path=f"/home/me/project/f{n}.py")]
    paper = play(steps, 0.3)
    assert len(paper.outputs) == 3  # the style, the group, the footer
    assert "10 steps" in paper.plain
    assert "f7.py" in paper.plain


def test_the_steps_of_a_sub_agent_are_nested_in_its_card() -> None:
    paper = play(
        [
            began("a", "Task", description="Look around", prompt="Look"),
            began("s1", "Read", parent="a", file_path="/home/me/project/deep.py"),
            ev.TextStreamed("not for the cell", parent="a"),
            ev.ThinkingStreamed("nor this", parent="a"),
            ended("s1", parent="a"),
            began("s2", "Bash", parent="s1", command="echo deeper"),
            ended("a", text="All is well."),
        ],
        0.3,
    )
    assert len(paper.outputs) == 3
    card = paper.outputs[1]["text/html"]
    assert card.index("Look around") < card.index("deep.py") < card.index("All is well.")
    assert card.count("<details") >= 2
    assert "not for the cell" not in paper.html
    assert "nor this" not in paper.html


def test_the_checklist_is_one_output_and_changes_where_it_stands() -> None:
    def todos(call_id: str, *states: str) -> Iterator[Step]:
        yield began(call_id, "TodoWrite", todos=[{"content": f"step {n}", "status": s} for n, s in enumerate(states)])
        yield ended(call_id)

    paper = play(
        [
            *todos("t1", "in_progress", "pending"),
            *said("Working on it."),
            *todos("t2", "completed", "in_progress"),
            *called("b"),
            *todos("t3", "completed", "completed"),
        ],
        0.3,
    )
    plans = [mime["text/plain"] for mime in paper.outputs if "Plan" in mime["text/plain"]]
    assert plans == ["Plan 2 of 2 done\n    ✓ step 0\n    ✓ step 1"]
    assert paper.plain.index("Plan") < paper.plain.index("Working on it.")


def test_thinking_is_folded_and_its_plain_text_is_one_line() -> None:
    paper = play([ev.ThinkingStreamed("First\n"), ev.ThinkingStreamed("then."), ev.ThinkingFinished("First\nthen.", 4)])
    (thought,) = (mime for mime in paper.outputs if "Thought" in mime["text/plain"])
    assert thought["text/html"].count("<details><summary>") == 1
    assert thought["text/plain"] == "Thought First · 4.0 s"


def test_an_image_is_not_sent_again_with_the_rows_that_follow() -> None:
    looked = [began("i", "Read", file_path="a.png"), ended("i", images=(PICTURE,))]
    paper = play([*looked, *called("t1"), 1.0, *called("t2"), 1.0], 0.3)
    assert sum(DOT in sent.html for sent in paper.sent) == 1
    assert paper.html.count(DOT) == 1


def test_what_a_slash_command_prints_is_shown_as_markdown() -> None:
    paper = play([ev.LocalCommandPrinted("## Context\n\n| a | b |\n|---|---|\n| 1 | 2 |"), ev.LocalCommandPrinted(" ")])
    assert "<table>" in paper.html
    assert len(paper.outputs) == 3


def test_notices_stand_where_they_happened() -> None:
    paper = play(
        [
            *said("Before."),
            lambda screen: screen.notice(render_notice("A word of ours.")),
            ev.ConversationCompacted("auto", 150_000, 20_000),
            ev.RateLimited("allowed"),
            ev.RateLimited("rejected", kind="five_hour"),
            ev.ConversationLost("s"),
            *said("After."),
        ]
    )
    words = [
        "Before.",
        "A word of ours.",
        "150k → 20.0k tokens",
        "Usage limit reached",
        "could not be resumed",
        "After.",
    ]
    places = [paper.plain.index(word) for word in words]
    assert places == sorted(places)
    assert paper.plain.count("Usage limit") == 1


def test_an_interrupted_turn_keeps_what_was_streamed() -> None:
    steps: list[Step] = [
        ev.TextStreamed("The first half of a sen"),
        ev.TextStreamed("tence"),
        ev.ThinkingStreamed("And"),
    ]
    paper = play(steps, interrupted=True)
    assert "The first half of a sentence" in paper.plain
    assert "Thought And" in paper.plain
    assert paper.plain.index("sentence") < paper.plain.index("Interrupted.")
    assert all(set(mime) == {"text/html", "text/plain"} for mime in paper.outputs)


def test_a_turn_that_never_began_still_ends_well() -> None:
    async def scene() -> None:
        paper = CellPaper()
        screen = Screen(paper)
        screen.begin()
        screen.finish(None, last=[render_notice("It could not be started.")], interrupted=False)
        assert "It could not be started." in paper.plain
        assert len(paper.outputs) == 3

    run_by_hourglass(scene())


def test_link_definitions_reach_the_segments_that_come_after_them() -> None:
    text = "[far]: https://example.com/far\n\n" + "word " * 1_500 + "\n\n" + "more " * 1_500 + "\n\nsee [far]\n"
    paper = play(said(text))
    assert len(paper.outputs) > 3
    assert 'href="https://example.com/far"' in paper.outputs[-2]["text/html"]


# --- agents in the background ---------------------------------------------------------------------------------------


def test_an_agent_of_an_earlier_cell_updates_its_card_there_after_that_cell_ended() -> None:
    async def scene() -> None:
        notebook = Notebook()
        calls: dict[str, tuple[ToolCall, Screen]] = {}
        first = Screen(notebook.cell(), calls=calls)
        first.begin()
        agent = began("a", "Task", description="Count files", prompt="Count")
        await perform(first, [agent, ended("a", result=ASYNC), *said("It is on its way.")])
        finish(first)
        cell = notebook.cells[0]
        assert "Working in the background" in cell.visible
        footer = cell.outputs[-1]

        second = Screen(notebook.cell(), calls=calls)
        second.begin()
        await perform(second, [*said("Meanwhile."), began("s", "Read", parent="a", file_path="/x/y.py")])
        assert "y.py" in cell.visible
        second.take(ev.TaskFinished("task", tool_use_id="a", status="completed", summary="There are 12."))
        finish(second)
        assert "There are 12." in cell.visible
        assert "Working in the background" not in cell.visible
        assert cell.outputs[-1] == footer
        assert all(set(mime) == {"text/html", "text/plain"} for mime in cell.outputs)
        assert "There are 12." not in notebook.cells[1].visible

    run_by_hourglass(scene())


def test_what_ran_beside_a_background_agent_is_still_interrupted_with_the_turn() -> None:
    agent = began("a", "Task", description="Count", prompt="Count")
    child = began("s", "Read", parent="a", file_path="/x/y.py")
    paper = play([agent, ended("a", result=ASYNC), child, began("b", command="sleep 9"), 1.0], interrupted=True)
    card = paper.outputs[1]
    assert re.search(r"sleep 9.*interrupted", card["text/plain"])
    assert re.search(r"y\.py.*running", re.sub(r"<[^>]+>", "", card["text/html"]))


def test_a_background_task_that_fails_is_shown_as_failed() -> None:
    agent = began("a", "Task", description="Count", prompt="Count")
    gone = ev.TaskFinished("task", tool_use_id="a", status="failed", summary="It broke.")
    paper = play([agent, ended("a", result=ASYNC), gone, ev.TaskFinished("other", status="completed")])
    assert "✗ failed" in paper.plain


# --- cards of questions ---------------------------------------------------------------------------------------------


class Questions:
    """Steps that ask and that decide."""

    def __init__(self) -> None:
        self.slots: list[Any] = []

    def ask(self, words: str = "May I?") -> Step:
        def step(screen: Screen) -> None:
            self.slots.append(screen.slot())
            self.slots[-1].show({"application/vnd.jupyter.widget-view+json": {"model_id": words}, "text/plain": words})

        return step

    def decide(self, number: int = -1, words: str = "✓ Allowed") -> Step:
        return lambda _screen: self.slots[number].settle(render_notice(words))


def test_a_card_stands_in_the_place_of_the_live_line_and_becomes_its_record() -> None:
    questions = Questions()
    asked = during([began("t"), 1.0, questions.ask()])
    assert asked.outputs[-1]["text/plain"] == "May I?"
    assert "running" in asked.visible
    place = list(asked.shown)[-1]
    questions = Questions()
    decided = during([began("t"), 1.0, questions.ask(), 5.0, questions.decide()])
    record, live = decided.outputs[-2:]
    assert record["text/plain"] == "✓ Allowed"
    assert "live" in live["text/html"]
    assert len(asked.shown) == len(decided.shown) - 1
    assert place not in decided.shown  # ids are drawn anew for each screen


def test_no_widget_is_left_when_the_turn_has_ended() -> None:
    questions = Questions()
    steps = [began("t"), questions.ask(), 1.0, questions.decide(), ended("t"), questions.ask("And this?"), 1.0]
    paper = play(steps, interrupted=True)
    assert all(set(mime) == {"text/html", "text/plain"} for mime in paper.outputs)
    assert "No longer asked" in paper.plain


def test_a_record_that_comes_after_the_end_still_replaces_what_was_said_there() -> None:
    async def scene() -> None:
        paper = CellPaper()
        screen, questions = Screen(paper), Questions()
        screen.begin()
        await perform(screen, [began("t"), questions.ask()])
        finish(screen, interrupted=True)
        await perform(screen, [questions.decide(words="No longer asked (the cell was stopped).")])
        assert "the cell was stopped" in paper.plain
        assert "the turn ended" not in paper.plain
        assert "foot" in paper.outputs[-1]["text/html"]

    run_by_hourglass(scene())


def test_several_cards_wait_side_by_side_and_each_gets_its_own_record() -> None:
    questions = Questions()
    steps = [began("t1"), began("t2"), questions.ask("first?"), questions.ask("second?")]
    both = during(steps)
    assert [mime["text/plain"] for mime in both.outputs[-2:]] == ["first?", "second?"]
    questions = Questions()
    steps = [began("t1"), questions.ask("first?"), questions.ask("second?")]
    paper = play([*steps, questions.decide(1, "second: no"), questions.decide(0, "first: yes")])
    assert paper.plain.index("first: yes") < paper.plain.index("second: no")
    assert "?" not in paper.plain


def test_what_is_shown_while_a_card_waits_does_not_disturb_it() -> None:
    questions = Questions()
    paper = during([began("t"), questions.ask(), *said("From another agent."), *called("u"), 3.0])
    cards = [mime for mime in paper.outputs if mime.get("text/plain") == "May I?"]
    assert len(cards) == 1
    (place,) = (key for key, mime in paper.shown.items() if mime is cards[0])
    assert sum("application/vnd.jupyter.widget-view+json" in sent.mime for sent in paper.sent_to(place)) == 1
    assert "From another agent." in paper.visible


# --- the number of outputs ------------------------------------------------------------------------------------------


def alternating(turns: int, size: int) -> Iterator[Step]:
    for n in range(turns):
        yield from said(f"marker-{n} " + prose(size), 500)
        yield from called(f"call-{n}.")


def asking(times: int) -> Iterator[Step]:
    questions = Questions()
    for n in range(times):
        yield began(f"call-{n}.")
        yield questions.ask()
        yield questions.decide(words=f"marker-{n}")
        yield ended(f"call-{n}.")


def thinking(times: int) -> Iterator[Step]:
    for n in range(times):
        yield ev.ThinkingStreamed("hm ")
        yield ev.ThinkingFinished(f"marker-{n} " + "hm " * 40, 1.0)
        yield from called(f"call-{n}.")


def looking(times: int) -> Iterator[Step]:
    for n in range(times):
        yield began(f"call-{n}.", "Read", file_path=f"call-{n}.png")
        yield ended(f"call-{n}.", images=(PICTURE,))


def noticing(times: int) -> Iterator[Step]:
    for n in range(times):
        yield lambda screen, n=n: screen.notice(render_notice(f"marker-{n} "))  # type: ignore[misc]  # a default binds n
        yield from called(f"call-{n}.")


TURNS: dict[str, tuple[Callable[[], Iterator[Step]], int, int]] = {
    # what: steps, the number of texts, the number of calls
    "text and calls 200 times, 500 KB": (lambda: alternating(200, 2_500), 200, 200),
    "short text and calls 200 times": (lambda: alternating(200, 60), 200, 200),
    "500 KB in one text, then 200 calls": (
        lambda: _chain(said("marker-0 " + prose(500_000), 1_000), calls(200)),
        1,
        200,
    ),
    "200 calls, then 500 KB": (lambda: _chain(calls(200), said("marker-0 " + prose(500_000), 1_000)), 1, 200),
    "200 calls in a row": (lambda: calls(200), 0, 200),
    "200 thoughts and calls": (lambda: thinking(200), 200, 200),
    "100 images": (lambda: looking(100), 0, 100),
    "100 questions": (lambda: asking(100), 100, 100),
    "200 notices": (lambda: noticing(200), 200, 200),
}


def calls(times: int) -> Iterator[Step]:
    for n in range(times):
        yield from called(f"call-{n}.")


def _chain(*parts: Iterator[Step]) -> Iterator[Step]:
    for part in parts:
        yield from part


@pytest.mark.parametrize("turn", TURNS)
def test_a_turn_stays_under_fifty_outputs_and_loses_nothing(turn: str) -> None:
    steps, texts, calls_made = TURNS[turn]
    paper = play(steps(), 1 / DELTAS_PER_SECOND)
    assert len(paper.outputs) < 50
    for page in (paper.visible, paper.plain):
        assert {int(n) for n in re.findall(r"marker-(\d+)", page)} == set(range(texts))
        assert {int(n) for n in re.findall(r"call-(\d+)\.", page)} == set(range(calls_made))
    assert all(set(mime) == {"text/html", "text/plain"} for mime in paper.outputs)


def test_text_is_whole_and_in_order_however_it_was_cut_into_outputs() -> None:
    text = prose(300_000)
    paper = play(said(text, 333), 1 / DELTAS_PER_SECOND)
    words = [word for mime in paper.outputs[1:-1] for word in mime["text/plain"].split()]
    assert words == text.split()


# --- what it costs --------------------------------------------------------------------------------------------------


def streamed(text: str, piece: int) -> CellPaper:
    return play(said(text, piece), 1 / DELTAS_PER_SECOND)


@pytest.mark.parametrize("piece", [25, 100])
@pytest.mark.parametrize("size", [10_000, 200_000])
def test_streaming_costs_at_most_four_times_the_text(size: int, piece: int) -> None:
    assert streamed(prose(size), piece).sent_bytes <= 4 * size


def test_streaming_a_megabyte_costs_at_most_four_times_the_text() -> None:
    paper = streamed(prose(1_000_000), 100)
    assert paper.sent_bytes <= 4_000_000
    assert len(paper.outputs) < 50


def test_text_that_is_half_markup_costs_little_more_than_what_the_notebook_keeps() -> None:
    """Tables, links and coloured code come to 3.8 times their Markdown by themselves."""
    paper = streamed(big_text(50_000), 100)
    assert paper.sent_bytes <= 1.06 * paper.saved_bytes


def test_text_that_comes_all_at_once_is_sent_hardly_more_than_once() -> None:
    for text in (prose(40_000), big_text(40_000)):
        paper = play(said(text, 25))
        assert paper.sent_bytes <= 1.05 * paper.saved_bytes
        assert len(paper.sent) <= 3 * len(paper.outputs)


def test_the_cost_grows_with_the_text_and_no_faster() -> None:
    costs = [streamed(prose(size), 50).sent_bytes for size in (20_000, 80_000, 320_000)]
    for small, large in itertools.pairwise(costs):
        assert large / small <= 5


def test_a_slow_stream_is_linear_too() -> None:
    costs = [streamed(prose(size), 5).sent_bytes for size in (5_000, 20_000)]
    assert costs[1] / costs[0] <= 5


@pytest.mark.parametrize("piece", [5, 25, 100])
def test_no_output_is_repainted_more_than_twenty_times_a_second(piece: int) -> None:
    paper = streamed(prose(30_000), piece)
    updates = [sent for sent in paper.sent[:-1] if sent.kind == "update" and not sent.is_live_line]
    first_and_last = 2
    seconds = Counter((sent.display_id, int(sent.at)) for sent in updates)
    assert max(seconds.values()) <= 1 / FASTEST_REPAINT_SECONDS + first_and_last - 1
    interim = Counter(int(sent.at) for sent in updates if "text/plain" not in sent.mime)
    assert max(interim.values()) <= 21


def test_a_tail_is_repainted_the_slower_the_larger_it_is() -> None:
    paper = streamed("word " * 3_000, 5)  # no blank line, so one growing segment
    (display_id,) = (key for key, mime in paper.shown.items() if "word" in mime["text/plain"])
    sent = [s for s in paper.sent_to(display_id) if s.kind == "update" and not s.is_live_line]
    pauses = [later.at - earlier.at for earlier, later in itertools.pairwise(sent[:-1])]
    assert len(pauses) > 5
    assert pauses == sorted(pauses)


def test_two_hundred_calls_cost_little_more_than_their_cards() -> None:
    paper = play(calls(200), 0.2)
    assert paper.sent_bytes < 30 * paper.saved_bytes


def test_a_tool_result_of_five_megabytes_leaves_less_than_50_kilobytes() -> None:
    output = "".join(f"line {n} of the log of a build that went on and on\n" for n in range(100_000))
    assert len(output) > 5_000_000
    paper = play([began("t", command="make"), ended("t", text=output, result={"stdout": output, "stderr": ""})])
    assert paper.saved_bytes < 50_000
    assert "lines left out" in paper.plain
    assert "line 0 of" in paper.plain
    assert "line 99999 of" in paper.plain


# --- what really happened -------------------------------------------------------------------------------------------


def replayed(scene: str) -> list[CellPaper]:
    """A recorded conversation, a cell for each of its turns."""

    async def show() -> list[CellPaper]:
        notebook = Notebook()
        calls: dict[str, tuple[ToolCall, Screen]] = {}
        screen: Screen | None = None
        for event in events_of(scene):
            if screen is None:
                screen = Screen(notebook.cell(), project="/home/me/project", calls=calls)
                screen.begin()
            screen.take(event)
            await asyncio.sleep(0.01)
            if isinstance(event, ev.TurnEnded):
                screen.finish(event, last=[], interrupted=event.outcome is ev.Outcome.INTERRUPTED)
                screen = None
        if screen is not None:
            screen.finish(None, last=[], interrupted=False)
        return notebook.cells

    return run_by_hourglass(show())


@pytest.mark.parametrize("scene", SCENES)
def test_a_recorded_conversation_is_shown_in_outputs_that_read_well_anywhere(scene: str) -> None:
    for paper in replayed(scene):
        assert len(paper.outputs) < 50
        style, *outputs = paper.outputs
        assert style["text/plain"] == ""
        for mime in outputs:
            assert set(mime) == {"text/html", "text/plain"}  # no widget, no text/markdown
            assert mime["text/plain"].strip()
            assert not re.search(r"</?(div|p|span|details|pre|code)[ >]|\x1b", mime["text/plain"])
            assert mime["text/html"].startswith('<div class="ck ')
        assert 'class="live"' not in paper.html
        assert 'class="foot"' in outputs[-1]["text/html"]


@pytest.mark.parametrize("scene", ["text", "partials", "permission", "subagent_tools", "todos", "slash", "search"])
def test_all_that_claude_said_in_a_recording_is_on_the_page_once(scene: str) -> None:
    page = "\n".join(paper.plain for paper in replayed(scene))
    texts = [e.text for e in events_of(scene) if isinstance(e, ev.TextFinished) and e.parent is None]
    assert texts
    for text, times in Counter(texts).items():
        assert page.count(text.strip()) >= times


def test_the_recorded_image_is_shown_as_an_image() -> None:
    assert any('<img src="data:image/png;base64,' in paper.html for paper in replayed("read_image"))


def test_the_recorded_checklist_is_one() -> None:
    for paper in replayed("todos"):
        assert sum(mime["text/plain"].startswith("Plan ") for mime in paper.outputs) <= 1


def test_a_bundle_of_ours_may_end_the_turn() -> None:
    async def scene() -> None:
        paper = CellPaper()
        screen = Screen(paper)
        screen.begin()
        await perform(screen, [*said("So far.")])
        screen.finish(turn_ended(), last=[Bundle("<p>Trouble</p>", "Trouble")], interrupted=True)
        assert [mime["text/plain"] for mime in paper.outputs[1:3]] == ["So far.", "Trouble"]
        assert "Interrupted." in paper.outputs[3]["text/plain"]

    run_by_hourglass(scene())
