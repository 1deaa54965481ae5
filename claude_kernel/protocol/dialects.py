"""The five dialects as data: how each writes a prompt, a request, an answer. Reading is the same for all (`wire`).

| name         | what only it has                                                              |
|--------------|-------------------------------------------------------------------------------|
| `direct`     | the real CLI's own; answers keyed by question text                            |
| `bridge`     | `session.create`/`session.send`, `callback.response`, snake_case, `--cwd`     |
| `host-tools` | no control messages: this side asks, runs the tools, sends `tool_result`      |
| `jsonrpc`    | JSON-RPC 2.0 envelopes around the same messages                               |
| `indexed`    | answers keyed by index, content always a list                                 |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from claude_kernel.errors import UsageError
from claude_kernel.protocol.decisions import Allow, Answers, Decision, Deny, Filled, Prompt
from claude_kernel.protocol.events import Image, Question

Wire = dict[str, Any]

STREAM_ARGUMENTS = ("--output-format=stream-json", "--input-format=stream-json", "--verbose")
ASKING_ARGUMENTS = (*STREAM_ARGUMENTS, "--permission-prompt-tool=stdio")


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    prompt: Callable[[Prompt, bool], Wire]
    """The prompt, and whether it is the first of the process."""
    request: Callable[[str, str, Wire], Wire]
    answer: Callable[[Question, Decision], Wire]
    reply: Callable[[str, Wire], Wire]
    refuse: Callable[[str, str], Wire]
    arguments: tuple[str, ...] = ASKING_ARGUMENTS
    initialises: bool = True
    interrupts: bool = True
    """False: the only interrupt is to end the process and resume."""
    host_runs_tools: bool = False
    passes_cwd: bool = False


# --- the parts ------------------------------------------------------------------------------------------------------


def encode_image(image: Image) -> Wire:
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}


def _blocks(prompt: Prompt) -> list[Wire]:
    return [*map(encode_image, prompt.images), {"type": "text", "text": prompt.text}]


def _message(prompt: Prompt) -> Wire:
    return {"role": "user", "content": _blocks(prompt) if prompt.images else prompt.text}


def _payload(question: Question, decision: Decision, spelling: dict[str, str], answers: Callable[..., Wire]) -> Wire:
    """A decision in the words of `can_use_tool`; `spelling` holds the three names on which dialects differ."""
    target = {spelling["tool_use_id"]: question.tool_use_id} if question.tool_use_id else {}
    if isinstance(decision, Deny):
        stop = {"interrupt": True} if decision.stop else {}
        return {"behavior": "deny", "message": decision.reason, **stop, **target}
    if isinstance(decision, Filled):
        raise UsageError("a filled form answers an MCP server's dialog, not a tool's question")
    if isinstance(decision, Answers):
        updated: Wire = answers(question, decision)
        keep: tuple[Wire, ...] = ()
    else:
        updated = question.input if decision.input is None else decision.input
        keep = decision.permissions
    rules = {spelling["updated_permissions"]: list(keep)} if keep else {}
    return {"behavior": "allow", spelling["updated_input"]: updated, **rules, **target}


def _dialog_payload(decision: Decision) -> Wire:
    """MCP elicitation: `accept` with content, or `decline`."""
    if isinstance(decision, Filled):
        return {"action": "accept", "content": decision.content}
    if isinstance(decision, Allow):  # a page to visit has nothing to fill in
        return {"action": "accept", "content": {}}
    return {"action": "decline"}


def _answers_by_text(question: Question, decision: Answers) -> Wire:
    """The original input plus `answers` by question text; several labels joined by ", " (scene `question`)."""
    joined = {text: given if isinstance(given, str) else ", ".join(given) for text, given in _known(question, decision)}
    return {**question.input, "answers": joined}


def _answers_by_index(question: Question, decision: Answers) -> Wire:
    given = dict(_known(question, decision))
    return {"answers": {str(i): given[asked.text] for i, asked in enumerate(question.form) if asked.text in given}}


def _known(question: Question, decision: Answers) -> list[tuple[str, str | list[str]]]:
    """A key the CLI does not know is silently "not answered": refused here instead."""
    asked = {entry.text for entry in question.form}
    for text in decision.by_question:
        if text not in asked:
            raise UsageError(f"the form has no question {text!r}; it asks {sorted(asked)}")
    return list(decision.by_question.items())


_CAMEL = {"tool_use_id": "toolUseID", "updated_input": "updatedInput", "updated_permissions": "updatedPermissions"}
_SNAKE = {name: name for name in _CAMEL}
_INITIALISE_CAMEL = {
    "system_prompt": "systemPrompt",
    "append_system_prompt": "appendSystemPrompt",
    "mcp_servers": "mcpServers",
    "sdk_mcp_servers": "sdkMcpServers",
    "json_schema": "jsonSchema",
}


def _decide(question: Question, decision: Decision, spelling: dict[str, str], answers: Callable[..., Wire]) -> Wire:
    if question.dialog is not None:
        return _dialog_payload(decision)
    return _payload(question, decision, spelling, answers)


# --- direct, and indexed, which differs only in answers and content -------------------------------------------------


def _direct_prompt(prompt: Prompt, _first: bool) -> Wire:
    return {
        "type": "user",
        "session_id": "",
        "message": _message(prompt),
        "parent_tool_use_id": None,
        "uuid": prompt.id,
    }


def _indexed_prompt(prompt: Prompt, _first: bool) -> Wire:
    message = {"role": "user", "content": _blocks(prompt)}
    return {"type": "user", "session_id": "", "message": message, "parent_tool_use_id": None}


def _respell(subtype: str, fields: Wire) -> Wire:
    if subtype != "initialize":
        return fields
    return {_INITIALISE_CAMEL.get(name, name): value for name, value in fields.items()}


def _direct_request(request_id: str, subtype: str, fields: Wire) -> Wire:
    request = {"subtype": subtype, **_respell(subtype, fields)}
    return {"type": "control_request", "request_id": request_id, "request": request}


def _direct_reply(request_id: str, response: Wire) -> Wire:
    return {
        "type": "control_response",
        "response": {"subtype": "success", "request_id": request_id, "response": response},
    }


def _direct_refuse(request_id: str, error: str) -> Wire:
    return {"type": "control_response", "response": {"subtype": "error", "request_id": request_id, "error": error}}


def _direct_answer(question: Question, decision: Decision) -> Wire:
    return _direct_reply(question.id, _decide(question, decision, _CAMEL, _answers_by_text))


def _indexed_answer(question: Question, decision: Decision) -> Wire:
    return _direct_reply(question.id, _decide(question, decision, _CAMEL, _answers_by_index))


# --- bridge ---------------------------------------------------------------------------------------------------------


def _bridge_prompt(prompt: Prompt, first: bool) -> Wire:
    return {"type": "session.create" if first else "session.send", "message": _message(prompt)}


def _bridge_request(request_id: str, subtype: str, fields: Wire) -> Wire:
    return {"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **fields}}


def _bridge_reply(request_id: str, response: Wire) -> Wire:
    return {
        "type": "callback.response",
        "response": {"subtype": "success", "request_id": request_id, "response": response},
    }


def _bridge_refuse(request_id: str, error: str) -> Wire:
    return {"type": "callback.response", "response": {"subtype": "error", "request_id": request_id, "error": error}}


def _bridge_answer(question: Question, decision: Decision) -> Wire:
    return _bridge_reply(question.id, _decide(question, decision, _SNAKE, _answers_by_text))


# --- host-tools -----------------------------------------------------------------------------------------------------


def _host_prompt(prompt: Prompt, _first: bool) -> Wire:
    return {"type": "user", "message": _message(prompt)}


def encode_tool_result(tool_use_id: str, text: str, images: tuple[Image, ...], is_error: bool) -> Wire:
    content = [{"type": "text", "text": text}, *map(encode_image, images)]
    block: Wire = {"tool_use_id": tool_use_id, "type": "tool_result", "content": content}
    if is_error:
        block["is_error"] = True
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def _host_answer(question: Question, decision: Decision) -> Wire:
    """The result of a tool that was not run: a refusal, or the answers themselves. An allowed tool has no answer on
    the wire; its result is sent when it has run."""
    tool_use_id = question.tool_use_id or question.id
    if isinstance(decision, Deny):
        return encode_tool_result(tool_use_id, decision.reason, (), is_error=True)
    if isinstance(decision, Answers):
        answers: Wire = _answers_by_text(question, decision)["answers"]
        return encode_tool_result(
            tool_use_id, "\n".join(f"{text} {given}" for text, given in answers.items()), (), False
        )
    raise UsageError("an allowed host tool is answered by its result")


def _host_has_no_control(*_arguments: Any) -> Wire:
    raise UsageError("the host-tools dialect has no control messages")


# --- jsonrpc --------------------------------------------------------------------------------------------------------


def _rpc(**fields: Any) -> Wire:
    return {"jsonrpc": "2.0", **fields}


def _rpc_prompt(prompt: Prompt, _first: bool) -> Wire:
    return _rpc(id=prompt.id, method="run", params={"message": _message(prompt), "uuid": prompt.id})


def _rpc_request(request_id: str, subtype: str, fields: Wire) -> Wire:
    return _rpc(id=request_id, method=subtype, params=_respell(subtype, fields))


def _rpc_reply(request_id: str, response: Wire) -> Wire:
    return _rpc(id=request_id, result=response)


def _rpc_refuse(request_id: str, error: str) -> Wire:
    return _rpc(id=request_id, error={"code": -32601, "message": error})


def _rpc_answer(question: Question, decision: Decision) -> Wire:
    return _rpc_reply(question.id, _decide(question, decision, _CAMEL, _answers_by_text))


# --- the table ------------------------------------------------------------------------------------------------------

DIRECT = Dialect(
    name="direct",
    prompt=_direct_prompt,
    request=_direct_request,
    answer=_direct_answer,
    reply=_direct_reply,
    refuse=_direct_refuse,
    arguments=(*ASKING_ARGUMENTS, "--include-partial-messages"),
)

DIALECTS: dict[str, Dialect] = {
    "direct": DIRECT,
    "bridge": Dialect(
        name="bridge",
        prompt=_bridge_prompt,
        request=_bridge_request,
        answer=_bridge_answer,
        reply=_bridge_reply,
        refuse=_bridge_refuse,
        passes_cwd=True,
    ),
    "host-tools": Dialect(
        name="host-tools",
        prompt=_host_prompt,
        request=_host_has_no_control,
        answer=_host_answer,
        reply=_host_has_no_control,
        refuse=_direct_refuse,  # it should ask nothing, but what it asks must not be left hanging
        arguments=("-p", *STREAM_ARGUMENTS, "--dangerously-skip-permissions"),
        initialises=False,
        interrupts=False,
        host_runs_tools=True,
    ),
    "jsonrpc": Dialect(
        name="jsonrpc",
        prompt=_rpc_prompt,
        request=_rpc_request,
        answer=_rpc_answer,
        reply=_rpc_reply,
        refuse=_rpc_refuse,
    ),
    "indexed": Dialect(
        name="indexed",
        prompt=_indexed_prompt,
        request=_direct_request,
        answer=_indexed_answer,
        reply=_direct_reply,
        refuse=_direct_refuse,
        initialises=False,
    ),
}


def find_dialect(name: str) -> Dialect:
    try:
        return DIALECTS[name]
    except KeyError:
        raise UsageError(f"no dialect {name!r}; there are {', '.join(DIALECTS)}") from None
