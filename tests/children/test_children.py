"""The children, driven by plain pipes: each dialect's whole script, what each refuses, and the faults.

These tests know the dialects' forms and nothing of the kernel: they prove the doubles, not what uses them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Json = dict[str, Any]
HERE = Path(__file__).parent
STDIO = ["--permission-prompt-tool", "stdio"]
ARGV = {
    "direct": STDIO,
    "bridge": [*STDIO, "--cwd", "/tmp"],
    "host-tools": ["-p", "--verbose", "--dangerously-skip-permissions"],
    "jsonrpc": [],
    "indexed": STDIO,
}
CONTROLLED = ["direct", "bridge", "jsonrpc", "indexed"]
PROMPTS: dict[str, Callable[[str], Json]] = {
    "direct": lambda text: {
        "type": "user",
        "message": {"role": "user", "content": text},
        "parent_tool_use_id": None,
        "session_id": "",
        "uuid": "5b41f787-c8ba-47ae-a53b-60fc64f790fb",
    },
    "bridge": lambda text: {"type": "session.create", "message": {"role": "user", "content": text}},
    "host-tools": lambda text: {"type": "user", "message": {"role": "user", "content": text}},
    "jsonrpc": lambda text: {
        "jsonrpc": "2.0",
        "id": "run-1",
        "method": "run",
        "params": {"message": {"role": "user", "content": text}, "uuid": "run-1"},
    },
    "indexed": lambda text: {
        "type": "user",
        "session_id": "",
        "message": {"role": "user", "content": [{"type": "text", "text": text}]},
        "parent_tool_use_id": None,
    },
}


class Child:
    """A running child, and the host's half of its dialect."""

    def __init__(self, program: str, *argv: str, dialect: str = "direct", state: Path | None = None) -> None:
        self.dialect = dialect
        self.prompted = self.in_turn = False
        environment = {**os.environ, "DIALECT_CHILD_STATE": str(state or "")}
        command = [sys.executable, "-I", str(HERE / program), *argv]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)

    def close(self) -> None:
        with self.process:  # closes the pipes and waits
            self.process.kill()

    def send(self, row: Json) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(row).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> Json:
        """The next row, out of its JSON-RPC notification if it is in one."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"stdout ended; stderr: {self.finish()[1]}"
        row: Json = json.loads(line)
        return row["params"] if row.get("method") == "message" else row

    def read_until(self, wanted: Callable[[Json], bool]) -> list[Json]:
        rows = [self.read()]
        while not wanted(rows[-1]):
            rows.append(self.read())
        return rows

    def finish(self) -> tuple[int, str]:
        _, stderr = self.process.communicate()
        return self.process.returncode, stderr.decode()

    def control(self, subtype: str, request_id: str = "c1", **fields: Any) -> None:
        if self.dialect == "jsonrpc":
            self.send({"jsonrpc": "2.0", "id": request_id, "method": subtype, "params": fields})
        else:
            request = {"subtype": subtype, **fields}
            self.send({"type": "control_request", "request_id": request_id, "request": request})

    def initialise(self) -> None:
        if self.dialect in ("direct", "bridge", "jsonrpc"):
            self.control("initialize")
            self.read()
        if self.dialect == "bridge":
            assert self.read()["subtype"] == "init"

    def prompt(self, text: str) -> None:
        row = PROMPTS[self.dialect](text)
        if self.dialect == "bridge" and self.prompted:
            row["type"] = "session.send"
        self.prompted = self.in_turn = True
        self.send(row)

    def turn(self, text: str) -> list[Json]:
        self.prompt(text)
        return self.read_turn()

    def read_turn(self) -> list[Json]:
        rows = self.read_until(lambda row: row.get("type") == "result")
        if self.dialect == "jsonrpc":
            rows.append(self.read())
        if any(row.get("type") == "command_lifecycle" for row in rows):
            rows.append(self.read())
        self.in_turn = False
        return rows

    def read_question(self) -> tuple[str, Json]:
        """The id to answer to, and the request, taken out of the dialect's own form."""
        if self.dialect == "host-tools":
            row = self.read_until(lambda row: "tool_use" in str(row.get("message")))[-1]
            call = row["message"]["content"][0]
            return call["id"], {"tool_name": call["name"], "input": call["input"], "tool_use_id": call["id"]}
        types = ("control_request", "callback.request")
        row = self.read_until(lambda row: row.get("type") in types or row.get("method") == "can_use_tool")[-1]
        if self.dialect == "jsonrpc":
            return row["id"], row["params"]
        row = row["message"] if self.dialect == "indexed" else row
        assert (row["type"] == "callback.request") == (self.dialect == "bridge")
        return row["request_id"], row["request"]

    def answer(self, question: tuple[str, Json], behavior: str, **fields: Any) -> None:
        question_id, request = question
        snake = self.dialect == "bridge"
        body = {"behavior": behavior, ("tool_use_id" if snake else "toolUseID"): request["tool_use_id"]}
        if "input" in fields:
            body["updated_input" if snake else "updatedInput"] = fields.pop("input")
        body |= fields
        if self.dialect == "jsonrpc":
            self.send({"jsonrpc": "2.0", "id": question_id, "result": body})
        else:
            response = {"subtype": "success", "request_id": question_id, "response": body}
            self.send({"type": "callback.response" if snake else "control_response", "response": response})

    def give_result(self, question: tuple[str, Json], content: Any, is_error: bool = False) -> None:
        block = {"tool_use_id": question[0], "type": "tool_result", "content": content, "is_error": is_error}
        self.send({"type": "user", "message": {"role": "user", "content": [block]}})


