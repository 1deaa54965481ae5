"""Each tool's row says what, about what, how much and how it ended; runs of calls fold calmly."""

from __future__ import annotations

import re
from typing import Any

import pytest

from claude_kernel.protocol.events import Image, ToolFinished, ToolStarted
from claude_kernel.render import CallState, ToolCall, render_call, render_checklist, render_group
from claude_kernel.render.tools import TOOLS

PROJECT = "/home/me/project"
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


def call(name: str, given: dict[str, Any], result: Any = None, text: str = "", **rest: Any) -> ToolCall:
    seen = {"state": CallState.DONE, "started": 10.0, "finished": 10.4, **rest}
    return ToolCall("1", name, given, text=text, result=result, **seen)


def first_line(made: ToolCall) -> str:
    return render_call(made, now=15.0, project=PROJECT).text.split("\n")[0]


FAILED = {"state": CallState.FAILED}
ROWS = [
    (call("Bash", {"command": "ls -l"}, {"stdout": "x"}), "Bash ls -l · 0.4 s · ✓"),
    (call("Bash", {"command": "x"}, text="Exit code 2\nno", **FAILED), "Bash x · 0.4 s · ✗ exit 2"),
    (call("Bash", {"command": "x"}, state=CallState.RUNNING, finished=None), "Bash x · 5.0 s · running"),
    (call("Bash", {"command": "x"}, state=CallState.WAITING, finished=None), "Bash x · waiting for you"),
    (call("Bash", {"command": "x"}, state=CallState.HELD, finished=None), "Bash x · asks you: run any cell to answer"),
    (call("Bash", {"command": "x"}, state=CallState.DENIED), "Bash x · denied"),
    (call("Bash", {"command": "x"}, state=CallState.INTERRUPTED), "Bash x · 0.4 s · interrupted"),
    (call("Bash", {"command": "a\u202eb"}), "Bash a‹U+202E›b · 0.4 s · ✓"),
    (
        call("Read", {"file_path": f"{PROJECT}/a.py"}, {"file": {"content": "x", "numLines": 212}}),
        "Read a.py · 212 lines · ✓",
    ),
    (call("Read", {"file_path": "a.py"}, text="1\talpha\n2\tbeta"), "Read a.py · 2 lines · ✓"),
    (call("Read", {"file_path": "a.py"}, text="gone", **FAILED), "Read a.py · ✗ failed"),
    (call("Write", {"file_path": "a.py", "content": "a\nb\n"}, {"structuredPatch": []}), "Write a.py · +2 · ✓"),
    (call("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b\nc"}), "Edit a.py · +2 −1 · ✓"),
    (
        call("MultiEdit", {"file_path": "a", "edits": [{"old_string": "a", "new_string": "b"}] * 2}),
        "Edit a · +2 −2 · ✓",
    ),
    (
        call("NotebookEdit", {"notebook_path": "b.ipynb", "new_source": "2"}, {"old_source": "1", "new_source": "2"}),
        "Edit cell b.ipynb · +1 −1 · ✓",
    ),
    (
        call("Grep", {"pattern": "x", "glob": "*.py"}, {"numLines": 3, "content": "a"}),
        'Search "x" in *.py · 3 hits · ✓',
    ),
    (call("Grep", {"pattern": "x"}, {"numFiles": 0, "filenames": []}), 'Search "x" · nothing found · ✓'),
    (call("Glob", {"pattern": "*.py"}, {"numFiles": 2, "filenames": ["a.py", "b.py"]}), "Find *.py · 2 files · ✓"),
    (
        call("WebFetch", {"url": "http://a.b"}, {"code": 404, "bytes": 1500}),
        "Fetch http://a.b · 404 · 0.4 s · 1.5 kB · ✓",
    ),
    (
        call("WebSearch", {"query": "x"}, {"results": [{"content": [{"title": "T", "url": "http://a.b"}]}]}),
        "Search the web x · 1 link · 0.4 s · ✓",
    ),
    (call("TodoWrite", {"todos": [{"content": "a", "status": "completed"}, {"content": "b"}]}), "Plan 1 of 2 done · ✓"),
    (
        call("Task", {"description": "look"}, {"totalToolUseCount": 2, "totalTokens": 1600}),
        "Agent look · 2 steps · 1.6k tokens · 0.4 s · ✓",
    ),
    (call("ExitPlanMode", {"plan": "# Do\n1. it"}), "Plan Do · ✓"),
    (call("Skill", {"skill": "pdf"}), "Skill pdf · ✓"),
    (call("StructuredOutput", {"n": 42}), "Answer 42 · ✓"),
    (call("mcp__notebook__run_python", {"code": "6*7"}, text="42"), "Python 6*7 · 0.4 s · ✓"),
    (call("Unheard", {"x": "y"}), "Unheard y · 0.4 s · ✓"),
]


