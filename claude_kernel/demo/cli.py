"""The process: what the notebook asks of it, one turn after another, and how a turn ends."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from claude_kernel.demo.rules import MODES, Rules
from claude_kernel.demo.scenes import COMMANDS, play
from claude_kernel.demo.shelf import Conversation, NotKept, Shelf
from claude_kernel.demo.tools import TOOLS, Done
from claude_kernel.demo.turn import MODEL, Stopped, Turn
from claude_kernel.demo.wire import Json, Refused, Wire

VERSION = "offline demo"
_YES = ("1", "true", "yes", "on")
_ACCOUNT = {"apiProvider": "nobody: the offline demo needs no account"}
_MODELS = [
    {"value": "default", "displayName": "Offline demo", "description": "A script, not a model. It costs nothing."}
]


class Demo:
    """One process. `servers` are the notebook's own, with the names of their tools."""

    def __init__(
        self, wire: Wire, rules: Rules, conversation: Conversation, servers: list[str], schema: Json | None
    ) -> None:
        self.wire = wire
        self.rules = rules
        self.conversation = conversation
        self.schema = schema
        self._servers: dict[str, list[str]] = {name: [] for name in servers}
        self._asked_servers = False
        self._queue: asyncio.Queue[Json | None] = asyncio.Queue()
        self._turn: asyncio.Task[None] | None = None
        self._started = time.monotonic()

    @property
    def folder(self) -> Path:
        return self.rules.folder

    # --- rows -----------------------------------------------------------------------------------------------------

    def row(self, kind: str, **fields: Any) -> None:
        uuid = str(uuid4())
        if kind in ("assistant", "user") and fields.get("parent_tool_use_id") is None:
            self.conversation.note_row(uuid)
        self.wire.send(kind, session_id=self.conversation.id, uuid=uuid, **fields)

    def system(self, subtype: str, **fields: Any) -> None:
        self.row("system", subtype=subtype, **fields)

    # --- what comes in --------------------------------------------------------------------------------------------

    def receive(self, row: Json) -> None:
        kind = row.get("type")
        if kind == "control_response":
            self.wire.settle(row.get("response") or {})
        elif kind == "control_request":
            self._serve(str(row.get("request_id")), row.get("request") or {})
        elif kind == "user":
            if row.get("uuid"):
                self._lifecycle(row, "queued")
            self._queue.put_nowait(row)

    def end(self) -> None:
        """The notebook closed the pipe: nobody can be asked, and what is queued is the last."""
        self.wire.close()
        self._queue.put_nowait(None)

    def interrupt(self) -> None:
        if self._turn is not None:
            self._turn.cancel()

    def _serve(self, request_id: str, request: Json) -> None:
        subtype = request.get("subtype")
        if subtype == "initialize":
            answer: Json = {
                "commands": [{"name": name, "description": about} for name, about in COMMANDS.items()],
                "agents": [],
                "models": _MODELS,
                "account": _ACCOUNT,
                "claude_code_version": VERSION,
                "current_permission_mode": self.rules.mode,
            }
        elif subtype == "interrupt":
            answer = {}
            self.interrupt()
        elif subtype == "set_permission_mode":
            if request.get("mode") not in MODES:
                self.wire.refuse(request_id, f"Cannot set permission mode: must be one of {', '.join(MODES)}")
                return
            self.rules.mode = request["mode"]
            answer = {"mode": self.rules.mode}
        elif subtype == "set_model":
            answer = {"model": MODEL}
        elif subtype == "get_context_usage":
            characters = sum(map(len, self.conversation.prompts))
            rows = [{"name": "Characters you have typed (a script has no context)", "tokens": characters}]
            answer = {"categories": rows, "totalTokens": characters, "maxTokens": 200_000}
        elif subtype == "rewind_files":
            dry_run = bool(request.get("dry_run"))
            answer = self.conversation.rewind(str(request.get("user_message_id")), dry_run=dry_run)
            if not answer["canRewind"] and not dry_run:
                self.wire.refuse(request_id, answer["error"])
                return
        else:
            self.wire.refuse(request_id, f"Unsupported control request subtype: {subtype}")
            return
        self.wire.answer(request_id, answer)

    def _lifecycle(self, row: Json, state: str) -> None:
        self.row("command_lifecycle", command_uuid=row["uuid"], state=state)

    # --- turns ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        while (row := await self._queue.get()) is not None:
            if row.get("uuid"):
                self._lifecycle(row, "started")
            self._turn = asyncio.create_task(self._run_turn(row))
            await asyncio.wait({self._turn})
            self._turn = None
            if row.get("uuid"):
                self._lifecycle(row, "completed")

    async def _run_turn(self, row: Json) -> None:
        began = time.monotonic()
        turn = _read_prompt(self, row)
        if not turn.text.startswith("/"):
            self.conversation.say(turn.text or "(an image)", str(row.get("uuid") or uuid4()))
        end: Json = {"subtype": "success", "is_error": False, "terminal_reason": "completed"}
        try:
            await self._ask_servers()
            self._begin()
            structured = await play(turn)
            end |= {"result": turn.said} | ({} if structured is None else {"structured_output": structured})
        except (asyncio.CancelledError, Stopped):
            where = "aborted_tools" if turn.in_tool else "aborted_streaming"
            end = {"subtype": "error_during_execution", "is_error": True, "terminal_reason": where}
            stopped = [{"type": "text", "text": "[Request interrupted by user]"}]
            self.row("user", message={"role": "user", "content": stopped}, parent_tool_use_id=None)
        except Exception as error:
            text = f"The demo failed: {type(error).__name__}: {error}"
            end = {"subtype": "error_during_execution", "is_error": True, "errors": [text]}
        nothing = {"costUSD": 0, "inputTokens": 0, "outputTokens": 0, "contextWindow": 200_000}
        self.row(
            "result",
            **end,
            total_cost_usd=0,
            usage={"input_tokens": 0, "output_tokens": 0},
            modelUsage={MODEL: nothing},
            model_usage_since_last_result={MODEL: nothing},
            duration_ms=round((time.monotonic() - began) * 1000),
            num_turns=turn.steps,
            permission_denials=turn.denials,
            user_message_uuids=[row["uuid"]] if row.get("uuid") else [],
        )

    def _begin(self) -> None:
        tools = [*TOOLS, "Task", "AskUserQuestion", "ExitPlanMode"]
        self.system(
            "init",
            cwd=str(self.folder),
            model=MODEL,
            permissionMode=self.rules.mode,
            claude_code_version=VERSION,
            tools=tools + [f"mcp__{server}__{tool}" for server, names in self._servers.items() for tool in names],
            mcp_servers=[{"name": server, "status": "connected"} for server in self._servers],
            slash_commands=list(COMMANDS),
        )

    def start_anew(self) -> None:
        self.conversation = self.conversation.anew()
        self.row("conversation_reset", new_conversation_id=self.conversation.id)

    # --- the notebook's own tools ---------------------------------------------------------------------------------

    def server_of(self, tool: str) -> str | None:
        return next((server for server, tools in self._servers.items() if tool in tools), None)

    async def call_server(self, server: str, tool: str, given: Json) -> Done:
        try:
            result = await self._rpc(server, "tools/call", {"name": tool, "arguments": given})
        except Refused as refused:
            return Done(str(refused), failed=True)
        content = [_as_block(part) for part in result.get("content", [])]
        text = "\n".join(str(part["text"]) for part in content if part["type"] == "text")
        return Done(text, content, failed=bool(result.get("isError")))

    async def _ask_servers(self) -> None:
        """Which tools there are, once; as a server may be slow, not before the first prompt."""
        if self._asked_servers:
            return
        self._asked_servers = True
        for server in list(self._servers):
            try:
                await self._rpc(server, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})
                listed = await self._rpc(server, "tools/list", {})
            except Refused:
                del self._servers[server]
                continue
            self._servers[server] = [str(tool.get("name")) for tool in listed.get("tools", [])]

    async def _rpc(self, server: str, method: str, params: Json) -> Json:
        message = {"jsonrpc": "2.0", "id": str(uuid4()), "method": method, "params": params}
        answer = await self.wire.request("mcp_message", server_name=server, message=message)
        response = answer.get("mcp_response") or {}
        if "error" in response:
            raise Refused(str(response["error"].get("message")))
        result: Json = response.get("result") or {}
        return result