Start = Callable[..., Child]


@pytest.fixture
def start() -> Iterator[Start]:
    children: list[Child] = []

    def start_child(program: str, *argv: str, **options: Any) -> Child:
        children.append(Child(program, *argv, **options))
        return children[-1]

    yield start_child
    for child in children:
        child.close()


@pytest.fixture(scope="module")
def talking() -> Iterator[dict[str, Child]]:
    """Children between two turns, by dialect: a start costs more than a turn, and a follow-up must work anyhow."""
    children: dict[str, Child] = {}
    yield children
    for child in children.values():
        child.close()


@pytest.fixture
def child(request: pytest.FixtureRequest, talking: dict[str, Child], state: Path) -> Iterator[Child]:
    """A child of the dialect that the test is parametrized with, initialised and between two turns."""
    dialect: str = request.param
    if dialect not in talking:
        argv = ["--dialect", dialect, *ARGV[dialect]]
        talking[dialect] = Child("dialect_child.py", *argv, dialect=dialect, state=state)
        talking[dialect].initialise()
    yield talking[dialect]
    if talking[dialect].in_turn:  # the test failed; the next one gets a child that is in no such state
        talking.pop(dialect).close()


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


def start_dialect(start: Start, dialect: str, *argv: str, state: Path | None = None) -> Child:
    return start("dialect_child.py", "--dialect", dialect, *ARGV[dialect], *argv, dialect=dialect, state=state)


def start_fault(start: Start, fault: str, *argv: str) -> Child:
    child = start("misbehaving_child.py", "--fault", fault, *STDIO, *argv)
    if fault not in ("never-init", "junk", "exit-at-start"):
        child.initialise()
    return child


def whole_text(rows: list[Json]) -> str:
    """The text of the whole `assistant` rows, which every dialect sends."""
    messages = [row["message"]["content"] for row in rows if row.get("type") == "assistant" and "message" in row]
    return "".join(block.get("text", "") for blocks in messages for block in blocks)


def deltas(rows: list[Json]) -> list[str]:
    events = [row.get("event") or row.get("delta") or {} for row in rows]
    found = [event["delta"] for event in events if event.get("type") == "content_block_delta"]
    return [delta["text"] for delta in found if delta["type"] == "text_delta"]


def result_of(rows: list[Json]) -> Json:
    return next(row for row in rows if row.get("type") == "result")


def tool_result_of(rows: list[Json]) -> Json:
    blocks = [row["message"]["content"][0] for row in rows if row.get("type") == "user"]
    found: Json = next(block for block in blocks if block["type"] == "tool_result")
    return found


