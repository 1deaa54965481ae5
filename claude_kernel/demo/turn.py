"""One turn as the notebook sees it: words in pieces, calls of tools, questions. The rows are those of the real CLI."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from claude_kernel.demo.rules import EDITS, PERSON_ONLY
from claude_kernel.demo.tools import TOOLS, Done, run_tool
from claude_kernel.demo.wire import Json, Refused

if TYPE_CHECKING:
    from claude_kernel.demo.cli import Demo

MODEL = "offline-demo"
SIGNATURE = "\n\n*Offline demo: these words come from a script, not from a model.*"
_PACE = float(os.environ.get("CLAUDE_KERNEL_DEMO_PACE", "0.012"))
"""Seconds between two words. A script has no need to think, but streaming is to be seen."""
_CHANGES = EDITS | {"Bash"}


class Stopped(Exception):
    """The person said no, and to stop there."""


class Turn:
    """`parent` is the call that sent this one off, where an agent speaks and not the demo itself."""

    def __init__(self, demo: Demo, text: str, images: list[Json] | None = None, parent: str | None = None) -> None:
        self.demo = demo
        self.text = text
        self.images = images or []
        self.parent = parent
        self.denials: list[Json] = []
        self.steps = 0
        self.said = ""
        self.in_tool = False

    # --- words ----------------------------------------------------------------------------------------------------

    async def think(self, text: str) -> None:
        await self._block({"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking", text)

    async def say(self, text: str) -> None:
        self.said = text
        await self._block({"type": "text", "text": ""}, "text_delta", "text", text)

    async def _block(self, block: Json, kind: str, key: str, text: str) -> None:
        pieces = re.findall(r"\S*\s+|\S+", text)
        await self._stream({**block, key: text}, block, [{"type": kind, key: piece} for piece in pieces])

    async def _stream(self, whole: Json, start: Json, deltas: list[Json]) -> None:
        """In pieces, then once more whole: as the real CLI does with partial messages."""
        self.steps += 1
        message: Json = {"id": f"msg_{uuid4().hex[:20]}", "type": "message", "role": "assistant", "model": MODEL}
        message |= {"content": [], "usage": {"input_tokens": 0, "output_tokens": 0}}
        if self.parent is None:
            self._event("message_start", message=message)
            self._event("content_block_start", index=0, content_block=start)
            for delta in deltas:
                self._event("content_block_delta", index=0, delta=delta)
                await asyncio.sleep(_PACE)
        self._row("assistant", message={**message, "content": [whole]})
        if self.parent is None:
            self._event("content_block_stop", index=0)
            self._event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 0})
            self._event("message_stop")

    def _event(self, kind: str, **fields: Any) -> None:
        self._row("stream_event", event={"type": kind, **fields})

    def _row(self, kind: str, **fields: Any) -> None:
        self.demo.row(kind, parent_tool_use_id=self.parent, **fields)

    # --- tools ----------------------------------------------------------------------------------------------------

    async def use(self, tool: str, **given: Any) -> Done:
        """Calls a tool, after whoever must be asked has been."""
        call = await self._call(tool, given)
        return await self._finish(tool, given, call, lambda allowed: self._run(tool, allowed))

    async def use_notebook(self, tool: str, **given: Any) -> Done:
        """A tool that lives in the notebook's process, where it offers one."""
        server = self.demo.server_of(tool)
        if server is None:
            return Done("The notebook offers no such tool here.", failed=True)
        name = f"mcp__{server}__{tool}"
        call = await self._call(name, given)
        return await self._finish(name, given, call, lambda allowed: self.demo.call_server(server, tool, allowed))

    async def send_agent(self, description: str, task: str, work: Callable[[Turn], Awaitable[str]]) -> str:
        """An agent: what it does is shown below the call that sent it."""
        given = {"description": description, "prompt": task, "subagent_type": "general-purpose"}
        call = await self._call("Task", given)
        agent = Turn(self.demo, task, parent=call)
        about = {"task_id": f"a{uuid4().hex[:16]}", "tool_use_id": call}
        self.demo.system(
            "task_started",
            **about,
            description=description,
            subagent_type="general-purpose",
            task_type="local_agent",
            is_backgrounded=False,
        )
        report = await work(agent)
        await agent.say(report)
        self.denials += agent.denials
        self.demo.system("task_notification", **about, status="completed", summary=report)
        content = [{"type": "text", "text": report}]
        self._result(call, Done(report, {"status": "completed", "content": content, "prompt": task}), content)
        return report

    async def _call(self, tool: str, given: Json) -> str:
        call = f"toolu_{uuid4().hex[:20]}"
        block: Json = {"type": "tool_use", "id": call, "name": tool, "input": {}}
        written = json.dumps(given)
        pieces = [written[at : at + 60] for at in range(0, len(written), 60)]
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        await self._stream({**block, "input": given}, block, deltas)
        return call

    async def _finish(self, tool: str, given: Json, call: str, run: Callable[[Json], Awaitable[Done]]) -> Done:
        self.in_tool = True
        try:
            allowed, refusal = await self._permit(tool, given, call)
            refused = Done(refusal, f"Error: {refusal}", failed=True)
            done = refused if allowed is None else await run(allowed)
        except asyncio.CancelledError:
            self._result(call, Done("Stopped by the person.", "Error: stopped", failed=True))
            raise
        self.in_tool = False
        self._result(call, done, refused=allowed is None)
        return done

    async def _run(self, tool: str, given: Json) -> Done:
        if tool == "AskUserQuestion":
            answers = given.get("answers") or {}
            told = "; ".join(f"{question}: {answer}" for question, answer in answers.items())
            return Done(told or "No answer.", {"questions": given["questions"], "answers": answers})
        if tool == "ExitPlanMode":
            if self.demo.rules.mode == "plan":
                self._learn([{"type": "setMode", "mode": "default"}])
            return Done("The plan is approved.", {"plan": given.get("plan")})
        if tool in EDITS and self.parent is None:  # what an agent changes, the real CLI does not cover either
            self.demo.conversation.note_change((self.demo.folder / str(given["file_path"])).resolve())
        return await run_tool(tool, self.demo.folder, given) if tool in TOOLS else Done("Unknown tool.", failed=True)

    def _result(self, call: str, done: Done, content: Any = None, *, refused: bool = False) -> None:
        block = {"type": "tool_result", "tool_use_id": call, "content": content or done.text, "is_error": done.failed}
        if isinstance(done.structured, list):  # what a tool of the notebook sent, with its images
            block["content"] = done.structured
        meta = [{"id": call, "non_execution_kind": "permission-rule"}] if refused else []
        message = {"role": "user", "content": [block]}
        self._row("user", message=message, tool_use_result=done.structured, tool_result_meta=meta)

    # --- permission -----------------------------------------------------------------------------------------------

    async def _permit(self, tool: str, given: Json, call: str) -> tuple[Json | None, str]:
        """The input to run with, or nothing and why not."""
        rules = self.demo.rules
        if rules.mode == "plan" and tool in _CHANGES:
            planned = await self.use("ExitPlanMode", plan=f"1. {describe(tool, given, self.demo.folder)}")
            if planned.failed:
                return None, f"Still planning: {planned.text}"
        verdict = rules.decide(tool, given)
        if verdict == "allow":
            return given, ""
        if verdict != "ask":
            self.denials.append({"tool_name": tool, "tool_use_id": call, "tool_input": given})
            return None, verdict
        try:
            said = await self.demo.wire.request(
                "can_use_tool",
                tool_name=tool,
                display_name=tool.rpartition("__")[2],
                input=given,
                description=str(given.get("description") or ""),
                permission_suggestions=rules.suggest(tool, given),
                blocked_path=None if rules.is_inside(given) else given.get("file_path"),
                tool_use_id=call,
                requires_user_interaction=tool in PERSON_ONLY,
            )
        except Refused as refused:
            said = {"behavior": "deny", "message": str(refused)}
        if said.get("behavior") != "allow":
            self.denials.append({"tool_name": tool, "tool_use_id": call, "tool_input": given})
            if said.get("interrupt"):
                raise Stopped
            return None, str(said.get("message") or "Not allowed.")
        self._learn(said.get("updatedPermissions") or [])
        return said.get("updatedInput") or given, ""

    def _learn(self, updates: list[Json]) -> None:
        before = self.demo.rules.mode
        self.demo.rules.learn(updates)
        if self.demo.rules.mode != before:
            self.demo.system("status", status=None, permissionMode=self.demo.rules.mode)


def describe(tool: str, given: Json, folder: Path) -> str:
    """A step of a plan."""
    if tool == "Bash":
        return str(given.get("description") or f"Run `{given.get('command')}`")
    path = os.path.relpath(folder / str(given.get("file_path")), folder)
    return f"{'Write' if tool == 'Write' else 'Change'} `{path}`"