def _as_block(part: Json) -> Json:
    if part.get("type") != "image":
        return {"type": "text", "text": str(part.get("text", ""))}
    source = {"type": "base64", "media_type": part.get("mimeType"), "data": part.get("data")}
    return {"type": "image", "source": source}


def _read_prompt(demo: Demo, row: Json) -> Turn:
    content = (row.get("message") or {}).get("content")
    blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])
    text = "\n".join(str(block.get("text")) for block in blocks if block.get("type") == "text")
    return Turn(demo, text.strip(), [block["source"] for block in blocks if block.get("type") == "image"])


# --- the process ------------------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> int:
    given, _ignored = _parser().parse_known_args(arguments)
    if given.version:
        sys.stdout.write(f"{VERSION}\n")
        return 0
    try:
        conversation = _open(given)
    except NotKept as problem:
        return _give_up(given, str(problem))
    asyncio.run(_talk(given, conversation))
    return 0


def _parser() -> argparse.ArgumentParser:
    """Flags without a meaning here are ignored, as the kernel passes what the real CLI takes."""
    parser = argparse.ArgumentParser(prog="claude_kernel.demo", allow_abbrev=False)
    parser.add_argument("--version", action="store_true")
    parser.add_argument("--permission-mode", choices=MODES, default="default")
    parser.add_argument("--allowedTools", default="")
    parser.add_argument("--disallowedTools", default="")
    parser.add_argument("--resume")
    parser.add_argument("--resume-session-at")
    parser.add_argument("--session-id")
    parser.add_argument("--fork-session", action="store_true")
    parser.add_argument("--mcp-config")
    parser.add_argument("--json-schema", type=json.loads)
    return parser


