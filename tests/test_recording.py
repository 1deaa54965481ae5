"""A turn recorded, packed and unpacked: what is shown again is what was shown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from claude_kernel.protocol import events as ev
from claude_kernel.recording import Entry, Recording, pack, unpack
from claude_kernel.render import Bundle, render_record
from claude_kernel.tools.privacy import Privacy

ENDED = ev.TurnEnded(prompt_id="p", outcome=ev.Outcome.FINISHED, usage=ev.Usage(cost_usd=0.5))


def record(*happened: ev.Event | Bundle) -> list[Entry]:
    times = iter(range(1_000))
    recording = Recording(lambda: float(next(times)))
    for what in happened:
        if isinstance(what, Bundle):
            recording.record(what)
        else:
            recording.note(what)
    return recording.entries()


def again(entries: list[Entry]) -> list[Any]:
    """Through the file."""
    return [what for _, what in unpack(msgspec.json.decode(msgspec.json.encode(pack(entries))))]


def test_pieces_of_text_become_one_where_nothing_came_between() -> None:
    entries = record(
        ev.TextStreamed(text="one "),
        ev.TextStreamed(text="two"),
        ev.TextStreamed(text="an agent's", parent="t"),
        ev.TextStreamed(text=" three"),
    )
    assert [what.text for _, what in entries] == ["one two", "an agent's", " three"]  # type: ignore[union-attr]


def test_reading_it_in_the_middle_loses_and_doubles_nothing() -> None:
    recording = Recording(lambda: 0.0)
    for number in range(20):
        recording.note(ev.TextStreamed(text=f"{number} "))
        recording.entries()
    recording.note(ev.TextFinished(text="".join(f"{number} " for number in range(20))))
    streamed = [what.text for _, what in recording.entries() if isinstance(what, ev.TextStreamed)]
    assert "".join(streamed) == "".join(f"{number} " for number in range(20))
    (text, finished) = again(recording.entries())
    assert text.text == finished.text == "".join(streamed)


def test_everything_comes_back_with_its_time() -> None:
    happened: list[ev.Event | Bundle] = [
        ev.SessionStarted(session_id="s", model="m", version="2"),
        ev.ThinkingFinished(text="hm", seconds=0.0),
        ev.TextFinished(text="said"),
        ev.ToolStarted(tool_use_id="t", name="TaskList", input={}),
        ev.ToolFinished(tool_use_id="t", text="x", is_error=True, result={"a": [1, None, "b"]}, parent="u"),
        ENDED,
    ]
    back = again(record(*happened))
    assert [what for what in back if not isinstance(what, ev.TextStreamed)] == happened
    times = [when for when, _ in unpack(pack(record(*happened)))]
    assert times == sorted(times)
    assert times[-1] > times[0]


@pytest.mark.parametrize("ended", [[ENDED], []], ids=["ended", "not ended"])
def test_text_that_broke_off_is_kept(ended: list[ev.Event]) -> None:
    back = again(
        record(ev.TextFinished(text="whole"), ev.TextStreamed(text="half a "), ev.TextStreamed(text="se"), *ended)
    )
    assert [what.text for what in back if isinstance(what, ev.TextFinished)] == ["whole", "half a se"]
    assert back[-len(ended) :] == ended or not ended


def test_a_record_of_ours_comes_back_and_cannot_bring_more() -> None:
    (back,) = again(record(render_record("Allowed", "once")))
    assert "Allowed" in back.html
    assert "Allowed" in back.text
    hostile = {
        "t": 0,
        "e": "Record",
        "html": "<div><script>alert(1)</script><img src=x onerror=alert(1)></div>",
        "text": "t",
    }
    ((_, shown),) = unpack([hostile])
    assert isinstance(shown, Bundle)
    assert "<script" not in shown.html
    assert "onerror" not in shown.html


def test_five_megabytes_of_a_result_stay_small_and_what_claude_said_stays_whole() -> None:
    said = "word " * 10_000
    entries = record(
        ev.ToolFinished(tool_use_id="t", text="x" * 5_000_000, result={"stdout": "y" * 5_000_000}),
        ev.TextFinished(text=said),
    )
    assert len(msgspec.json.encode(pack(entries))) < 100_000
    back = again(entries)
    assert "characters are not kept" in back[0].text
    assert back[-1].text == said


def test_many_long_results_are_cut_shorter_and_no_image_slips_through() -> None:
    small, large = (ev.Image(media_type="image/png", data="A" * size) for size in (150_000, 250_000))
    few = again(record(ev.ToolFinished(tool_use_id="t", images=(small, large))))
    assert [len(image.data) for image in few[0].images] == [150_000, 0]
    many = record(*(ev.ToolFinished(tool_use_id=str(n), text="z" * 9_000, images=(small,)) for n in range(200)))
    assert len(msgspec.json.encode(pack(many))) < 1_000_000


def test_a_long_file_that_was_edited_is_left_out_and_not_cut() -> None:
    (back,) = again(record(ev.ToolFinished(tool_use_id="t", result={"originalFile": "l\n" * 9_000, "filePath": "/f"})))
    assert back.result == {"filePath": "/f"}


def test_no_secret_of_the_environment_or_of_a_known_shape_is_kept() -> None:
    clean = Privacy().cleaner({"MY_API_KEY": "correct-horse-battery", "HOME": "/home/anna-maria"})
    shaped = "sk-ant-api03-Walnut_Walnut-Walnut"
    long = "x" * 3_990 + shaped + "y" * 50_000 + "correct-horse-battery"  # one of them where it is cut
    entries = record(
        ev.ToolFinished(tool_use_id="t", text=f"MY_API_KEY=correct-horse-battery {shaped}", result={"stdout": long}),
        ev.ToolStarted(tool_use_id="u", name="Bash", input={"command": f"curl -H {shaped}"}),
        ev.TextFinished(text=f"It is {shaped} at /home/anna-maria"),
        render_record("Allowed", shaped),
    )
    kept = msgspec.json.encode(pack(entries, clean)).decode()
    assert "Walnut" not in kept
    assert "correct-horse" not in kept
    assert "/home/anna-maria" in kept


STRANGE: list[object] = [
    None,
    7,
    "text",
    {},
    [None, 7, "x", []],
    [{}],
    [{"t": "x", "e": "TextFinished", "text": 7}],
    [{"t": 10**400, "e": "ToolStarted"}],
    [{"e": "Recording"}, {"e": ["TurnEnded"]}, {"e": "TurnEnded", "outcome": "of another version"}],
]


@pytest.mark.parametrize("packed", STRANGE, ids=str)
def test_what_cannot_be_understood_is_passed_over(packed: object) -> None:
    assert list(unpack(packed)) == []
