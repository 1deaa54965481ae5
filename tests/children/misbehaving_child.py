"""A CLI of the direct dialect that misbehaves in one named way.

Started as `python -I misbehaving_child.py --fault NAME [--seconds X] [--count N] [the CLI's own arguments]`. Its good
rows look like those of CLI 2.1.326 (captures/text, interrupt, subagent, two_messages_one_turn). A prompt other than
`say X` commits the fault; `say X` answers X, so that a follow-up can be shown, except that a fault which ends the
process comes on any prompt until the process is a resumed one. `strays` says how many answers came to no open question.
It must not import the kernel.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # importing `typing` would be a tenth of this program's start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    Json = dict[str, Any]

SESSION_ID = "5e551011-0000-4000-8000-000000000001"
MODEL = "claude-opus-5-5"
MIB = 1 << 20
USAGE = {
    "input_tokens": 100,
    "output_tokens": 10,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 50,
}
JUNK = (
    b"Debugger attached.\n",
    b"\n   \n\r\n",
    b"\x1b[33mwarning:\x1b[0m something \x1b[1mbold\x1b[0m\n",
    b"\xff\xfe\x80 not UTF-8 \xc3\n",
    b'{"type": "system", "subtype": "note", "text": "bad \xff byte inside"}\n',
    b'{"type": "system", "subtype": "note", "text": "\\ud800 alone"}\n',
    b'["an", "array"]\n42\nnull\n"text"\n',
    b"{}\n",
    b'{"type": 7}\n{"type": null, "message": []}\n',
    b'{"type": "assistant", "message": "not an object"}\n{"type": "stream_event", "event": null}\n',
    b'{"type": "unheard_of", "payload": {}}\n',
    b'{"type": "assistant", "half\n',
)


class Interrupted(Exception):
    """The host stopped the turn."""


def find_option(argv: list[str], flag: str) -> str | None:
    for position, argument in enumerate(argv):
        if argument.startswith(flag + "="):
            return argument[len(flag) + 1 :]
        if argument == flag:
            return argv[position + 1] if position + 1 < len(argv) else ""
    return None


def new_id() -> str:
    h = os.urandom(16).hex()  # the uuid module costs more to import than this
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"


def write_bytes(payload: bytes, descriptor: int = 1, chunk: int = MIB) -> None:
    view = memoryview(payload)
    while view:
        view = view[os.write(descriptor, view[:chunk]) :]


def stay_until_killed() -> NoReturn:
    while True:
        signal.pause()


class Child:
    """Reading, good rows, and the loop; a fault is a method that replaces one turn's middle."""

    def __init__(self, argv: list[str]) -> None:
        self.fault = find_option(argv, "--fault") or ""
        self.message_id = "msg_" + new_id()[:8]
        self.seconds = float(find_option(argv, "--seconds") or "nan")
        self.count = int(find_option(argv, "--count") or 100_000)
        self.resumed = find_option(argv, "--resume") is not None
        self.session_id = find_option(argv, "--resume") or find_option(argv, "--session-id") or SESSION_ID
        self.buffer = b""
        self.strays = self.rows = 0
        self.late: Json | None = None  # a result kept back until the next prompt
        self.text = ""

    def seconds_or(self, default: float) -> float:
        return default if self.seconds != self.seconds else self.seconds

    # --- the wire ---

    def receive(self, timeout_seconds: float | None = None) -> Json | None:
        """The next message; None when the time is up. The end of stdin ends the program."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while b"\n" not in self.buffer:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([0], [], [], left)[0]:
                return None
            if not (more := os.read(0, 65536)):
                if self.fault == "ignore-term":
                    stay_until_killed()
                raise SystemExit(0)
            self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\n")
        message: Json = json.loads(line)
        return message

    def write(self, **row: Any) -> None:
        write_bytes(json.dumps(row).encode() + b"\n")
        if self.fault == "junk":
            self.rows += 1
            write_bytes(JUNK[self.rows % len(JUNK)])

    def reply(self, request: Json, payload: Json) -> None:
        response = {"subtype": "success", "request_id": request["request_id"], "response": payload}
        self.write(type="control_response", response=response)

    def ask(self, request_id: str, **request: Any) -> None:
        self.write(type="control_request", request_id=request_id, request=request)

    def ask_permission(self) -> str:
        request_id, tool_id, tool_input = new_id(), "toolu_" + new_id()[:8], {"command": "touch z.txt"}
        self.whole({"type": "tool_use", "id": tool_id, "name": "Bash", "input": tool_input})
        tool = {"tool_name": "Bash", "display_name": "Bash", "input": tool_input, "tool_use_id": tool_id}
        self.ask(request_id, subtype="can_use_tool", **tool, description="touch z.txt", permission_suggestions=[])
        return request_id

    def wait_for(self, request_id: str, timeout_seconds: float | None = None) -> Json | None:
        """The control_response to that request; None when the time is up."""
        while (message := self.receive(timeout_seconds)) is not None:
            response: Json = message.get("response") or {}
            if message["type"] == "control_response" and response.get("request_id") == request_id:
                return response
            self.between(message)
        return None

    def between(self, message: Json) -> None:
        """What may come in the middle of a turn."""
        if message["type"] == "control_response":
            self.strays += 1
        if message["type"] == "control_request":
            self.reply(message, {"still_queued": []})
            if message["request"]["subtype"] == "interrupt":
                raise Interrupted

    # --- good rows ---

    def event(self, **event: Any) -> None:
        self.write(**self.event_row(**event))

    def event_row(self, **event: Any) -> Json:
        row = {"type": "stream_event", "event": event, "session_id": self.session_id, "parent_tool_use_id": None}
        return row | {"uuid": new_id()}

    def delta(self, text: str) -> None:
        self.text += text
        self.event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": text})

    def start_text(self) -> None:
        self.text = ""
        self.message_id = "msg_" + new_id()[:8]
        message = {"id": self.message_id, "type": "message", "role": "assistant", "model": MODEL, "content": []}
        self.event(type="message_start", message=message | {"stop_reason": None, "usage": USAGE})
        self.event(type="content_block_start", index=0, content_block={"type": "text", "text": ""})

    def whole(self, *blocks: Json, **extra: Any) -> None:
        message: Json = {"id": self.message_id, "type": "message", "role": "assistant", "model": MODEL}
        message |= {"content": list(blocks), "stop_reason": None, "usage": USAGE}
        self.write(type="assistant", message=message, session_id=self.session_id, uuid=new_id(), **extra)

    def finish_text(self, stop_reason: str | None = "end_turn") -> None:
        self.whole({"type": "text", "text": self.text}, parent_tool_use_id=None)
        self.event(type="content_block_stop", index=0)
        self.event(type="message_delta", delta={"stop_reason": stop_reason}, usage={"output_tokens": 10})
        self.event(type="message_stop")

    def say(self, text: str) -> None:
        self.start_text()
        size = max(1, len(text) // 3)
        for at in range(0, len(text), size):
            self.delta(text[at : at + size])
        self.finish_text()

    def init(self) -> None:
        row = {"type": "system", "subtype": "init", "cwd": os.getcwd(), "session_id": self.session_id}
        row |= {"model": MODEL, "permissionMode": "default", "claude_code_version": "2.1.326", "uuid": new_id()}
        self.write(**row, tools=["Bash", "AskUserQuestion"], mcp_servers=[], slash_commands=["compact"])

    def result(self, terminal: str = "completed", **extra: Any) -> Json:
        row: Json = {"type": "result", "session_id": self.session_id, "uuid": new_id(), "usage": USAGE}
        if terminal == "completed":
            row |= {"subtype": "success", "is_error": False, "result": self.text, "stop_reason": "end_turn"}
        else:
            row |= {"subtype": "error_during_execution", "is_error": True, "stop_reason": None, "errors": ["stopped"]}
        row |= {"duration_ms": 38, "duration_api_ms": 15, "num_turns": 1, "total_cost_usd": 0.00061}
        return row | {"modelUsage": {}, "permission_denials": [], "terminal_reason": terminal} | extra

    def lifecycle(self, command_uuid: str, state: str) -> None:
        if command_uuid and self.fault != "no-lifecycle-late-result":
            row = {"type": "command_lifecycle", "command_uuid": command_uuid, "state": state, "uuid": new_id()}
            self.write(**row, session_id=self.session_id)

    # --- the loop ---

    def run(self) -> NoReturn:
        if self.fault == "junk":
            write_bytes(b"".join(JUNK))
        while True:
            message = self.receive()
            assert message is not None
            if message["type"] == "control_request":
                self.control(message)
            elif message["type"] == "user":
                self.turn(message)
            else:
                self.strays += 1

    def control(self, message: Json) -> None:
        if message["request"]["subtype"] != "initialize":
            self.reply(message, {"still_queued": []})
        elif self.fault != "never-init":
            if self.fault == "slow-start":
                time.sleep(self.seconds_or(1.0))
            capabilities = {"commands": [], "agents": [], "models": [{"value": "default", "displayName": "Default"}]}
            self.reply(message, {**capabilities, "account": {}, "claude_code_version": "2.1.326", "pid": os.getpid()})

    def turn(self, message: Json) -> None:
        content = message["message"]["content"]
        prompt = content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
        uuid = message.get("uuid") or ""
        if self.late is not None:
            self.write(**self.late)
            self.late = None
        self.lifecycle(uuid, "queued")
        self.lifecycle(uuid, "started")
        self.init()
        said = prompt[4:] if prompt.startswith("say ") and (self.resumed or self.fault not in ENDING) else None
        try:
            if prompt == "strays":
                self.say(f"strays: {self.strays}")
            elif said is not None:
                self.say(said)
            else:
                FAULTS[self.fault](self)
        except Interrupted:
            self.whole({"type": "text", "text": self.text}, aborted=True)
            note = {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]}
            self.write(type="user", message=note, parent_tool_use_id=None, session_id=self.session_id, uuid=new_id())
            if self.fault == "no-lifecycle-late-result":
                self.late = self.result("aborted_streaming")
                return
            self.write(**self.result("aborted_streaming"))
        else:
            self.write(**self.result())
        self.lifecycle(uuid, "completed")

    # --- faults ---

    def answer_plainly(self) -> None:
        self.say(f"survived {self.fault}")

    def send_long_line(self) -> None:
        size = (80 if self.fault == "huge-line" else 20) * MIB
        write_bytes(b'{"type": "system", "subtype": "status", "status": "' + b"x" * size + b'"}\n')
        self.answer_plainly()

    def flood_stderr(self) -> None:
        self.start_text()
        for _ in range(64):
            write_bytes(b"noise " * (MIB // 6), 2)
            self.delta("more ")
        self.finish_text()

    def stop_in_a_line(self) -> None:
        whole = json.dumps(self.event_row(type="content_block_delta", index=0, delta={"type": "text_delta"}))
        write_bytes(whole[: len(whole) // 2].encode())
        self.say_nothing()

    def say_nothing(self) -> NoReturn:
        while True:
            self.receive()

    def die(self) -> NoReturn:
        self.start_text()
        self.delta("I was ")
        self.delta("about to")
        if self.fault == "die-by-signal":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "die-mid-turn":
            write_bytes(b"fatal: out of cheese\n", 2)
        os._exit(7 if self.fault == "die-mid-turn" else 0)

    def stream_on(self) -> NoReturn:
        self.start_text()
        while True:
            self.delta("tick ")
            self.receive(self.seconds_or(0.05))  # read and dropped, interrupts too

    def send_unknown_request(self) -> None:
        request_id = new_id()
        self.ask(request_id, subtype="no_such_request")
        response = self.wait_for(request_id) or {}
        self.say(f"got: {response.get('subtype')} {response.get('error', '')}".rstrip())

    def withdraw(self) -> None:
        request_id = self.ask_permission()
        self.write(type="control_cancel_request", request_id=request_id)
        answered = self.wait_for(request_id, self.seconds_or(0.3)) is not None
        self.say("withdrawn: answered anyway" if answered else "withdrawn: no answer")

    def leave_question_open(self) -> None:
        self.ask_permission()
        self.say("ended with a question open")

    def close_stdout(self) -> NoReturn:
        self.start_text()
        self.delta("and then")
        os.close(1)
        stay_until_killed()

    def wait_for_interrupt(self) -> NoReturn:
        self.start_text()
        self.delta("working")
        while True:
            message = self.receive()
            assert message is not None
            self.between(message)

    def start_grandchild(self) -> None:
        import subprocess  # only here: it doubles the start

        quiet = subprocess.DEVNULL  # else it would hold our stdout open, which is another fault
        sleeper = subprocess.Popen(["sleep", "300"], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        self.say(f"grandchild: {sleeper.pid}")
        sleeper.returncode = 0  # nobody waits for it; this keeps Popen from warning so on our stderr

    def send_two_results(self) -> None:
        row = {"type": "system", "subtype": "task_notification", "task_id": "t1", "status": "completed"}
        self.write(**row, session_id=self.session_id, uuid=new_id())
        self.say("from the background")
        self.write(**self.result(origin={"kind": "task-notification", "producer": "session-task"}))
        self.init()
        self.say("my own answer")

    def stream_fast(self) -> None:
        self.start_text()
        row = self.event_row(type="content_block_delta", index=0, delta={"type": "text_delta", "text": "word "})
        write_bytes((json.dumps(row).encode() + b"\n") * self.count, chunk=65536)
        self.text = "word " * self.count
        self.finish_text()

    def wait_for_permission(self) -> None:
        response = self.wait_for(self.ask_permission()) or {}
        answer: Json = response.get("response") or {}
        decided = answer.get("behavior", response.get("subtype"))
        self.say(": ".join(filter(None, ["went on", decided, answer.get("message")])))


FAULTS: dict[str, Callable[[Child], None]] = {
    "slow-start": Child.answer_plainly,
    "junk": Child.answer_plainly,
    "long-line": Child.send_long_line,
    "huge-line": Child.send_long_line,
    "stderr-flood": Child.flood_stderr,
    "half-line": Child.stop_in_a_line,
    "die-mid-turn": Child.die,
    "die-by-signal": Child.die,
    "exit-0-without-result": Child.die,
    "ignore-term": Child.answer_plainly,
    "ignore-interrupt": Child.stream_on,
    "unknown-request": Child.send_unknown_request,
    "withdraw": Child.withdraw,
    "answer-after-end": Child.leave_question_open,
    "close-stdout": Child.close_stdout,
    "never-init": Child.answer_plainly,
    "no-lifecycle-late-result": Child.wait_for_interrupt,
    "grandchild": Child.start_grandchild,
    "double-result": Child.send_two_results,
    "silent": lambda child: child.say_nothing(),
    "fast": Child.stream_fast,
    "exit-at-start": Child.answer_plainly,
    "pause-then-go": Child.wait_for_permission,
}
ENDING = {"die-mid-turn", "die-by-signal", "exit-0-without-result"}


def main(argv: list[str]) -> NoReturn:
    child = Child(argv)
    if child.fault not in FAULTS:
        raise SystemExit(f"error: --fault must be one of {', '.join(FAULTS)}")
    if child.fault == "exit-at-start":
        raise SystemExit("error: unknown option '--frobnicate'")
    for number in (signal.SIGTERM, signal.SIGINT):
        if child.fault == "ignore-term":
            signal.signal(number, signal.SIG_IGN)
        else:
            signal.signal(number, lambda caught, _: os._exit(128 + caught))  # 143 and 130, as the real CLI
    if child.fault in ("ignore-term", "close-stdout"):
        signal.alarm(int(child.seconds_or(300)))  # a test that forgets to kill it must not leave it for ever
    child.run()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BrokenPipeError:
        os._exit(141)  # the host closed our stdout; a traceback would only hide that