def _open(given: argparse.Namespace) -> Conversation:
    config = os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude"
    checkpointing = os.environ.get("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "").lower() in _YES
    shelf = Shelf(Path(config, "claude-kernel", "demo"))
    conversation = Conversation(shelf, Path.cwd().resolve(), _session_id(given), checkpointing=checkpointing)
    if given.resume:
        conversation.take_up(given.resume)
        if given.resume_session_at:
            conversation.go_back(given.resume_session_at)
    return conversation


def _session_id(given: argparse.Namespace) -> str:
    return given.session_id or (None if given.fork_session else given.resume) or str(uuid4())


def _give_up(given: argparse.Namespace, problem: str) -> int:
    """As the real one does: a result before anything was asked, and no answer to what is."""
    sys.stderr.write(f"{problem}\n")
    Wire(_write).send(
        "result",
        subtype="error_during_execution",
        is_error=True,
        errors=[problem],
        session_id=_session_id(given),
        uuid=str(uuid4()),
        total_cost_usd=0,
        usage={"input_tokens": 0, "output_tokens": 0},
        modelUsage={},
        duration_ms=0,
        num_turns=0,
        permission_denials=[],
    )
    return 1


async def _talk(given: argparse.Namespace, conversation: Conversation) -> None:
    rules = Rules(Path.cwd().resolve(), given.permission_mode, _listed(given.allowedTools))
    rules.deny = _listed(given.disallowedTools)
    demo = Demo(Wire(_write), rules, conversation, _own_servers(given.mcp_config), given.json_schema)
    running = asyncio.create_task(demo.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.cancel)
    lines = asyncio.StreamReader(limit=64 * 2**20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    reading = asyncio.create_task(_read(lines, demo))
    try:
        await running
    except asyncio.CancelledError:
        demo.interrupt()
        await asyncio.sleep(0.05)  # for a running command to be ended
    finally:
        reading.cancel()


async def _read(lines: asyncio.StreamReader, demo: Demo) -> None:
    try:
        while line := await lines.readline():
            if line.strip():
                demo.receive(json.loads(line))
    except ValueError as error:  # as the real one: what cannot be read ends it
        sys.stderr.write(f"This line is not JSON: {error}\n")
    finally:
        demo.end()


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def _listed(rules: str) -> list[str]:
    return [rule.strip() for rule in rules.split(",") if rule.strip()]


def _own_servers(path: str | None) -> list[str]:
    """Those that live in the notebook's process. Others are not started: the demo needs no stranger's program."""
    if path is None:
        return []
    servers: Json = json.loads(Path(path).read_text()).get("mcpServers", {})
    return [name for name, about in servers.items() if about.get("type") == "sdk"]
