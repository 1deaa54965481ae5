"""`%%claude` and `%claude` in a Python notebook, or in IPython in a terminal. It composes and delegates.

IPython has no asynchronous magics. A cell that begins with ours is rewritten to one that awaits what the magic returns;
where that cannot be (inside `%%time`, with `%autoawait off`), the magic is called as it is, and runs the loop itself if
none is running, or says why it cannot.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shlex
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
from IPython.lib.pretty import pretty

from claude_kernel.cli import MODES
from claude_kernel.conversation import CellEnd, Conversation
from claude_kernel.desk import Desk, open_desk
from claude_kernel.errors import ClaudeKernelError, UsageError
from claude_kernel.faces import KernelPaper, interruptible, mend_comms
from claude_kernel.fill import fill
from claude_kernel.images import IMAGE_TYPES, image_of
from claude_kernel.prompts import Asker, KernelFront
from claude_kernel.protocol.events import Image
from claude_kernel.render import render_printed
from claude_kernel.reply import Reply
from claude_kernel.settings import load_settings
from claude_kernel.steering import COMMANDS, steer
from claude_kernel.terminal import TerminalFront, TerminalPaper
from claude_kernel.tools.toolbox import Toolbox
from claude_kernel.typed import Wanted
from claude_kernel.wirelog import keep_recent_lines

_OURS = re.compile(r"get_ipython\(\)\.run_(?:cell|line)_magic\('claude', ")
_ENCLOSING = frozenset({"run_cell_magic", "run_line_magic"})
_ABOUT = """
`%%claude` sends the cell below it, `%claude question` a line; `%%claude --help` lists the options. `/command` is one of
Claude's own, `@file` mentions a file. With `--name` before it, a word of the table goes to that conversation.
"""
DEFAULT = "default"


class ClaudeFailed(Exception):
    """The cell failed. What went wrong stands in its output already, so the traceback is one line."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class ClaudeInterrupted(KeyboardInterrupt):
    def _render_traceback_(self) -> list[str]:
        return ["KeyboardInterrupt: The turn was interrupted."]


