"""The same turns in plain text: each is a string that can be read here as it is read there."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protocol.replay import SCENES, events_of
from support.papers import CellPaper, run_by_hourglass

from claude_kernel.console import Console
from claude_kernel.protocol import events as ev
from claude_kernel.protocol.events import Outcome
from claude_kernel.render import render_notice, render_trouble

PROJECT = "/home/me/project"
USAGE = ev.Usage(input_tokens=1_000, output_tokens=20, cost_usd=0.01)


def written(events: Iterable[ev.Event | float], outcome: Outcome = Outcome.FINISHED) -> str:
    """What a console shows of a turn."""

    async def scene() -> str:
        paper = CellPaper()
        console = Console(paper, project=PROJECT)
        console.begin()
        for event in events:
            if isinstance(event, float):
                await asyncio.sleep(event)
            else:
                console.take(event)
        ended = ev.TurnEnded(prompt_id="p", outcome=outcome, usage=USAGE)
        console.finish(ended, last=[], interrupted=outcome is Outcome.INTERRUPTED)
        assert not paper.outputs  # a console cannot update what it has shown, so nothing is displayed
        return paper.written

    return run_by_hourglass(scene())


def said(text: str, piece: int = 4) -> Iterator[ev.Event]:
    for at in range(0, len(text), piece):
        yield ev.TextStreamed(text[at : at + piece])
    yield ev.TextFinished(text)


STARTED = ev.SessionStarted("s", model="claude-opus-5-5")
FOOTER = "0.0 s · opus-5-5 · 1.0k in, 20 out · $0.010\n\n"


def test_an_answer() -> None:
    assert written([STARTED, *said("**Hello**, you.\n\n- one\n- two")]) == (
        "**Hello**, you.\n\n- one\n- two\n\n" + FOOTER
    )


def test_thinking_a_command_and_an_answer() -> None:
    command = ev.ToolStarted("t", "Bash", {"command": "ls"})
    result = ev.ToolFinished("t", text="a.py\nb.py", result={"stdout": "a.py\nb.py", "stderr": ""})
    turn: list[ev.Event | float] = [
        STARTED,
        ev.ThinkingFinished("Let me look.", 2),
        *said("I look."),
        command,
        3.0,
        result,
        *said("Two."),
    ]
    assert written(turn) == (
        "Thought Let me look. · 2.0 s\n\n"
        "I look.\n\n"
        "Bash ls · 3.0 s · ✓\n    a.py\n    b.py\n\n"
        "Two.\n\n" + FOOTER.replace("0.0 s", "3.0 s")
    )


def test_an_edit_shows_its_diff() -> None:
    patch = [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-two", "+three"]}]
    edit = ev.ToolStarted("t", "Edit", {"file_path": f"{PROJECT}/n.txt", "old_string": "two", "new_string": "three"})
    text = written([edit, ev.ToolFinished("t", text="ok", result={"structuredPatch": patch})])
    assert text.startswith("Edit n.txt · +1 −1 · ✓\n    1 − two\n    1 + three\n\n")


def test_a_checklist_is_written_whenever_it_changed() -> None:
    def todos(call_id: str, status: str) -> list[ev.Event]:
        given = {"todos": [{"content": "write", "status": status}, {"content": "test", "status": "pending"}]}
        return [ev.ToolStarted(call_id, "TodoWrite", given), ev.ToolFinished(call_id)]

    assert written([*todos("t1", "in_progress"), *todos("t2", "completed")]) == (
        "Plan 0 of 2 done\n    ◐ write\n    ○ test\n\n"
        "Plan 1 of 2 done\n    ✓ write\n    ○ test\n\n" + FOOTER.replace("opus-5-5 · ", "")
    )


def test_a_sub_agent_is_one_piece_with_its_steps_when_it_is_home() -> None:
    text = written(
        [
            ev.ToolStarted("a", "Task", {"description": "Look around", "prompt": "Look"}),
            ev.ToolStarted("s", "Read", {"file_path": f"{PROJECT}/deep.py"}, parent="a"),
            ev.TextStreamed("not for the cell", parent="a"),
            ev.TextFinished("not for the cell", parent="a"),
            ev.ThinkingFinished("nor this", parent="a"),
            ev.ToolFinished("s", text="x = 1", parent="a"),
            ev.ToolFinished("a", text="All is well."),
        ]
    )
    assert re.match(r"Agent Look around · .*1 step.* · ✓\n", text)
    assert text.count("Agent") == 1
    assert "not for the cell" not in text
    assert "nor this" not in text


def test_a_refused_and_a_failed_command() -> None:
    refused = [ev.ToolStarted("a", "Bash", {"command": "rm x"}), ev.ToolFinished("a", text="no", refused="rule")]
    failed = [
        ev.ToolStarted("b", "Bash", {"command": "false"}),
        ev.ToolFinished("b", text="Exit code 1", is_error=True),
    ]
    text = written([*refused, *failed])
    assert "Bash rm x · denied" in text
    assert "Bash false · 0.0 s · ✗ exit 1" in text


def test_an_interrupted_turn_keeps_what_was_said_even_where_a_sequence_was_held_back() -> None:
    text = written([ev.TextStreamed("Half a sen"), ev.TextStreamed("tence \x1b[31mred")], Outcome.INTERRUPTED)
    assert text == (
        "Half a sentence red\n\n"
        "Interrupted. What was said so far stays; the next cell goes on from here.\n\n"
        + FOOTER.replace("opus-5-5 · ", "")
    )


def test_notices_of_all_kinds_are_lines_of_their_own() -> None:
    text = written(
        [
            ev.TextStreamed("So far"),
            ev.ConversationCompacted("auto", 150_000, 20_000),
            ev.RateLimited("allowed"),
            ev.RateLimited("rejected", kind="five_hour"),
            ev.ConversationLost("s"),
            ev.LocalCommandPrinted("  "),
            ev.LocalCommandPrinted("printed"),
        ]
    )
    assert text.split("\n\n")[:5] == [
        "So far",
        "The conversation was summarised to make room (150k → 20.0k tokens).",
        "Usage limit reached (five hour).",
        "The conversation so far could not be resumed; this is a new one.",
        "printed",
    ]


def test_what_the_face_adds_is_written_as_text() -> None:
    async def scene() -> str:
        paper = CellPaper()
        console = Console(paper)
        console.notice(render_notice("A word of ours."))
        console.waiting(True)
        console.finish(None, last=[render_trouble("It broke.", "Mend it.")], interrupted=False)
        return paper.written

    assert run_by_hourglass(scene()) == "A word of ours.\n\nIt broke.\nMend it.\n\n0.0 s\n\n"


@pytest.mark.parametrize("scene", SCENES)
def test_a_recorded_conversation_is_plain_text_with_every_answer_once(scene: str) -> None:
    events = events_of(scene)
    text = written(events)
    assert not re.search(r"</?(div|p|span|details|pre|code|summary)[ >]", text)
    assert "\x1b" not in text
    texts = [event.text for event in events if isinstance(event, ev.TextFinished) and event.parent is None]
    for answer in texts:
        assert text.count(answer) >= 1
    streamed = "".join(e.text for e in events if isinstance(e, ev.TextStreamed) and e.parent is None)
    assert sum(map(len, texts)) >= len(streamed)


COLOURED = "plain \x1b[31mred\x1b[0m and \x1b]8;;https://evil.example\x07a link\x1b]8;;\x07 end"


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.lists(st.integers(1, len(COLOURED) - 1), max_size=20))
def test_no_escape_of_the_cli_reaches_the_terminal_however_it_is_cut(cuts: list[int]) -> None:
    edges = [0, *sorted(set(cuts)), len(COLOURED)]
    pieces = [COLOURED[start:end] for start, end in itertools.pairwise(edges)]
    text = written([*map(ev.TextStreamed, pieces), ev.TextFinished(COLOURED)])
    assert text.startswith("plain red and a link end\n\n")


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.lists(st.text("ab \n*`é日", min_size=1), min_size=1, max_size=10))
def test_text_is_written_exactly_once_and_at_once(pieces: list[str]) -> None:
    async def scene() -> None:
        paper = CellPaper()
        console = Console(paper)
        for number, piece in enumerate(pieces):
            console.take(ev.TextStreamed(piece))
            assert paper.written == "".join(pieces[: number + 1])
        console.take(ev.TextFinished("".join(pieces)))
        assert paper.written == "".join(pieces) + "\n\n"

    run_by_hourglass(scene())
