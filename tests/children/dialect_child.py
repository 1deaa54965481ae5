"""A scripted CLI that speaks exactly one of the five dialects and refuses the other four.

Started as `python -I dialect_child.py --dialect NAME [the CLI's own arguments]`. `Conversation` holds the script and
knows no spelling; `FORMS` and the `Speaker` classes hold the dialects' spellings and know no script. Those
documents are the authority here, not the kernel: this file must not import it. Exit codes: 3 after a message in a
foreign form, 1 for an argv the dialect cannot have (CLI 2.1.326 does so for `--cwd`) and for a line that is not JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys

TYPE_CHECKING = False  # importing `typing` would be a tenth of this program's start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    Json = dict[str, Any]
    # kind (prompt, answer, control, interrupt, stray), id, body; in no dialect's spelling
    Heard = tuple[str, str, Json]

QUESTIONS: Json = json.loads("""{"questions": [
    {"question": "Which colour?", "header": "Colour", "multiSelect": false,
     "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]},
    {"question": "Which sizes?", "header": "Sizes", "multiSelect": true,
     "options": [{"label": "S", "description": "small"}, {"label": "M", "description": "medium"}]}]}""")
UNANSWERED = "The user did not answer the questions."
FAILURE = "told to fail"
CAMEL = {"updatedInput", "updatedPermissions", "toolUseID", "systemPrompt", "mcpServers"}
SNAKE = {"updated_input", "updated_permissions", "tool_use_id", "system_prompt", "mcp_servers"}

# What the dialects write: a form's name, then its JSON, one row or a list of rows; "$name" stands for a value.
# A dialect's own forms replace the common ones.
FORMS = {
    "common": """
capabilities {"commands": [{"name": "compact", "description": "Compact the context", "argumentHint": ""}],
    "output_style": "default", "available_output_styles": ["default", "Explanatory", "Learning"],
    "models": [{"value": "default", "displayName": "Default (recommended)", "description": "Sonnet 4.5"}],
    "account": {"email": "user@example.com", "organization": "Org Name", "subscriptionType": "Claude Max"}}
init {"type": "system", "subtype": "init", "uuid": "$uuid", "session_id": "$session", "cwd": "$cwd",
    "tools": ["Bash", "Read", "AskUserQuestion"], "mcp_servers": [], "model": "$model", "permissionMode": "$mode",
    "slash_commands": ["compact"], "apiKeySource": "none", "claude_code_version": "2.1.17", "output_style": "default"}
reply {"type": "control_response", "response": {"subtype": "success", "request_id": "$id", "response": "$payload"}}
reply_error {"type": "control_response", "response": {"subtype": "error", "request_id": "$id", "error": "$why"}}
receipt {}
begin []
ask {"type": "control_request", "request_id": "$id", "request": "$request"}
suggestions [{"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "$command"}],
    "behavior": "allow", "destination": "session"}]
withdraw []
user {"type": "user", "uuid": "$uuid", "session_id": "$session", "parent_tool_use_id": null,
    "message": {"role": "user", "content": "$blocks"}}
tool_result {"type": "user", "uuid": "$uuid", "session_id": "$session", "parent_tool_use_id": null,
    "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "$tool", "content": "$text", "is_error": "$is_error"}]},
    "tool_use_result": {"stdout": "$text", "stderr": "", "interrupted": false}}
fail []
""",
    "direct": """
assistant {"type": "assistant", "uuid": "$uuid", "session_id": "$session", "parent_tool_use_id": null,
    "message": {"model": "$model", "id": "$msg", "type": "message", "role": "assistant", "content": "$blocks",
    "stop_reason": null, "usage": {"input_tokens": 100, "output_tokens": 50, "cache_creation_input_tokens": 1000,
    "cache_read_input_tokens": 500}}}
receipt {"still_queued": []}
lifecycle {"type": "command_lifecycle", "command_uuid": "$id", "state": "$state", "uuid": "$uuid",
    "session_id": "$session"}
withdraw {"type": "control_cancel_request", "request_id": "$id"}
spent {"uuid": "$uuid", "duration_ms": 5000, "duration_api_ms": 4500, "num_turns": 2, "total_cost_usd": "$cost",
    "usage": {"input_tokens": 200, "output_tokens": 100, "cache_creation_input_tokens": 1000,
    "cache_read_input_tokens": 500}, "permission_denials": []}
model_usage {"inputTokens": 200, "outputTokens": 100, "cacheReadInputTokens": 500, "cacheCreationInputTokens": 1000,
    "costUSD": 0.05, "contextWindow": 200000}
""",
    "bridge": """
capabilities {"commands": [{"name": "/help", "description": "Help"}, {"name": "/clear", "description": "Start anew"}],
    "output_style": "markdown", "available_output_styles": ["markdown", "json"],
    "models": [{"value": "sonnet", "display": "Sonnet (Fast)"}, {"value": "opus", "display": "Opus (Powerful)"}],
    "account": {"account_type": "pro", "email": "user@example.com"}}
init {"type": "system", "subtype": "init", "session_id": "$session", "mcp_servers": [], "tools": [
    {"name": "Bash", "description": "Execute bash commands"}, {"name": "Read", "description": "Read file contents"}]}
created {"type": "session.created", "session_id": "$session"}
reply {"type": "control_response", "request_id": "$id", "response": "$payload"}
reply_error {"type": "error", "request_id": "$id", "error": {"code": "UNSUPPORTED_REQUEST", "message": "$why"}}
assistant {"type": "assistant", "uuid": "$uuid", "session_id": "$session", "model": "$model",
    "message": {"type": "message", "content": "$blocks"}, "usage": {"input_tokens": 100, "output_tokens": 50,
    "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}}
user {"type": "user", "uuid": "$uuid", "session_id": "$session", "message": {"type": "message", "content": "$blocks"}}
tool_result {"type": "user", "uuid": "$uuid", "session_id": "$session", "message": {"type": "message", "content": [
    {"type": "tool_result", "tool_use_id": "$tool", "content": "$text", "is_error": "$is_error"}]}}
ask {"type": "callback.request", "request_id": "$id", "request": "$request"}
suggestions [{"type": "bash", "action": "allow", "pattern": "$command", "scope": "session"}]
fail {"type": "error", "error": {"code": "API_ERROR", "message": "$failure"}}
completed {"type": "result", "subtype": "success", "session_id": "$session", "turn_count": "$turns",
    "duration_seconds": 5.2, "usage": {"input_tokens": 100, "output_tokens": 50}}
failed {"type": "result", "subtype": "error_during_execution", "session_id": "$session", "error": "$failure"}
aborted {"type": "result", "subtype": "error_during_execution", "session_id": "$session",
    "error": "Interrupted by user", "terminal_reason": "$terminal"}
refuse {"type": "error", "error": {"code": "UNSUPPORTED_MESSAGE", "message": "$why"}}
""",
    "host-tools": """
assistant {"type": "assistant", "session_id": "$session", "message": {"model": "$model", "id": "$msg",
    "type": "message", "role": "assistant", "content": "$blocks", "stop_reason": null}}
spent {"duration_ms": 2845, "num_turns": 1, "total_cost_usd": "$cost"}
""",
    "jsonrpc": """
begin {"type": "system", "subtype": "init", "uuid": "$uuid", "session_id": "$session", "cwd": "$cwd",
    "tools": ["Bash", "Read", "AskUserQuestion"], "mcp_servers": [], "model": "$model", "permissionMode": "$mode"}
message {"jsonrpc": "2.0", "method": "message", "params": "$row"}
reply {"jsonrpc": "2.0", "id": "$id", "result": "$payload"}
reply_error {"jsonrpc": "2.0", "id": "$id", "error": {"code": -32601, "message": "$why"}}
receipt {"still_queued": []}
assistant {"type": "assistant", "parent_tool_use_id": null,
    "message": {"role": "assistant", "content": "$blocks", "model": "$model"}}
ask {"jsonrpc": "2.0", "id": "$id", "method": "can_use_tool", "params": "$request"}
withdraw {"jsonrpc": "2.0", "method": "cancel", "params": {"request_id": "$id"}}
spent {"duration_ms": 1234, "duration_api_ms": 1000, "num_turns": 1, "usage": {"input_tokens": 10, "output_tokens": 20}}
run_completed {"jsonrpc": "2.0", "id": "$id", "result": {"session_id": "$session"}}
run_failed {"jsonrpc": "2.0", "id": "$id", "error": {"code": -32000, "message": "$failure"}}
run_aborted {"jsonrpc": "2.0", "id": "$id", "error": {"code": -32800, "message": "Interrupted by user"}}
refuse {"jsonrpc": "2.0", "id": "$id", "error": {"code": -32600, "message": "$why"}}
""",
    "indexed": """
begin {"type": "user", "message": "$prompt"}
delta {"type": "assistant", "delta": {"type": "content_block_delta", "index": 0,
    "delta": {"type": "text_delta", "text": "$text"}}}
assistant {"type": "assistant", "session_id": "$session", "uuid": "$uuid", "message": {"model": "$model", "id": "$msg",
    "type": "message", "role": "assistant", "content": "$blocks", "stop_reason": "end_turn",
    "usage": {"input_tokens": 100, "output_tokens": 50}}}
user {"type": "user", "message": {"role": "user", "content": "$blocks"}}
tool_result {"type": "user", "message": {"role": "user", "content": [
    {"type": "tool_result", "content": "$text", "is_error": "$is_error", "tool_use_id": "$tool"}]},
    "tool_use_result": "$text"}
ask {"type": "control_request", "message": {"type": "control_request", "request_id": "$id", "request": "$request"}}
suggestions [{"behavior": "allow", "message": "Safe to run"}]
fail {"type": "error", "error": {"type": "api_error", "message": "$failure"}}
spent {"duration_ms": 5000, "num_turns": 1, "usage": {"input_tokens": 100, "output_tokens": 50}}
refuse {"type": "error", "error": {"type": "invalid_request", "message": "$why"}}
""",
}
# Ends of a turn in the dialects that have `is_error` (scene text, api_error, interrupt); `spent` is added to each.
ENDS = """
completed {"type": "result", "subtype": "success", "is_error": false, "session_id": "$session", "result": "$text",
    "terminal_reason": "completed"}
failed {"type": "result", "subtype": "success", "is_error": true, "session_id": "$session", "result": "$text",
    "terminal_reason": "api_error", "api_error_status": 400}
aborted {"type": "result", "subtype": "error_during_execution", "is_error": true, "session_id": "$session",
    "terminal_reason": "$terminal", "errors": ["[ede_diagnostic] result_type=user last_content_type=n/a"]}
refuse {"type": "result", "subtype": "error_during_execution", "is_error": true, "session_id": "$session",
    "errors": ["$why"]}
"""


class Refused(Exception):
    """The host said something this dialect has no form for."""


class Interrupted(Exception):
    """The host stopped the turn; the argument is the stage: streaming or tools."""


def new_id() -> str:
    h = os.urandom(16).hex()  # the uuid module costs more to import than this
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"


def find_option(argv: list[str], flag: str) -> str | None:
    for position, argument in enumerate(argv):
        if argument.startswith(flag + "="):
            return argument[len(flag) + 1 :]
        if argument == flag:
            return argv[position + 1] if position + 1 < len(argv) else ""
    return None


def decode_forms(table: str) -> Json:
    entries = [entry for entry in table.replace("\n    ", " ").splitlines() if entry]
    return {name: json.loads(form) for name, _, form in (entry.partition(" ") for entry in entries)}


def fill(form: Any, values: Json) -> Any:
    if isinstance(form, dict):
        return {key: fill(value, values) for key, value in form.items()}
    if isinstance(form, list):
        return [fill(value, values) for value in form]
    return values[form[1:]] if isinstance(form, str) and form.startswith("$") else form


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(b.get("text", "") for b in content or [])


class Speaker:
    """What the dialects share; each subclass is one dialect."""

    name, model, turn_cost = "", "claude-sonnet-4-5-20250929", 0.0
    required: tuple[tuple[str, str | None], ...] = ()  # flags and, where it matters, their values
    unknown: tuple[str, ...] = ("--cwd",)
    inputs: tuple[str, ...] = ("user", "control_request", "control_response")  # each has its hear_ method
    foreign_keys = SNAKE
    input_key, tool_key, tool_id_required, indexed_answers = "updatedInput", "toolUseID", True, False
    controls: tuple[str, ...] = ("initialize", "set_model", "set_permission_mode")

    def __init__(self, argv: list[str]) -> None:
        for flag in self.unknown:
            if find_option(argv, flag) is not None:
                raise SystemExit(f"error: unknown option '{flag}'")
        for flag, value in self.required:
            if (given := find_option(argv, flag)) is None or (value is not None and given != value):
                raise SystemExit(f"error: dialect {self.name} needs {flag} {value or ''}".rstrip())
        self.resumed = find_option(argv, "--resume") is not None
        self.session_id = find_option(argv, "--resume") or find_option(argv, "--session-id") or new_id()
        self.model = find_option(argv, "--model") or self.model
        self.mode = find_option(argv, "--permission-mode") or "default"
        self.forms = decode_forms(ENDS + FORMS["common"] + FORMS[self.name])  # the later of two namesakes wins
        self.initialised, self.turns = False, 0
        self.open: dict[str, str] = {}  # request id -> the tool call it is about

    def hear(self, message: Json) -> Heard:
        if "jsonrpc" in message:
            raise Refused("a JSON-RPC envelope")
        if message.get("type") not in self.inputs:
            raise Refused(f"a message of type {message.get('type')!r}")
        heard: Heard = getattr(self, "hear_" + message["type"].replace(".", "_"))(message)
        return heard

    def hear_prompt(self, message: Json, prompt_id: str = "") -> Heard:
        body = message.get("message") or {}
        content = body.get("content")
        if body.get("role") != "user" or not isinstance(content, str | list):
            raise Refused("a prompt without message.role user and content")
        if isinstance(content, list) and any(block.get("type") == "tool_result" for block in content):
            raise Refused("a tool_result: this dialect's CLI runs its tools itself")
        return "prompt", prompt_id or message.get("uuid") or "", {"text": text_of(content), "prompt": body}

    def hear_control_request(self, message: Json) -> Heard:
        request, request_id = message.get("request"), message.get("request_id")
        if not isinstance(request, dict) or not isinstance(request_id, str):
            raise Refused("a control_request without request and request_id")
        return self.hear_control(request_id, request)

    def hear_control(self, request_id: str, request: Json) -> Heard:
        self.check_spelling(request)
        if not request.get("subtype"):
            raise Refused("a control request without subtype")
        return ("interrupt" if request["subtype"] == "interrupt" else "control"), request_id, request

    def hear_control_response(self, message: Json) -> Heard:
        response = message.get("response")
        if "request_id" in message or not isinstance(response, dict) or "subtype" not in response:
            raise Refused("an answer whose request_id and subtype are not in `response`")
        if response["subtype"] == "error":
            return self.hear_error(response["request_id"], response["error"])
        return self.hear_answer(response["request_id"], response.get("response") or {})

    def hear_error(self, request_id: str, why: str) -> Heard:
        denial = {"behavior": "deny", "message": why, self.tool_key: self.open.get(request_id)}
        return self.hear_answer(request_id, denial)  # scene permission_error_reply: an error denies

    def hear_answer(self, request_id: str, body: Json) -> Heard:
        self.check_spelling(body)
        if request_id not in self.open:
            return "stray", request_id, body  # it crossed the question's end on the wire
        tool_id = body.get(self.tool_key)
        if tool_id != self.open[request_id] and (self.tool_id_required or tool_id is not None):
            raise Refused(f"{self.tool_key} {tool_id!r} where {self.open[request_id]!r} was asked about")
        if body.get("behavior") not in ("allow", "deny"):
            raise Refused(f"behavior {body.get('behavior')!r}")
        del self.open[request_id]
        return "answer", request_id, {**body, "input": body.get(self.input_key)}

    def check_spelling(self, body: Json) -> None:
        if foreign := self.foreign_keys & body.keys():
            raise Refused(f"the spelling {', '.join(sorted(foreign))}")

    def fill(self, name: str, **values: Any) -> Any:
        now: Json = {"uuid": new_id(), "msg": "msg_" + new_id()[:8], "session": self.session_id, "model": self.model}
        now |= {"mode": self.mode, "cwd": os.getcwd(), "failure": FAILURE, "turns": self.turns}
        return fill(self.forms[name], now | {"cost": round(self.turn_cost * self.turns, 3)} | values)  # a running total

    def send(self, name: str, **values: Any) -> None:
        rows = self.fill(name, **values)
        for row in rows if isinstance(rows, list) else [rows]:
            self.write(row)

    def write(self, row: Json) -> None:
        try:
            line = json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # a lone surrogate goes out escaped, as node writes it
            line = json.dumps(row).encode()
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()

    def control(self, request_id: str, request: Json) -> None:
        subtype = request["subtype"]
        if subtype not in self.controls:
            self.send("reply_error", id=request_id, why=f"Unsupported control request subtype: {subtype}")
        elif subtype == "initialize":
            self.initialised = True
            self.send("reply", id=request_id, payload=self.fill("capabilities"))
        else:
            name = {"set_model": "model", "set_permission_mode": "mode"}[subtype]
            setattr(self, name, request.get(name) or getattr(type(self), name, "default"))
            self.send("reply", id=request_id, payload={name: getattr(self, name)})

    def begin(self, prompt_id: str, prompt: Json) -> None:
        self.turns += 1
        self.send("begin", id=prompt_id, prompt=prompt)

    def speak(self, pieces: list[str]) -> None:
        for piece in pieces:  # a dialect without deltas says each piece in a row of its own
            self.send("assistant", blocks=[{"type": "text", "text": piece}])

    def start_speaking(self, text: str) -> None:
        self.speak([text])

    def stop_speaking(self, said: list[Json]) -> None:
        """The rows between an interrupt's receipt and the turn's end (scene interrupt.jsonl)."""
        if isinstance(self, Streaming | Indexed):  # the others have sent their text whole already
            self.send("assistant", blocks=said)
        self.send("user", blocks=[{"type": "text", "text": "[Request interrupted by user]"}])

    def call_tool(self, block: Json) -> None:
        self.send("assistant", blocks=[block])

    def end(self, text: str, terminal: str) -> None:
        end = terminal if terminal in ("completed", "failed") else "aborted"
        self.write(self.fill(end, text=text, terminal=terminal) | self.fill_spent())

    def fill_spent(self) -> Json:
        spent: Json = self.fill("spent") if "spent" in self.forms else {}
        return spent


class Streaming(Speaker):
    """Rows as the real CLI streams them (scene text.jsonl): events around one whole `assistant` row a block."""

    def event(self, **event: Any) -> None:
        row = {"type": "stream_event", "event": event, "session_id": self.session_id, "parent_tool_use_id": None}
        self.write(row | {"uuid": new_id()})

    def open_block(self, block: Json) -> None:
        message = {"id": "msg_" + new_id()[:8], "type": "message", "role": "assistant", "model": self.model}
        self.event(type="message_start", message=message | {"content": [], "stop_reason": None})
        self.event(type="content_block_start", index=0, content_block=block)

    def close_block(self, stop_reason: str | None) -> None:
        self.event(type="content_block_stop", index=0)
        self.event(type="message_delta", delta={"stop_reason": stop_reason}, usage={"output_tokens": 10})
        self.event(type="message_stop")

    def start_speaking(self, text: str) -> None:
        self.open_block({"type": "text", "text": ""})
        self.event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": text})

    def speak(self, pieces: list[str]) -> None:
        self.start_speaking(pieces[0])
        for piece in pieces[1:]:
            self.event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        self.send("assistant", blocks=[{"type": "text", "text": "".join(pieces)}])
        self.close_block("end_turn")

    def stop_speaking(self, said: list[Json]) -> None:
        super().stop_speaking(said)
        self.close_block(None)

    def call_tool(self, block: Json) -> None:
        self.open_block({**block, "input": {}})
        whole = json.dumps(block["input"])
        for part in (whole[:5], whole[5:]):
            self.event(type="content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": part})
        super().call_tool(block)
        self.close_block("tool_use")


class Direct(Streaming):
    """`direct`, with what CLI 2.1.326 adds: `init` at each turn, command_lifecycle, control_cancel_request."""

    name, turn_cost, prompt_id = "direct", 0.05, ""
    required = (("--permission-prompt-tool", "stdio"),)

    def hear_user(self, message: Json) -> Heard:
        if not self.initialised:  # what tells direct's prompt from those of host-tools and indexed
            raise Refused("a prompt before initialize")
        return self.hear_prompt(message)

    def begin(self, prompt_id: str, prompt: Json) -> None:
        super().begin(prompt_id, prompt)
        self.prompt_id = prompt_id
        for state in ("queued", "started") if prompt_id else ():
            self.send("lifecycle", id=prompt_id, state=state)
        self.send("init")

    def end(self, text: str, terminal: str) -> None:
        super().end(text, terminal)
        if self.prompt_id:
            self.send("lifecycle", id=self.prompt_id, state="completed")

    def fill_spent(self) -> Json:
        spent, turn = super().fill_spent(), self.fill("model_usage")
        whole = {self.model: {**turn, "costUSD": spent["total_cost_usd"]}}
        return spent | {"modelUsage": whole, "model_usage_since_last_result": {self.model: turn}}


class Bridge(Speaker):
    """`bridge`."""

    name, model, created = "bridge", "sonnet", False
    required, unknown = (("--cwd", None),), ()
    inputs = ("control_request", "session.create", "session.send", "callback.response")
    foreign_keys, input_key, tool_key = CAMEL, "updated_input", "tool_use_id"
    controls = ("initialize",)
    hear_callback_response = Speaker.hear_control_response

    def hear_session_create(self, message: Json) -> Heard:
        if not self.initialised or self.created:
            raise Refused("session.create, before initialize or a second time")
        self.created = True
        return self.hear_prompt(message)

    def hear_session_send(self, message: Json) -> Heard:
        if not self.initialised or not (self.created or self.resumed):
            raise Refused("session.send before session.create")
        self.created = True
        return self.hear_prompt(message)

    def control(self, request_id: str, request: Json) -> None:
        super().control(request_id, request)
        if request["subtype"] == "initialize":
            self.send("init")

    def begin(self, prompt_id: str, prompt: Json) -> None:
        super().begin(prompt_id, prompt)
        if self.turns == 1:
            self.send("created")


class HostTools(Speaker):
    """`host-tools`: no control messages; the host runs the tools; ending the process is the only interrupt."""

    name, model, turn_cost = "host-tools", "claude-sonnet-4-20250514", 0.114
    required = (("-p", None), ("--dangerously-skip-permissions", None))
    unknown = ("--cwd", "--permission-prompt-tool")
    inputs = ("user",)

    def hear_user(self, message: Json) -> Heard:
        # What tells this prompt from those of direct and indexed.
        if foreign := message.keys() - {"type", "message", "uuid"}:
            raise Refused(f"a prompt that holds {', '.join(sorted(foreign))}")
        content = (message.get("message") or {}).get("content")
        results = [b for b in content if b.get("type") == "tool_result"] if isinstance(content, list) else []
        if not results and not self.open:
            return self.hear_prompt(message)
        if not results or results[0].get("tool_use_id") not in self.open:
            raise Refused(f"anything but the tool_result of {', '.join(self.open) or 'an open tool call'}")
        del self.open[results[0]["tool_use_id"]]
        return "answer", results[0]["tool_use_id"], results[0]

    def begin(self, prompt_id: str, prompt: Json) -> None:
        super().begin(prompt_id, prompt)
        if self.turns == 1:
            self.send("init")


class JsonRpc(Streaming):
    """jsonrpc's types inside JSON-RPC 2.0: its rows are notifications, its questions and ours are requests."""

    name, model, tool_id_required, run_id = "jsonrpc", "claude-sonnet-4-20250514", False, ""

    def hear(self, message: Json) -> Heard:
        if message.get("jsonrpc") != "2.0" or "id" not in message:
            raise Refused(f"a line that is no JSON-RPC 2.0 request or reply, of type {message.get('type')!r}")
        if "error" in message:
            return self.hear_error(message["id"], message["error"]["message"])
        if "result" in message:
            return self.hear_answer(message["id"], message["result"])
        params = message.get("params") or {}
        if message.get("method") == "run":
            return self.hear_prompt(params, message["id"])
        return self.hear_control(message["id"], {**params, "subtype": message.get("method")})

    def write(self, row: Json) -> None:
        super().write(row if "jsonrpc" in row else self.fill("message", row=row))

    def begin(self, prompt_id: str, prompt: Json) -> None:
        super().begin(prompt_id, prompt)
        self.run_id = prompt_id

    def end(self, text: str, terminal: str) -> None:
        super().end(text, terminal)
        self.send("run_" + terminal.partition("_")[0], id=self.run_id)


class Indexed(Speaker):
    """`indexed`: nothing to initialise, no `system` rows, answers by index."""

    name, indexed_answers = "indexed", True
    required = (("--permission-prompt-tool", "stdio"),)
    controls = ()

    def hear_user(self, message: Json) -> Heard:
        if not isinstance((message.get("message") or {}).get("content"), list) or "session_id" not in message:
            raise Refused("a prompt without session_id and a list of content blocks")
        return self.hear_prompt(message)

    def hear_answer(self, request_id: str, body: Json) -> Heard:
        if body.get("behavior") == "allow" and "updatedInput" not in body:
            raise Refused("an allow without updatedInput")
        return super().hear_answer(request_id, body)

    def speak(self, pieces: list[str]) -> None:
        for piece in pieces:
            self.send("delta", text=piece)
        super().speak(["".join(pieces)])

    def start_speaking(self, text: str) -> None:
        self.send("delta", text=text)


class Conversation:
    """The script: one scene a prompt, told through whichever speaker. A scene gives its text and how it ended."""

    def __init__(self, speaker: Speaker, state_folder: str) -> None:
        self.speaker, self.word = speaker, ""
        self.queued: list[Heard] = []
        self.memory = os.path.join(state_folder, speaker.session_id) if state_folder else ""

    def run(self) -> NoReturn:
        while True:
            kind, heard_id, body = self.queued.pop(0) if self.queued else self.receive()
            if kind == "interrupt":
                self.speaker.send("reply", id=heard_id, payload=self.speaker.fill("receipt"))
            elif kind == "prompt":
                self.turn(heard_id, body)

    def receive(self) -> Heard:
        while line := sys.stdin.buffer.readline():
            try:
                message = json.loads(line)
            except ValueError:
                raise SystemExit("Error parsing streaming input line") from None
            message = message if isinstance(message, dict) else {"type": type(message).__name__}
            try:
                kind, heard_id, body = self.speaker.hear(message)
            except Refused as refused:
                self.speaker.send("refuse", id=message.get("id"), why=f"refused {refused}")
                print(f"dialect {self.speaker.name} refused {refused}", file=sys.stderr, flush=True)
                raise SystemExit(3) from None
            if kind != "control":
                return kind, heard_id, body
            self.speaker.control(heard_id, body)
        raise SystemExit(0)

    def wait_for(self, request_id: str) -> Json:
        """The answer to that question; an interrupt ends the wait, further prompts queue up (two_messages_one_turn)."""
        while True:
            kind, heard_id, body = self.receive()
            if kind == "answer" and heard_id == request_id:
                return body
            if kind == "prompt":
                self.queued.append((kind, heard_id, body))
            if kind == "interrupt":
                if self.speaker.open.pop(request_id, None):
                    self.speaker.send("withdraw", id=request_id)  # before the receipt, as in scene interrupt.jsonl
                self.speaker.send("reply", id=heard_id, payload=self.speaker.fill("receipt"))
                raise Interrupted("tools" if request_id else "streaming")

    def turn(self, prompt_id: str, body: Json) -> None:
        self.speaker.begin(prompt_id, body["prompt"])
        word, _, rest = body["text"].partition(" ")
        try:
            text, terminal = SCENES.get(word, Conversation.unscripted)(self, rest)
        except Interrupted as interrupted:
            text, terminal = "", f"aborted_{interrupted}"
        self.speaker.end(text, terminal)

    def reply(self, text: str, pieces: int = 1) -> tuple[str, str]:
        size = max(1, len(text) // pieces)
        self.speaker.speak([text[at : at + size] for at in range(0, len(text), size)] or [""])
        return text, "completed"

    def say(self, text: str) -> tuple[str, str]:
        return self.reply(text, pieces=3)

    def unscripted(self, rest: str) -> tuple[str, str]:
        return self.reply(f"no scene for this prompt ({rest})")

    def use_tool(self, name: str, tool_input: Json, run: Callable[[Json], str]) -> tuple[str, bool]:
        """The tool's result and whether it is an error, after the dialect's own way of asking."""
        tool_id, request_id = "toolu_" + new_id()[:8], new_id()
        self.speaker.call_tool({"type": "tool_use", "id": tool_id, "name": name, "input": tool_input})
        if isinstance(self.speaker, HostTools):
            self.speaker.open[tool_id] = tool_id
            result = self.wait_for(tool_id)
            return text_of(result.get("content")), bool(result.get("is_error"))
        request = {"subtype": "can_use_tool", "tool_name": name, "input": tool_input, "tool_use_id": tool_id}
        if isinstance(self.speaker, JsonRpc):
            del request["subtype"]  # there it is the method
        if name == "Bash":
            request["permission_suggestions"] = self.speaker.fill("suggestions", command=tool_input["command"])
        self.speaker.open[request_id] = tool_id
        self.speaker.send("ask", id=request_id, request=request)
        try:
            answer = self.wait_for(request_id)
        except Interrupted:
            answer = {"behavior": "deny", "message": "The user doesn't want to proceed.", "interrupt": True}
        denied = answer["behavior"] == "deny"
        text = answer.get("message", "") if denied else run(tool_input if answer["input"] is None else answer["input"])
        self.speaker.send("tool_result", tool=tool_id, text=text, is_error=denied)
        if denied and answer.get("interrupt"):
            note = {"type": "text", "text": "[Request interrupted by user for tool use]"}
            self.speaker.send("user", blocks=[note])
            raise Interrupted("tools")
        return text, denied

    def tool(self, command: str) -> tuple[str, str]:
        text, denied = self.use_tool("Bash", {"command": command}, lambda given: f"ran: {given.get('command')}")
        return self.reply(f"denied: {text}" if denied else f"done: {text}")

    def ask(self, _: str) -> tuple[str, str]:
        text, denied = self.use_tool("AskUserQuestion", QUESTIONS, self.understand)
        return self.reply(f"denied: {text}" if denied else text)

    def understand(self, given: Json) -> str:
        answers, understood = given.get("answers") or {}, {}
        for index, question in enumerate(QUESTIONS["questions"]):
            value = answers.get(str(index) if self.speaker.indexed_answers else question["question"])
            strict = list if question["multiSelect"] else str
            if isinstance(value, strict if self.speaker.indexed_answers else str | list):
                understood[question["question"]] = value
        return "answers: " + json.dumps(understood, sort_keys=True) if understood else UNANSWERED

    def wait(self, _: str) -> tuple[str, str]:
        self.speaker.start_speaking("working")
        try:
            self.wait_for("")
        except Interrupted:
            self.speaker.stop_speaking([{"type": "text", "text": "working"}])
            raise
        raise AssertionError("only an interrupt ends this wait")

    def remember(self, word: str) -> tuple[str, str]:
        self.word = word
        if self.memory:
            with open(self.memory, "w", encoding="utf-8") as file:
                file.write(word)
        return self.reply(f"remembered: {word}")

    def recall(self, _: str) -> tuple[str, str]:
        if not self.word and self.memory and os.path.exists(self.memory):
            with open(self.memory, encoding="utf-8") as file:
                self.word = file.read()
        return self.reply(self.word or "nothing to recall")

    def error(self, _: str) -> tuple[str, str]:
        self.speaker.send("fail")
        return f"API Error: 400 {FAILURE}", "failed"


SCENES: dict[str, Callable[[Conversation, str], tuple[str, str]]] = {
    "say": Conversation.say,
    "tool": Conversation.tool,
    "ask": Conversation.ask,
    "wait": Conversation.wait,
    "remember": Conversation.remember,
    "recall": Conversation.recall,
    "error": Conversation.error,
}
SPEAKERS: dict[str, type[Speaker]] = {s.name: s for s in (Direct, Bridge, HostTools, JsonRpc, Indexed)}


def main(argv: list[str]) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda caught, _: os._exit(128 + caught))  # 143 and 130, as the real CLI
    name = find_option(argv, "--dialect") or ""
    if name not in SPEAKERS:
        raise SystemExit(f"error: --dialect must be one of {', '.join(SPEAKERS)}")
    Conversation(SPEAKERS[name](argv), os.environ.get("DIALECT_CHILD_STATE", "")).run()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BrokenPipeError:
        os._exit(141)  # the host closed our stdout; a traceback would only hide that
