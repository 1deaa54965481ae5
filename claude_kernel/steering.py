"""`%claude …`: what a person can say to the conversation itself. One table; answers are Markdown of our own."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from claude_kernel.cli import EFFORTS, MODES
from claude_kernel.conversation import Conversation
from claude_kernel.desk import Desk
from claude_kernel.errors import UsageError
from claude_kernel.images import read_image
from claude_kernel.prompts.asker import steer_prompts
from claude_kernel.recall import export, last, resume, rewind, sessions
from claude_kernel.render.cut import count_of
from claude_kernel.render.figures import dollars_text
from claude_kernel.spending import budget, context, cost
from claude_kernel.tables import table
from claude_kernel.undoing import undo
from claude_kernel.wirelog import recent_lines

_LOG_CHARACTERS = 18_000


async def steer(conversation: Conversation, line: str, desk: Desk, about: str = "") -> str:
    """Carries out one `%claude` line (without the `%claude`) and says what happened. Raises `UsageError`.

    `desk` is where it may show and ask more than that. `about` is what help says of the face: how a prompt is written.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"`%claude {line}` cannot be read: {error}.") from None
    verb, *rest = words or ["status"]
    command = COMMANDS.get(verb)
    if command is None:
        raise UsageError(f"There is no `%claude {verb}`. There are: {', '.join(COMMANDS)}.")
    said = await command.act(conversation, rest, desk)
    return f"{said}\n\n{about}" if command.act is _help and about else said


async def _status(talk: Conversation, _rest: list[str], _desk: Desk) -> str:
    initialised = talk.session.initialised or await talk.session.start()
    started = talk.last_started
    account = initialised.account if initialised else {}
    who = account.get("email") or account.get("apiKeySource") or account.get("apiProvider") or "unknown"
    rows = [
        ("state", talk.state.value),
        ("model", (started.model if started else "") or talk.options.model or "default"),
        ("mode", talk.mode),
        ("effort", talk.options.effort or "default"),
        ("folder", f"`{talk.folder}`" + ("" if talk.session.trust.trusted else " (not trusted)")),
        ("conversation", f"`{talk.session.session_id}`" if talk.session.session_id else "not begun"),
        ("Claude Code", f"{initialised.version if initialised else '?'}, process {talk.session.pid or 'not running'}"),
        ("logged in as", str(who)),
        ("spent", _money(talk)),
    ]
    return table(("Claude", ""), rows)


async def _model(talk: Conversation, rest: list[str], _desk: Desk) -> str:
    initialised = talk.session.initialised or await talk.session.start()
    if not rest:
        models = initialised.models if initialised else ()
        return table(("model", "what it is"), [(f"`{model.value}`", model.description) for model in models])
    return f"The model is now `{await talk.set_model(rest[0])}`."


async def _mode(talk: Conversation, rest: list[str], _desk: Desk) -> str:
    if not rest:
        return f"The permission mode is `{talk.mode}`. There are {', '.join(f'`{mode}`' for mode in MODES)}."
    if rest[0] not in MODES:
        raise UsageError(f"There is no mode {rest[0]}. There are {', '.join(MODES)}.")
    return f"The permission mode is now `{await talk.set_mode(rest[0])}`."


async def _effort(talk: Conversation, rest: list[str], _desk: Desk) -> str:
    if not rest:
        return f"The effort is `{talk.options.effort or 'default'}`. There are {', '.join(f'`{e}`' for e in EFFORTS)}."
    if rest[0] not in EFFORTS:
        raise UsageError(f"There is no effort {rest[0]}. There are {', '.join(EFFORTS)}.")
    await talk.set_effort(rest[0])
    return f"The effort is now `{rest[0]}`."


async def _new(talk: Conversation, _rest: list[str], _desk: Desk) -> str:
    old = talk.session.session_id
    await talk.start_anew()
    kept = f" The old one is kept as `{old}`." if old else ""
    return f"A new conversation begins with the next prompt.{kept}"


async def _stop(talk: Conversation, _rest: list[str], _desk: Desk) -> str:
    await talk.restart()
    return "Claude Code was stopped, and all it was running. The next prompt starts it again and goes on."


async def _restart(talk: Conversation, _rest: list[str], _desk: Desk) -> str:
    await talk.restart()
    await talk.session.start()
    return "Claude Code was started anew. The conversation goes on."


async def _tools(talk: Conversation, _rest: list[str], _desk: Desk) -> str:
    started = talk.last_started
    if started is None:
        return "Claude says which tools it has when the first prompt is sent."
    servers = [f"`{server.get('name')}` ({server.get('status')})" for server in started.mcp_servers]
    lines = [f"{len(started.tools)} tools: " + ", ".join(f"`{tool}`" for tool in started.tools)]
    lines += ["MCP servers: " + ", ".join(servers)] if servers else []
    return "\n\n".join(lines)


async def _image(talk: Conversation, rest: list[str], _desk: Desk) -> str:
    if not rest:
        raise UsageError("Say which: `%claude image figure.png`.")
    talk.images += [read_image(talk.folder, word) for word in rest]
    return f"Attached to the next prompt: {', '.join(f'`{word}`' for word in rest)}."