@pytest.mark.parametrize("child", ARGV, indirect=True)
def test_text_comes_in_pieces_and_a_result_ends_the_turn(child: Child) -> None:
    rows = child.turn("say Hello, wörld!")
    assert whole_text(rows) == "Hello, wörld!"
    if child.dialect in ("direct", "jsonrpc", "indexed"):
        assert len(deltas(rows)) >= 3
        assert "".join(deltas(rows)) == "Hello, wörld!"
    else:
        assert len([row for row in rows if row["type"] == "assistant"]) >= 3
        assert not deltas(rows)
    result = result_of(rows)
    assert result["subtype"] == "success"
    assert ("total_cost_usd" in result) == (child.dialect in ("direct", "host-tools"))
    if child.dialect == "bridge":
        assert (result["duration_seconds"], "turn_count" in result, "is_error" in result) == (5.2, True, False)
    if child.dialect == "jsonrpc":
        assert rows[-1] == {"jsonrpc": "2.0", "id": "run-1", "result": {"session_id": result["session_id"]}}
    if child.dialect == "direct":
        assert [row["state"] for row in rows if row["type"] == "command_lifecycle"] == [
            "queued",
            "started",
            "completed",
        ]


@pytest.mark.parametrize("child", CONTROLLED, indirect=True)
def test_an_edited_tool_call_runs_as_edited_and_a_denied_one_not_at_all(child: Child) -> None:
    child.prompt("tool ls -la")
    question = child.read_question()
    assert (question[1]["tool_name"], question[1]["input"]) == ("Bash", {"command": "ls -la"})
    child.answer(question, "allow", input={"command": "ls"})
    rows = child.read_turn()
    assert tool_result_of(rows)["content"] == "ran: ls"
    assert whole_text(rows) == "done: ran: ls"

    child.prompt("tool rm -r /")
    child.answer(child.read_question(), "deny", message="not that")
    rows = child.read_turn()
    assert (tool_result_of(rows)["is_error"], tool_result_of(rows)["content"]) == (True, "not that")
    assert whole_text(rows) == "denied: not that"

    child.prompt("tool rm -r /")
    child.answer(child.read_question(), "deny", message="stop", interrupt=True)
    result = result_of(child.read_turn())
    assert (result["subtype"], result["terminal_reason"]) == ("error_during_execution", "aborted_tools")


@pytest.mark.parametrize("child", CONTROLLED, indirect=True)
def test_answers_are_understood_by_the_dialects_own_keys_only(child: Child) -> None:
    by_text = {"Which colour?": "Blue", "Which sizes?": "S, M"}
    by_index = {"0": "Blue", "1": ["S", "M"]}
    own, foreign = (by_index, by_text) if child.dialect == "indexed" else (by_text, by_index)
    child.prompt("ask")
    question = child.read_question()
    assert [q["multiSelect"] for q in question[1]["input"]["questions"]] == [False, True]
    child.answer(question, "allow", input={**question[1]["input"], "answers": own})
    text = whole_text(child.read_turn())
    sizes = ["S", "M"] if child.dialect == "indexed" else "S, M"
    assert text == "answers: " + json.dumps({"Which colour?": "Blue", "Which sizes?": sizes})
    child.prompt("ask")
    child.answer(child.read_question(), "allow", input={"answers": foreign})
    assert whole_text(child.read_turn()) == "The user did not answer the questions."


@pytest.mark.parametrize("child", CONTROLLED, indirect=True)
def test_an_interrupt_ends_the_turn_and_the_next_prompt_works(child: Child) -> None:
    child.prompt("wait")
    child.read_until(lambda row: "working" in json.dumps(row))
    child.control("interrupt", "stop-1")
    rows = child.read_turn()
    assert rows[0].get("request_id", rows[0].get("id", rows[0].get("response", {}).get("request_id"))) == "stop-1"
    assert result_of(rows)["subtype"] == "error_during_execution"
    assert result_of(rows)["terminal_reason"] == "aborted_streaming"
    if child.dialect == "jsonrpc":
        assert rows[-1]["error"]["code"] == -32800
    assert whole_text(child.turn("say still here")) == "still here"


