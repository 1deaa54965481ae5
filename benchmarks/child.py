"""The CLI's part in the measurements: a small program of the direct dialect that writes exactly what it is told to.

Started as `python -I child.py [the CLI's own arguments]`. Its rows look like those of CLI 2.1.326. As that does, it
streams deltas only where `--include-partial-messages` is given, and repeats every text whole. A prompt holds a script,
wherever in it, since some hosts wrap what a person wrote:

| prompt                  | answer                                                                               |
|-------------------------|--------------------------------------------------------------------------------------|
| `bench:text:P:MS:FILE`  | the text in FILE, in deltas of P characters, MS milliseconds apart; 0: at full speed |
| `bench:stamp:MS`        | after MS milliseconds one delta that says when it was written                        |
| `bench:received`        | when the prompt was read                                                             |
| `bench:ask:N`           | N permission questions, one after the other; then when each answer was read          |
| `bench:cards:N:FILE`    | N tool calls with their results, in the text in FILE, at full speed                  |
| `bench:hold`            | a first word, and then nothing until it is interrupted or killed                     |
| anything else           | `You said: …`                                                                        |

Times are of the machine's monotonic clock, in nanoseconds, written as `<<TIME>>`. It must not import the kernel.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time

TYPE_CHECKING = False  # importing `typing` would be a tenth of this program's start
if TYPE_CHECKING:
    from typing import Any, NoReturn

    Json = dict[str, Any]

SESSION_ID = "be9c0000-0000-4000-8000-000000000001"
UUID = "be9c0000-0000-4000-8000-000000000002"
MODEL = "claude-opus-5-5"
SCRIPT = re.compile(r"\bbench:(\w+):?([\w.:/-]*)")
USAGE = {"input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 50}


def encode(row: Json) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"


def write(payload: bytes) -> None:
    view = memoryview(payload)
    while view:
        view = view[os.write(1, view[: 1 << 20]) :]


def event_row(message_id: str, **event: Any) -> Json:
    row = {"type": "stream_event", "event": event, "session_id": SESSION_ID, "parent_tool_use_id": None}
    return row | {"uuid": UUID, "api_message_id": message_id}


class Child:
    def __init__(self, argv: list[str]) -> None:
        self.partial = "--include-partial-messages" in argv
        self.messages = 0
        self.calls = 0
        self.text = ""
        self.last_text = ""
        self.built: dict[str, tuple[list[bytes], str]] = {}
        """The deltas of a text, made once, so that a second run of a prompt measures the pipe and not this program."""

    # --- rows -----------------------------------------------------------------------------------------------------

    def send(self, **row: Any) -> None:
        write(encode(row | {"session_id": SESSION_ID, "uuid": UUID}))

    def delta_row(self, text: str) -> bytes:
        delta = {"type": "text_delta", "text": text}
        return encode(event_row(f"msg_{self.messages}", type="content_block_delta", index=0, delta=delta))

    def event(self, **event: Any) -> None:
        if self.partial:
            write(encode(event_row(f"msg_{self.messages}", **event)))

    def start_text(self) -> None:
        self.messages += 1
        message = {"id": f"msg_{self.messages}", "type": "message", "role": "assistant", "model": MODEL, "content": []}
        self.event(type="message_start", message=message | {"stop_reason": None, "usage": USAGE})
        self.event(type="content_block_start", index=0, content_block={"type": "text", "text": ""})

    def finish_text(self, text: str) -> None:
        self.last_text = text
        self.whole({"type": "text", "text": text})
        self.event(type="content_block_stop", index=0)
        self.event(type="message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 10})
        self.event(type="message_stop")

    def whole(self, *blocks: Json) -> None:
        message: Json = {"id": f"msg_{self.messages}", "type": "message", "role": "assistant", "model": MODEL}
        message |= {"content": list(blocks), "stop_reason": None, "usage": USAGE}
        self.send(type="assistant", message=message, parent_tool_use_id=None)

    def say(self, text: str) -> None:
        self.start_text()
        if self.partial:
            write(self.delta_row(text))
        self.finish_text(text)

    def call_tool(self, name: str, tool_input: Json) -> str:
        self.calls += 1
        tool_id = f"toolu_{self.calls}"
        self.whole({"type": "tool_use", "id": tool_id, "name": name, "input": tool_input})
        return tool_id

    def finish_tool(self, tool_id: str, text: str) -> None:
        block = {"type": "tool_result", "tool_use_id": tool_id, "content": text, "is_error": False}
        self.send(type="user", message={"role": "user", "content": [block]}, parent_tool_use_id=None)

    # --- the loop -------------------------------------------------------------------------------------------------

    def run(self) -> NoReturn:
        while True:
            message, read_at = self.receive()
            if message["type"] == "control_request":
                self.control(message)
            elif message["type"] == "user":
                self.turn(message, read_at)

    def receive(self) -> tuple[Json, int]:
        line = sys.stdin.buffer.readline()
        read_at = time.monotonic_ns()
        if not line:
            raise SystemExit(0)
        message: Json = json.loads(line)
        return message, read_at

    def control(self, message: Json) -> None:
        payload: Json = {"still_queued": []}
        if message["request"]["subtype"] == "initialize":
            models = [{"value": "default", "displayName": "Default", "description": ""}]
            payload = {"commands": [], "agents": [], "models": models, "account": {}, "output_style": "default"}
            payload |= {"claude_code_version": "2.1.326", "pid": os.getpid()}
        response = {"subtype": "success", "request_id": message["request_id"], "response": payload}
        write(encode({"type": "control_response", "response": response}))

    def turn(self, message: Json, read_at: int) -> None:
        content = message["message"]["content"]
        prompt = content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
        prompt_id = message.get("uuid")
        for state in ("queued", "started") if prompt_id else ():
            self.send(type="command_lifecycle", command_uuid=prompt_id, state=state)
        self.send(
            type="system", subtype="init", cwd=os.getcwd(), model=MODEL, permissionMode="default",
            claude_code_version="2.1.326", tools=["Bash", "Read"], mcp_servers=[], slash_commands=["compact"],
            apiKeySource="none", output_style="default",
        )  # fmt: skip
        found = SCRIPT.search(prompt)
        word, rest = (found[1], found[2]) if found else ("", "")
        if word == "text":
            self.stream(rest)
        elif word == "stamp":
            self.stamp(float(rest) / 1000)
        elif word == "received":
            self.say(f"<<{read_at}>>")
        elif word == "ask":
            self.ask(int(rest))
        elif word == "cards":
            self.show_cards(rest)
        elif word == "hold":
            self.hold()
        else:
            self.say(f"You said: {prompt[:200]}")
        self.send(
            type="result", subtype="success", is_error=False, result=self.last_text, stop_reason="end_turn",
            usage=USAGE, duration_ms=38, duration_api_ms=15, num_turns=1, total_cost_usd=0.00061, modelUsage={},
            permission_denials=[], terminal_reason="completed",
        )  # fmt: skip
        if prompt_id:
            self.send(type="command_lifecycle", command_uuid=prompt_id, state="completed")

    # --- prompts --------------------------------------------------------------------------------------------------

    def stream(self, rest: str) -> None:
        deltas, text = self.build(rest)
        pause_seconds = float(rest.split(":", 2)[1]) / 1000
        self.start_text()
        if pause_seconds:
            due = time.monotonic()
            for delta in deltas:
                if self.partial:
                    write(delta)
                due += pause_seconds
                time.sleep(max(0.0, due - time.monotonic()))
        elif self.partial:
            write(b"".join(deltas))
        self.finish_text(text)

    def build(self, rest: str) -> tuple[list[bytes], str]:
        if rest not in self.built:
            piece, _, path = rest.split(":", 2)
            size = int(piece)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            # The same message id in all of them: only the first run's is the message's own, and nobody looks.
            self.built[rest] = [self.delta_row(text[at : at + size]) for at in range(0, len(text), size)], text
        return self.built[rest]

    def stamp(self, wait_seconds: float) -> None:
        self.start_text()
        time.sleep(wait_seconds)
        text = f"<<{time.monotonic_ns()}>>"
        if self.partial:
            write(self.delta_row(text))
        time.sleep(wait_seconds)
        self.finish_text(text)

    def ask(self, count: int) -> None:
        read: list[int] = []
        for number in range(count):
            tool_input = {"command": f"touch {number}.txt", "description": "Make a file"}
            tool_id = self.call_tool("Bash", tool_input)
            request = {"subtype": "can_use_tool", "tool_name": "Bash", "display_name": "Bash", "input": tool_input}
            request |= {"tool_use_id": tool_id, "permission_suggestions": []}
            request_id = f"ask-{self.calls}"
            write(encode({"type": "control_request", "request_id": request_id, "request": request}))
            while True:
                message, read_at = self.receive()
                if message["type"] == "control_request":
                    self.control(message)
                elif message["type"] == "control_response" and message["response"]["request_id"] == request_id:
                    break
            read.append(read_at)
            self.finish_tool(tool_id, "made")
        self.say(" ".join(f"<<{at}>>" for at in read))

    def show_cards(self, rest: str) -> None:
        count, _, path = rest.partition(":")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        cards = int(count)
        size = len(text) // cards + 1
        for number in range(cards):
            part = text[number * size : (number + 1) * size]
            self.start_text()
            if self.partial:
                write(b"".join(self.delta_row(part[at : at + 25]) for at in range(0, len(part), 25)))
            self.finish_text(part)
            tool_id = self.call_tool("Bash", {"command": f"echo card {number}", "description": f"Card {number}"})
            self.finish_tool(tool_id, f"card {number}\n" * 5)
        self.say("All cards are shown.")

    def hold(self) -> None:
        self.start_text()
        if self.partial:
            write(self.delta_row("working"))
        while True:
            message, _ = self.receive()
            if message["type"] == "control_request":
                self.control(message)
                if message["request"]["subtype"] == "interrupt":
                    break
        self.finish_text("working")


def main(argv: list[str]) -> NoReturn:
    if "-v" in argv or "--version" in argv:
        print("2.1.326 (Claude Code)")
        raise SystemExit(0)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda caught, _: os._exit(128 + caught))  # 143 and 130, as the real CLI
    Child(argv).run()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BrokenPipeError:
        os._exit(141)  # the host closed our stdout; a traceback would only hide that