async def _prompts(talk: Conversation, rest: list[str], _desk: Desk) -> str:
    return steer_prompts(talk.ask_person, rest)


async def _private(talk: Conversation, rest: list[str], _desk: Desk) -> str:
    if talk.tools is None:
        raise UsageError("Claude has no tools here that could see a variable.")
    privacy = talk.tools.privacy
    show, names = (True, rest[1:]) if rest[:1] == ["--show"] else (False, rest)
    for name in names:
        (privacy.unmark if show else privacy.mark)(name)
    marked = ", ".join(f"`{name}`" for name in privacy.names) or "nothing"
    return f"Marked private: {marked}. Names that secrets commonly have are hidden anyway."


async def _cell(talk: Conversation, rest: list[str], _desk: Desk) -> str:
    if talk.tools is None:
        raise UsageError("Here there is no notebook to put a cell into.")
    blocks = talk.last.code if talk.last is not None else []
    if not blocks:
        raise UsageError("The last answer holds no code block.")
    if rest and not (rest[0].isdigit() and 1 <= int(rest[0]) <= len(blocks)):
        raise UsageError(f"The last answer has {count_of(len(blocks), 'code block')}; say a number from 1.")
    chosen = [blocks[int(rest[0]) - 1]] if rest else blocks
    talk.tools.cells.begin()
    talk.tools.cells.add("\n\n".join(block.code.strip("\n") for block in chosen))
    return "The code stands in a new cell below. It was not run."


async def _config(talk: Conversation, _rest: list[str], _desk: Desk) -> str:
    if not talk.settings:
        raise UsageError("This conversation was not configured from outside.")
    rows = [(f"`{row.name}`", f"{f'`{row.value}`' if row.value else 'empty'}, {row.source}") for row in talk.settings]
    problems = [f"- {problem}" for problem in talk.notices]
    return "\n".join([table(("setting", "value, and where it comes from"), rows), "", *problems])


async def _log(_talk: Conversation, _rest: list[str], _desk: Desk) -> str:
    """The newest lines, as many as are shown whole: of a longer text the middle would be left out."""
    lines, room = recent_lines(), _LOG_CHARACTERS
    first = len(lines)
    while first and room >= len(lines[first - 1]):
        first -= 1
        room -= len(lines[first]) + 1
    return "```\n" + ("\n".join(lines[first:]).replace("```", "'''") or "nothing yet") + "\n```"


async def _help(_talk: Conversation, _rest: list[str], _desk: Desk) -> str:
    rows = [(f"`%claude {name}{command.usage}`", command.summary) for name, command in COMMANDS.items()]
    return table(("say", "what it does"), rows)


class Command(NamedTuple):
    act: Callable[[Conversation, list[str], Desk], Awaitable[str]]
    summary: str
    usage: str = ""

    @property
    def words(self) -> int:
        """How many may follow; of what a magic is told, a longer line is a question."""
        return 99 if self.usage.endswith(" …") else len(self.usage.split())


COMMANDS: dict[str, Command] = {
    "status": Command(_status, "what Claude is doing, with which model, where, and what was spent"),
    "model": Command(_model, "show the models, or change to one", " [NAME]"),
    "mode": Command(_mode, "show or change the permission mode", " [NAME]"),
    "effort": Command(_effort, "show or change how hard Claude thinks", " [NAME]"),
    "image": Command(_image, "attach an image to the next prompt", " PATH …"),
    "cell": Command(_cell, "put code of the last answer into a new cell", " [N]"),
    "private": Command(_private, "hide variables from Claude, or show them again", " [--show] NAME …"),
    "prompts": Command(_prompts, "show or change how you are asked", " [WAY]"),
    "last": Command(last, "show the last turn again; one that still runs goes on here"),
    "resume": Command(resume, "go on with the notebook's earlier conversation, or another", " [ID]"),
    "sessions": Command(sessions, "the conversations of this folder"),
    "rewind": Command(rewind, "take the conversation back to before this cell, or by N prompts", " [N]"),
    "undo": Command(undo, "put back the files that this cell, or the last N, changed", " [N] [--yes]"),
    "context": Command(context, "what fills the context window"),
    "cost": Command(cost, "what was spent, by cell and by model"),
    "budget": Command(budget, "show or set what the notebook may cost", " [USD]"),
    "export": Command(export, "write the conversation as Markdown and as JSON", " [NAME]"),
    "tools": Command(_tools, "the tools and MCP servers Claude has"),
    "new": Command(_new, "begin a new conversation"),
    "stop": Command(_stop, "stop Claude Code and all it is running"),
    "restart": Command(_restart, "start Claude Code anew and go on"),
    "config": Command(_config, "the settings, and where each comes from"),
    "log": Command(_log, "the last messages to and from Claude Code"),
    "help": Command(_help, "this table"),
}


def _money(talk: Conversation) -> str:
    return dollars_text(talk.journal.cost_usd) if talk.journal.cost_known else "nothing yet"