@pytest.mark.parametrize("child", CONTROLLED, indirect=True)
def test_an_interrupt_withdraws_the_open_question_where_the_dialect_can_say_so(child: Child) -> None:
    child.prompt("tool ls")
    question_id, _ = child.read_question()
    child.control("interrupt")
    rows = child.read_turn()
    forms = {
        "direct": {"type": "control_cancel_request", "request_id": question_id},
        "jsonrpc": {"jsonrpc": "2.0", "method": "cancel", "params": {"request_id": question_id}},
    }
    assert (forms.get(child.dialect) in rows) == (child.dialect in forms)
    assert result_of(rows)["terminal_reason"] == "aborted_tools"


@pytest.mark.parametrize("child", ARGV, indirect=True)
def test_a_resumed_process_still_knows_the_word(start: Start, child: Child, state: Path) -> None:
    session_id = result_of(child.turn("remember plum"))["session_id"]
    assert whole_text(child.turn("recall")) == "plum"
    resumed = start_dialect(start, child.dialect, f"--resume={session_id}", state=state)
    resumed.initialise()
    rows = resumed.turn("recall")
    assert (whole_text(rows), result_of(rows)["session_id"]) == ("plum", session_id)


@pytest.mark.parametrize("child", ARGV, indirect=True)
def test_a_failed_turn_fails_in_the_dialects_own_form_and_the_next_one_works(child: Child) -> None:
    rows = child.turn("error")
    errors = [row["error"] for row in rows if "error" in row and row.get("type") != "result"]
    expected = {
        "bridge": [{"code": "API_ERROR", "message": "told to fail"}],
        "indexed": [{"type": "api_error", "message": "told to fail"}],
        "jsonrpc": [{"code": -32000, "message": "told to fail"}],
    }
    assert errors == expected.get(child.dialect, [])
    if child.dialect == "bridge":
        assert result_of(rows)["error"] == "told to fail"
    else:
        assert result_of(rows)["is_error"] is True
    assert whole_text(child.turn("say on we go")) == "on we go"


def test_the_host_runs_the_tools_of_the_host_tools_dialect(start: Start) -> None:
    child = start_dialect(start, "host-tools")
    child.prompt("tool ls")
    question = child.read_question()
    assert question[1]["input"] == {"command": "ls"}
    child.give_result(question, [{"type": "text", "text": "a.txt"}])
    assert whole_text(child.read_turn()) == "done: a.txt"
    child.prompt("tool ls")
    child.give_result(child.read_question(), "no", is_error=True)
    assert whole_text(child.read_turn()) == "denied: no"
    child.prompt("ask")
    child.give_result(child.read_question(), "Blue")
    assert whole_text(child.read_turn()) == "Blue"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_host_tools_turn_with_its_process(start: Start, number: signal.Signals, code: int) -> None:
    child = start_dialect(start, "host-tools")
    child.prompt("wait")
    child.read_until(lambda row: row["type"] == "assistant")
    child.process.send_signal(number)
    assert child.finish()[0] == code


@pytest.mark.parametrize("dialect", ARGV)
def test_each_dialect_refuses_the_prompts_of_the_other_four(start: Start, dialect: str) -> None:
    children = {other: start_dialect(start, dialect) for other in PROMPTS if other != dialect}
    for other, child in children.items():
        child.send(PROMPTS[other]("say hello"))
    for other, child in children.items():
        row = child.read()
        own_error = row.get("type") == "error" or row.get("is_error") is True or "error" in row
        code, stderr = child.finish()
        assert (own_error, code) == (True, 3), other
        assert stderr.startswith(f"dialect {dialect} refused "), other