@pytest.mark.parametrize(("made", "row"), ROWS, ids=[row for _, row in ROWS])
def test_a_row_says_what_about_what_how_much_and_how_it_ended(made: ToolCall, row: str) -> None:
    assert first_line(made) == row


OPEN = {
    "Write",
    "Edit",
    "MultiEdit",
    "NotebookEdit",
    "TodoWrite",
    "AskUserQuestion",
    "ExitPlanMode",
    "StructuredOutput",
    "mcp__notebook__run_python",
}


@pytest.mark.parametrize("name", TOOLS)
def test_changes_are_open_and_the_rest_is_closed(name: str) -> None:
    assert ("<details open" in render_call(call(name, {"file_path": "a"})).html) == (name in OPEN)


@pytest.mark.parametrize("name", [*TOOLS, "Unheard"])
def test_a_failure_is_open_and_says_why(name: str) -> None:
    bundle = render_call(call(name, {}, "Error: no", text="<tool_use_error>no such thing</tool_use_error>", **FAILED))
    assert "<details open" in bundle.html
    assert "no such thing" in bundle.html
    assert "no such thing" in bundle.text
    assert "tool_use_error" not in bundle.html


JUNK: list[Any] = [
    None,
    "x",
    3,
    [],
    [None, 1, "x", []],
    {"x": None},
    {"file": 3, "answers": [], "results": {}, "content": 7},
]


@pytest.mark.parametrize("name", [*TOOLS, "Unheard", "mcp__a__b", "mcp__", ""])
def test_no_shape_of_input_or_result_breaks_a_renderer(name: str) -> None:
    for junk in JUNK:
        given = dict.fromkeys(["command", "file_path", "todos", "questions", "edits", "content", "plan", "url"], junk)
        for state in CallState:
            render_call(ToolCall("1", name, given, state, result=junk, text="t"))
    render_checklist([ToolCall("1", name, {"todos": junk}, result=junk) for junk in JUNK])


BIG = {
    "lines": "a line of <output> & more\n" * 200_000,
    "one line": "x" * 5_000_000,
    "brackets": "<" * 5_000_000,
    "colours": "\x1b[31mx\x1b[32my" * 400_000,
    "ideographs": "漢" * 1_700_000,
}


@pytest.mark.parametrize("big", BIG)
@pytest.mark.parametrize("name", ["Bash", "Write", "Edit", "Unheard", "ExitPlanMode", "TaskCreate"])
def test_five_megabytes_leave_less_than_fifty_kilobytes(name: str, big: str) -> None:
    given = {
        "content": BIG[big],
        "old_string": "a",
        "new_string": BIG[big],
        "plan": BIG[big],
        "command": BIG[big],
        "description": BIG[big],
    }
    assert render_call(call(name, given, text=BIG[big], **FAILED)).size < 50_000


def test_a_cut_result_says_how_much_is_missing_and_where_it_is() -> None:
    bundle = render_call(call("Bash", {"command": "x"}, text="a\n" * 5_000 + "last", kept_at="/tmp/whole.txt"))
    assert "4,905 lines left out; all of it is in /tmp/whole.txt" in bundle.html
    assert "last" in bundle.text


def test_the_whole_of_a_long_command_is_in_the_body() -> None:
    command = "echo start\n" + "x" * 300 + "\nrm -rf /"
    assert "rm -rf /" in render_call(call("Bash", {"command": command})).html.split("</summary>")[1]


def test_an_image_is_shown_from_checked_bytes_only() -> None:
    images = (Image("image/png", DOT), Image("image/png", "AAAA"), Image("image/svg+xml", "PHN2Zy8+"), Image("x", "?"))
    bundle = render_call(call("Read", {"file_path": "a.png"}, images=images))
    assert bundle.html.count("<img") == 1
    assert f"data:image/png;base64,{DOT}" in bundle.html
    assert bundle.html.count("cannot be shown") == 3
    assert "[png image, 1 kB]" in bundle.text