class Claude:
    """What `claude` is in the namespace: the last reply, and the conversations by name."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._kernel = getattr(shell, "kernel", None)
        self._tools = Toolbox(shell)
        self._loaded = load_settings(shell.parent)
        self.conversations: dict[str, Conversation] = {}
        self.last: Reply | None = None
        self._executions: dict[str, str] = {}
        """By conversation, the execution of its last prompt."""

    def __repr__(self) -> str:
        names = ", ".join(self.conversations) or "none yet"
        return f"<claude: `%%claude` sends a cell, `%claude help` says what else; conversations: {names}>"

    # --- the two magics -------------------------------------------------------------------------------------------

    def cell_magic(self, line: str, cell: str) -> Any:
        return self._begin(self._plainly(self._run_cell(line, cell)))

    def line_magic(self, line: str) -> Any:
        return self._begin(self._plainly(self._run_line(line)))

    def _begin(self, work: Coroutine[Any, Any, None]) -> Any:
        """Handed to the `await` before the magic, or run here where there is none."""
        if _is_awaited():
            return work
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            from IPython.core.async_helpers import get_asyncio_loop

            return get_asyncio_loop().run_until_complete(work)  # type: ignore[no-untyped-call]
        work.close()
        raise ClaudeFailed(
            "Here `%%claude` cannot wait for Claude: inside another magic, or with `%autoawait off`, a cell blocks its "
            "kernel. Make it the first line of its cell, and say `%autoawait on`."
        )

    async def _run_line(self, line: str) -> None:
        asked, rest = _split_options(line)
        if asked is None or not _steers(asked, rest):
            await self._ask(asked, rest)
            return
        talk = self.conversation(asked.name)
        with interruptible(talk):
            told = await steer(talk, rest, self._desk, _ABOUT)
        if told:
            self._desk.notice(render_printed(told))

    async def _run_cell(self, line: str, cell: str) -> None:
        asked, rest = _split_options(line)
        if asked is not None and rest:
            raise UsageError(f"`{rest}` is no option. The prompt stands below the first line; `%%claude --help` helps.")
        await self._ask(asked, cell.strip("\n"))

    async def _ask(self, asked: argparse.Namespace | None, prompt: str) -> None:
        if asked is None:
            self._desk.notice(render_printed(f"```\n{_PARSER.format_help()}```"))
            return
        end, wanted = await self._turn(asked, prompt)
        if end.interrupted:
            raise ClaudeInterrupted
        if end.trouble is not None:
            unseen = asked.quiet or not self._cell  # what runs a notebook by itself prints no more than this
            remedy = f" {end.trouble.remedy}" if unseen else ""
            raise ClaudeFailed(f"{end.trouble.kind}: {end.trouble.title}{remedy}")
        if end.reply is not None:
            self.last = end.reply  # also where it fits no schema: it was paid for
            self._keep(_typed(end.reply, wanted), asked.o)

    @staticmethod
    async def _plainly(work: Coroutine[Any, Any, None]) -> None:
        """What we raise on purpose is one line, and no traceback of ours."""
        try:
            await work
        except ClaudeKernelError as error:
            raise ClaudeFailed(f"{type(error).__name__}: {error}") from None

    async def _turn(self, asked: argparse.Namespace, prompt: str) -> tuple[CellEnd, Wanted | None]:
        if not prompt.strip():
            raise UsageError("There is no prompt. Write it below `%%claude`, or after `%claude`.")
        wanted = Wanted(self._evaluate(asked.schema)) if asked.schema else None
        images = [self._image(each) for each in asked.image]
        text = fill(prompt, self._evaluate, pretty) if asked.f else prompt
        talk = self.conversation(asked.name)
        await _apply(talk, asked, wanted)
        talk.images += images
        plain, paper = self._plain, _Quiet(self._paper) if asked.quiet else self._paper
        with interruptible(talk):
            return await talk.run(text, paper, plain=plain, cell=self._cell_of(asked.name)), wanted

    def _keep(self, reply: Reply, name: str | None) -> None:
        self.last = reply
        self._shell.displayhook.update_user_ns(reply)
        if name:
            self._shell.user_ns[name] = reply

    def await_ours(self, lines: list[str]) -> list[str]:
        """An IPython input transformer: a cell of ours is awaited, where there is somebody to await it."""
        if not self._shell.autoawait or not any(map(_OURS.match, lines)) or _in_a_magic():
            return lines
        return [f"await {line}" if _OURS.match(line) else line for line in lines]

    # --- what it stands on ----------------------------------------------------------------------------------------

    def conversation(self, name: str) -> Conversation:
        talk = self.conversations.get(name)
        if talk is None:
            settings, rows, problems = self._loaded
            front = KernelFront(self._kernel) if self._kernel is not None else TerminalFront()
            # A terminal shows no cards, and needs no proof of it.
            way = settings.prompts if self._kernel is not None or settings.prompts == "never" else "stdin"
            talk = self.conversations[name] = settings.converse(
                name=name, ask=Asker(front, way), tools=self._tools, settings=rows, notices=problems
            )
        return talk

    @property
    def _paper(self) -> Any:
        return KernelPaper(self._kernel) if self._kernel is not None else TerminalPaper()

    @property
    def _cell(self) -> str:
        """Jupyter's id of the running cell, where the front end tells it."""
        asked = self._kernel.get_parent("shell") if self._kernel is not None else {}
        return str(asked.get("metadata", {}).get("cellId") or "")

    def _cell_of(self, name: str) -> str:
        """For a prompt. A cell may hold several: only the first of them is the cell run again."""
        asked = self._kernel.get_parent("shell") if self._kernel is not None else {}
        execution = str(asked.get("header", {}).get("msg_id") or "")
        first = self._executions.get(name) != execution
        self._executions[name] = execution
        return self._cell if first else ""

    @property
    def _desk(self) -> Desk:
        return open_desk(self._paper, plain=self._plain, cell=self._cell)

    @property
    def _plain(self) -> bool:
        """Consoles cannot update what they have shown; they send no cell id, and take input."""
        display = self._loaded.settings.display
        if self._kernel is None or display == "plain":
            return True
        if display == "rich":
            return False
        typed = bool(self._kernel.get_parent("shell").get("content", {}).get("allow_stdin", False))
        return not self._cell and typed

    def _image(self, given: str) -> Image:
        """Of a file by its path as it stands, or of what the expression gives."""
        named = Path(given).suffix.lower() in IMAGE_TYPES
        return image_of(given if named else self._evaluate(given))

    def _evaluate(self, expression: str) -> object:
        shell = self._shell
        try:
            return eval(expression, shell.user_global_ns, shell.user_ns)  # noqa: S307 - the person wrote it in a cell
        except Exception as error:
            raise UsageError(f"`{expression}` cannot be evaluated: {type(error).__name__}: {error}") from None

    def close(self) -> None:
        for talk in self.conversations.values():
            talk.session.kill_now()


class _Quiet:
    """Paper on which only cards are shown: a person must still be able to answer."""

    def __init__(self, paper: Any) -> None:
        self._paper = paper
        self._shown: set[str] = set()

    def show(self, mime: dict[str, Any], display_id: str, metadata: dict[str, Any]) -> None:
        if self._matters(mime):
            self._shown.add(display_id)
            self._paper.show(mime, display_id, metadata)

    def update(self, mime: dict[str, Any], display_id: str, metadata: dict[str, Any]) -> None:
        if display_id in self._shown:
            self._paper.update(mime, display_id, metadata)
        else:
            self.show(mime, display_id, metadata)

    def write(self, text: str, *, error: bool = False) -> None:
        if error:
            self._paper.write(text, error=error)

    @staticmethod
    def _matters(mime: dict[str, Any]) -> bool:
        return any("widget" in kind for kind in mime)


# --- options --------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UsageError(f"{message}. `%%claude --help` lists the options.")