REFUSED: dict[str, tuple[str, Json]] = {
    "snake case at initialize": (
        "direct",
        {"type": "control_request", "request_id": "1", "request": {"subtype": "initialize", "system_prompt": ""}},
    ),
    "camel case at initialize": (
        "bridge",
        {"type": "control_request", "request_id": "1", "request": {"subtype": "initialize", "systemPrompt": ""}},
    ),
    "any control message": (
        "host-tools",
        {"type": "control_request", "request_id": "1", "request": {"subtype": "initialize"}},
    ),
    "an answer with its id on top": ("direct", {"type": "control_response", "request_id": "1", "response": {}}),
    "a reply in the direct form": ("bridge", {"type": "control_response", "response": {"subtype": "success"}}),
}


def test_foreign_control_forms_are_refused(start: Start) -> None:
    children = {name: start_dialect(start, dialect) for name, (dialect, _) in REFUSED.items()}
    for name, child in children.items():
        child.send(REFUSED[name][1])
    assert {name: child.finish()[0] for name, child in children.items()} == dict.fromkeys(REFUSED, 3)


def test_an_answer_about_another_tool_call_is_refused(start: Start) -> None:
    child = start_dialect(start, "direct")
    child.initialise()
    child.prompt("tool ls")
    question_id, request = child.read_question()
    child.answer((question_id, {**request, "tool_use_id": "toolu_other"}), "allow")
    assert child.finish()[0] == 3


def test_initialize_is_answered_with_an_error_where_there_is_nothing_to_initialise(start: Start) -> None:
    child = start_dialect(start, "indexed")
    child.control("initialize")
    assert child.read()["response"]["subtype"] == "error"
    rows = child.turn("say hi")
    assert rows[0] == {"type": "user", "message": PROMPTS["indexed"]("say hi")["message"]}


FOREIGN_ARGV = [
    ("direct", []),
    ("direct", [*STDIO, "--cwd", "/tmp"]),
    ("bridge", STDIO),
    ("host-tools", ["-p"]),
    ("host-tools", [*ARGV["host-tools"], *STDIO]),
    ("indexed", ["--permission-prompt-tool", "mcp"]),
]


def test_an_argv_of_another_dialect_is_refused(start: Start) -> None:
    children = [start("dialect_child.py", "--dialect", dialect, *argv) for dialect, argv in FOREIGN_ARGV]
    for (dialect, argv), child in zip(FOREIGN_ARGV, children, strict=True):
        code, stderr = child.finish()
        assert (code, stderr.startswith("error: ")) == (1, True), (dialect, argv)


# --- faults ---


@pytest.mark.parametrize(("fault", "code"), [("die-mid-turn", 7), ("die-by-signal", -9), ("exit-0-without-result", 0)])
def test_a_dying_child_dies_mid_turn_and_a_resumed_one_answers(start: Start, fault: str, code: int) -> None:
    child = start_fault(start, fault)
    child.prompt("say anything")
    child.read_until(lambda row: "about to" in json.dumps(row))
    found, stderr = child.finish()
    assert (found, bool(stderr)) == (code, fault == "die-mid-turn")
    child = start_fault(start, fault, "--resume=abc")
    rows = child.turn("say back again")
    assert (whole_text(rows), result_of(rows)["session_id"]) == ("back again", "abc")


def test_junk_surrounds_a_good_answer(start: Start) -> None:
    child = start_fault(start, "junk")
    child.send({"type": "control_request", "request_id": "i", "request": {"subtype": "initialize"}})
    child.prompt("say sense")
    stdout, _ = child.process.communicate()
    with pytest.raises(UnicodeDecodeError):
        stdout.decode()
    assert b'"result": "sense"' in stdout
    assert b"\\ud800" in stdout


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("slow-start", "survived slow-start"),
        ("long-line", "survived long-line"),
        ("withdraw", "withdrawn: no answer"),
        ("answer-after-end", "ended with a question open"),
    ],
)
def test_a_surviving_fault_ends_in_a_result_and_the_next_prompt_works(start: Start, fault: str, text: str) -> None:
    child = start_fault(start, fault, "--seconds", "0.01")
    assert result_of(child.turn("go"))["result"] == text
    assert result_of(child.turn("say next"))["result"] == "next"


