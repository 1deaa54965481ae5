"""What this process does for the CLI: its MCP servers, its hooks, its host tools. Each call gets exactly one reply."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from claude_kernel.errors import ClaudeKernelError
from claude_kernel.protocol import Connection, events

log = logging.getLogger("claude_kernel.serving")

Json = dict[str, Any]
McpServer = Callable[[Json], Awaitable[Json | None]]
"""Takes a JSON-RPC message, returns the whole response; nothing for a notification."""
McpServers = Mapping[str, McpServer]
HostTools = Mapping[str, Callable[[Json], Awaitable[str]]]


class Hook(NamedTuple):
    """A callback for one of the CLI's hook events; `matcher` names tools, as the CLI's settings do."""

    callback: Callable[[Json], Awaitable[Json]]
    matcher: str | None = None


Hooks = Mapping[str, Sequence[Hook]]


class _Line(Protocol):
    """The part of a link that serving needs."""

    @property
    def connection(self) -> Connection: ...

    def send(self, line: bytes) -> None: ...


def hook_registrations(hooks: Hooks) -> Json:
    """The `hooks` of `initialize`: event, matcher, and the ids under which the callbacks come back."""
    registrations: Json = {}
    for event, index, hook in _numbered(hooks):
        entry: Json = {"hookCallbackIds": [f"{event}.{index}"]}
        if hook.matcher is not None:
            entry["matcher"] = hook.matcher
        registrations.setdefault(event, []).append(entry)
    return registrations


def _numbered(hooks: Hooks) -> list[tuple[str, int, Hook]]:
    return [(event, index, hook) for event, given in hooks.items() for index, hook in enumerate(given)]


async def serve_hook(link: _Line, hooks: Hooks, called: events.HookCalled) -> None:
    callbacks = {f"{event}.{index}": hook.callback for event, index, hook in _numbered(hooks)}
    callback = callbacks.get(called.callback_id)
    if callback is None:
        _send(link, lambda: link.connection.refuse(called.request_id, f"No hook {called.callback_id} here."))
        return
    try:
        answer = await callback(called.input)
    except Exception as error:
        log.exception("hook %s failed", called.callback_id)
        message = f"The hook failed: {error}"
        _send(link, lambda: link.connection.refuse(called.request_id, message))
        return
    _send(link, lambda: link.connection.reply(called.request_id, answer))


async def serve_mcp(link: _Line, servers: McpServers, called: events.McpCalled) -> None:
    message_id = called.message.get("id")
    server = servers.get(called.server)
    try:
        if server is None:
            response = _rpc_error(message_id, -32601, f"No MCP server {called.server} in this process.")
        else:
            # A notification has no response of its own, but the control request around it still needs one.
            response = await server(called.message) or {"jsonrpc": "2.0", "id": message_id, "result": {}}
    except Exception as error:
        log.exception("MCP server %s failed", called.server)
        response = _rpc_error(message_id, -32603, f"{type(error).__name__}: {error}")
    _send(link, lambda: link.connection.reply(called.request_id, {"mcp_response": response}))


async def run_host_tool(link: _Line, tools: HostTools, question: events.Question, given: Json) -> events.ToolFinished:
    """Runs an allowed tool of the host-tools dialect and sends its result."""
    tool_use_id = question.tool_use_id or question.id
    tool = tools.get(question.tool_name)
    failed = False
    if tool is None:
        text, failed = f"There is no tool {question.tool_name} here.", True
    else:
        try:
            text = await tool(given)
        except Exception as error:
            text, failed = f"{type(error).__name__}: {error}", True
    link.send(link.connection.send_tool_result(tool_use_id, text, is_error=failed))
    return events.ToolFinished(tool_use_id=tool_use_id, text=text, is_error=failed)


def _rpc_error(message_id: Any, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": message}}


def _send(link: _Line, encode: Callable[[], bytes]) -> None:
    try:
        link.send(encode())
    except ClaudeKernelError as error:  # withdrawn meanwhile
        log.info("reply not sent: %s", error)