def _make_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="%%claude", add_help=False, description="Sends the cell to Claude.")
    add = parser.add_argument
    add("--help", "-h", action="store_true", help="this text")
    add("--model", metavar="NAME", help="the model, from now on")
    add("--mode", choices=MODES, metavar="NAME", help=f"the permission mode, from now on: {', '.join(MODES)}")
    add("--name", default=DEFAULT, metavar="NAME", help="which conversation; each name has its own")
    add("--new", action="store_true", help="begin the conversation anew")
    add("-o", metavar="VAR", help="keep the reply: .text, .code, .data, .cost, .session_id")
    add("--schema", metavar="EXPR", help="a JSON schema, dataclass, Struct or pydantic model: the type of .data")
    add("--image", action="append", default=[], metavar="EXPR", help="a file, a PIL image or a figure; repeatable")
    add("--quiet", action="store_true", help="show nothing but questions and errors")
    add("--max-budget", type=float, metavar="USD", help="stop when so much was spent, from now on")
    add("-f", action="store_true", help="fill in {expression} from the namespace; {{ is a brace")
    return parser


_PARSER = _make_parser()


def _split_options(line: str) -> tuple[argparse.Namespace | None, str]:
    """The options a line begins with, and the rest of it. No namespace where only help is wanted."""
    try:
        words = shlex.split(line) if line.lstrip().startswith("-") else []
    except ValueError as error:
        raise UsageError(f"`{line}` cannot be read: {error}.") from None
    if not words:
        return _PARSER.parse_args([]), line.strip()
    parsed, rest = _PARSER.parse_known_args(words)
    if rest and rest[0].startswith("-"):
        raise UsageError(f"There is no option {rest[0]}. `%%claude --help` lists them.")
    return (None, "") if parsed.help else (parsed, " ".join(rest))


def _steers(asked: argparse.Namespace, rest: str) -> bool:
    """Whether a line is for the conversation itself. It is not where it has an option that only a question can have."""
    plain = argparse.Namespace(**{**vars(_PARSER.parse_args([])), "name": asked.name})
    verb, *words = rest.split() or ["status"]
    return asked == plain and verb in COMMANDS and len(words) <= COMMANDS[verb].words


async def _apply(talk: Conversation, asked: argparse.Namespace, wanted: Wanted | None) -> None:
    """What a line asks of the conversation. A schema and a budget are the process's: it is replaced and resumes."""
    if asked.new:
        await talk.start_anew()
    changes: dict[str, Any] = {}
    schema = wanted.schema if wanted is not None else None
    if schema != talk.options.json_schema:
        changes["json_schema"] = schema
    if asked.max_budget is not None and asked.max_budget != talk.options.max_budget_usd:
        changes["max_budget_usd"] = asked.max_budget
    if changes:
        await talk.restart(**changes)
    if asked.model is not None and asked.model != talk.options.model:
        await talk.set_model(asked.model)
    if asked.mode is not None and asked.mode != talk.options.mode:
        await talk.set_mode(asked.mode)


def _typed(reply: Reply, wanted: Wanted | None) -> Reply:
    if wanted is None:
        return reply
    if reply.data is None:
        raise UsageError(f"Claude answered in words and not by the schema: {reply.text[:200]}")
    return msgspec.structs.replace(reply, data=wanted.convert(reply.data))


# --- IPython --------------------------------------------------------------------------------------------------------


def _is_awaited() -> bool:
    """Whether the code that called the magic was rewritten to await it: it is then a coroutine itself."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name not in _ENCLOSING:
        frame = frame.f_back  # type: ignore[assignment]  # ends with None
    caller = frame.f_back if frame is not None else None
    return caller is not None and bool(caller.f_code.co_flags & 0x80) and caller.f_code.co_name == "<module>"


def _in_a_magic() -> bool:
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in _ENCLOSING and frame.f_code.co_filename.endswith("interactiveshell.py"):
            return True
        frame = frame.f_back
    return False


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext claude_kernel`."""
    keep_recent_lines()
    kernel = getattr(shell, "kernel", None)
    if type(kernel).__name__ == "ClaudeKernel":
        raise UsageError("This is the Claude kernel: a cell is a message to Claude already.")
    if kernel is not None:
        mend_comms(kernel)
    claude = Claude(shell)
    shell.register_magic_function(claude.cell_magic, "cell", "claude")
    shell.register_magic_function(claude.line_magic, "line", "claude")
    shell.input_transformers_post.append(claude.await_ours)
    shell.push({"claude": claude}, interactive=False)
    shell.claude = claude


def unload_ipython_extension(shell: Any) -> None:
    claude = shell.__dict__.pop("claude", None)
    if not isinstance(claude, Claude):
        return
    shell.input_transformers_post.remove(claude.await_ours)
    for kind in ("cell", "line"):
        shell.magics_manager.magics[kind].pop("claude", None)
    claude.close()
    if shell.user_ns.get("claude") is claude:
        del shell.user_ns["claude"]