def test_an_unknown_request_must_be_answered_before_the_turn_ends(start: Start) -> None:
    child = start_fault(start, "unknown-request")
    child.prompt("go")
    request_id, request = child.read_question()
    assert request == {"subtype": "no_such_request"}
    response = {"subtype": "error", "request_id": request_id, "error": "unsupported"}
    child.send({"type": "control_response", "response": response})
    assert result_of(child.read_turn())["result"] == "got: error unsupported"


def test_an_answer_to_a_question_that_is_over_is_counted(start: Start) -> None:
    child = start_fault(start, "answer-after-end")
    child.prompt("go")
    question = child.read_question()
    child.read_turn()
    child.answer(question, "allow", input={})
    assert result_of(child.turn("strays"))["result"] == "strays: 1"


def test_a_late_result_comes_before_the_next_answer(start: Start) -> None:
    child = start_fault(start, "no-lifecycle-late-result")
    child.prompt("go")
    child.read_until(lambda row: "working" in json.dumps(row))
    child.control("interrupt")
    child.read_until(lambda row: row["type"] == "user")
    rows = child.turn("say second")
    assert [row["type"] for row in rows] == ["result"]
    assert rows[0]["terminal_reason"] == "aborted_streaming"
    assert result_of(child.read_turn())["result"] == "second"


def test_a_foreign_result_comes_before_the_own_one(start: Start) -> None:
    child = start_fault(start, "double-result")
    child.prompt("go")
    foreign = child.read_until(lambda row: row["type"] == "result")[-1]
    own = child.read_until(lambda row: row["type"] == "result")[-1]
    assert (foreign["origin"]["kind"], "origin" in own, own["result"]) == ("task-notification", False, "my own answer")


def test_a_held_permission_waits_for_its_answer(start: Start) -> None:
    child = start_fault(start, "pause-then-go")
    child.prompt("go")
    child.answer(child.read_question(), "allow", input={})
    assert result_of(child.read_turn())["result"] == "went on: allow"


def test_a_child_that_ignores_everything_must_be_killed(start: Start) -> None:
    child = start_fault(start, "ignore-term")
    child.process.send_signal(signal.SIGTERM)
    child.process.send_signal(signal.SIGINT)
    assert result_of(child.turn("say alive"))["result"] == "alive"
    assert child.process.stdin is not None
    child.process.stdin.close()
    with pytest.raises(subprocess.TimeoutExpired):
        child.process.wait(0.1)  # that something does not happen can only be waited for


def test_interrupts_are_ignored_while_the_stream_goes_on(start: Start) -> None:
    child = start_fault(start, "ignore-interrupt", "--seconds", "0.001")
    child.prompt("go")
    child.read_until(lambda row: bool(deltas([row])))
    child.control("interrupt")
    assert all(deltas([child.read()]) == ["tick "] for _ in range(20))


def test_a_closed_stdout_is_not_the_end_of_the_process(start: Start) -> None:
    child = start_fault(start, "close-stdout")
    child.prompt("go")
    assert child.process.stdout is not None
    assert b"and then" in child.process.stdout.read()
    with pytest.raises(subprocess.TimeoutExpired):
        child.process.wait(0.1)  # that something does not happen can only be waited for


def test_a_grandchild_outlives_its_terminated_parent(start: Start) -> None:
    child = start_fault(start, "grandchild")
    grandchild = int(result_of(child.turn("go"))["result"].removeprefix("grandchild: "))
    try:
        child.process.terminate()
        assert child.finish()[0] == 143
        assert os.getsid(grandchild) == grandchild
    finally:
        os.kill(grandchild, signal.SIGKILL)


def test_fast_streams_as_many_deltas_as_asked_for(start: Start) -> None:
    child = start_fault(start, "fast", "--count", "2000")
    rows = child.turn("go")
    assert len(deltas(rows)) == 2000
    assert result_of(rows)["result"] == "word " * 2000


def test_a_child_may_end_at_the_start(start: Start) -> None:
    code, stderr = start_fault(start, "exit-at-start").finish()
    assert (code, stderr) == (1, "error: unknown option '--frobnicate'\n")
