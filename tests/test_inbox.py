"""What waits for the coroutine of the turn: its order, what is joined while it waits, when the reader is held back."""

from __future__ import annotations

from claude_kernel.inbox import Inbox
from claude_kernel.protocol import Prompt, events
from claude_kernel.protocol.events import Event, Outcome, TextFinished, TextStreamed, ThinkingStreamed, TurnEnded


def inbox() -> Inbox:
    return Inbox(Prompt(text="go on", id="p"), silence_seconds=60)


def taken(box: Inbox) -> list[Event]:
    found = []
    while (event := box.take()) is not None:
        found.append(event)
    return found


def test_text_that_waits_is_handed_on_as_one() -> None:
    box = inbox()
    for word in ("one ", "two ", "three"):
        box.push(TextStreamed(word))
    assert taken(box) == [TextStreamed("one two three")]


def test_text_that_is_taken_as_it_comes_stays_as_it_came() -> None:
    box = inbox()
    for word in ("one ", "two"):
        box.push(TextStreamed(word))
        assert box.take() == TextStreamed(word)
    assert box.take() is None


def test_nothing_is_joined_across_another_event_or_another_speaker() -> None:
    box = inbox()
    pushed = [
        TextStreamed("a"),
        ThinkingStreamed("hm"),
        TextStreamed("b"),
        TextStreamed("c", parent="agent"),
        TextStreamed("d"),
        TextFinished("bd"),
        TextStreamed("e"),
    ]
    for event in pushed:
        box.push(event)
    assert taken(box) == pushed


def test_fifty_thousand_deltas_that_wait_are_one_event_and_the_reader_goes_on() -> None:
    box, held = inbox(), list[bool]()
    box.hold = held.append
    for _ in range(50_000):
        box.push(TextStreamed("word "))
    box.check_level()
    assert held == [True]
    assert box.take() == TextStreamed("word " * 50_000)
    assert held == [True, False]
    assert len(box) == 0


def test_nothing_comes_after_the_end_of_the_turn() -> None:
    box = inbox()
    end = TurnEnded(prompt_id="p", outcome=Outcome.FINISHED)
    other = TurnEnded(prompt_id="another", outcome=Outcome.FINISHED)
    for event in (other, end, events.TextStreamed("late")):
        box.push(event)
    assert taken(box) == [other, end]