def test_a_background_agents_launch_notice_is_not_shown() -> None:
    bundle = render_call(call("Task", {"description": "x"}, {"isAsync": True}, text="internal metadata"))
    assert "internal metadata" not in bundle.html
    assert "Working in the background." in bundle.html


def test_an_agent_holds_its_steps_and_its_own_words() -> None:
    step = call("Read", {"file_path": "step.py"})
    result = {
        "content": [{"type": "text", "text": "<tools-used-before-summary>x"}, {"type": "text", "text": "both **done**"}]
    }
    html = render_call(call("Task", {"description": "x"}, result, text="[Subagent hand-back]", children=[step])).html
    assert "step.py" in html
    assert "<strong>done</strong>" in html
    assert "hand-back" not in html


def test_agents_within_agents_end_somewhere() -> None:
    made = call("Task", {"description": "deep"})
    for _ in range(300):
        made = call("Task", {"description": "x"}, children=[made])
    assert render_call(made).html.count("<details") < 10


def quiet(count: int) -> list[ToolCall]:
    return [call("Read", {"file_path": f"{n}.py"}) for n in range(count)]


def rows_in_sight(html: str) -> int:
    """Rows that are not inside another."""
    rows = depth = 0
    for tag in re.findall(r"</?details", html):
        rows += depth == 0 and tag == "<details"
        depth += 1 if tag == "<details" else -1
    return rows


def test_four_quiet_calls_fold_and_three_do_not() -> None:
    assert "steps" not in render_group(quiet(3)).html
    assert render_group(quiet(4)).text.startswith("4 steps Read 4 · ✓")


def test_while_a_run_grows_its_height_never_shrinks() -> None:
    heights = [rows_in_sight(render_group(quiet(count), live=True).html) for count in range(1, 12)]
    assert heights == [1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4]
    assert rows_in_sight(render_group(quiet(11)).html) == 1


def test_what_matters_stays_outside_the_fold() -> None:
    failed = call("Bash", {"command": "boom"}, text="Exit code 1", **FAILED)
    edited = call("Edit", {"file_path": "e.py", "old_string": "a", "new_string": "b"})
    text = render_group([*quiet(5), failed, *quiet(4), edited, *quiet(2)]).text
    heads = [line.split(" · ")[0] for line in text.split("\n") if not line.startswith(" ")]
    assert heads == ["5 steps Read 5", "Bash boom", "4 steps Read 4", "Edit e.py", "Read 0.py", "Read 1.py"]


def test_two_hundred_calls_stay_small() -> None:
    calls = [call("Bash", {"command": f"run {n}"}, {"stdout": "line\n" * 2_000}) for n in range(200)]
    assert render_group(calls).size < 250_000


def test_the_task_tools_make_one_checklist() -> None:
    calls = [
        call("TaskCreate", {"subject": "one"}, {"task": {"id": "1"}}),
        call("TaskCreate", {"subject": "two"}, text="Task #2 created successfully: two"),
        call("TaskCreate", {"subject": "three"}, {"task": {"id": "3"}}),
        call("TaskUpdate", {"taskId": "1", "status": "completed"}),
        call("TaskUpdate", {"taskId": "2", "status": "in_progress"}),
        call("TaskUpdate", {"taskId": "3", "status": "deleted"}),
    ]
    assert render_checklist(calls).text == "Plan 1 of 2 done\n    ✓ one\n    ◐ two"


def test_a_checklist_that_was_refused_says_only_why() -> None:
    made = render_checklist([call("TodoWrite", {"todos": []}, text="It is disabled.", state=CallState.FAILED)])
    assert "It is disabled." in made.text
    assert "Nothing is on the list" not in made.html


def test_a_call_follows_its_events() -> None:
    made = ToolCall.begun(ToolStarted(tool_use_id="1", name="Bash", input={"command": "x"}), 1.0)
    made.end(ToolFinished(tool_use_id="1", text="no", is_error=True, refused="user-rejected"), 3.0)
    assert (made.state, made.seconds()) == (CallState.DENIED, 2.0)
    made.interrupt(5.0)
    assert made.state is CallState.DENIED
