"""The Claude kernel: a cell is a prompt. It composes and delegates; what it overrides of ipykernel is named here.

`shell_main` and `_main_asyncio_lock` are not public: ipykernel is pinned below 8, and the tests would show a change.
Everything else is the kernel's documented interface.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from ipykernel.ipkernel import IPythonKernel

from claude_kernel import __version__
from claude_kernel.cells import Cell, is_complete, read_cell
from claude_kernel.completion import describe, find_completions
from claude_kernel.conversation import Conversation
from claude_kernel.desk import Desk, open_desk
from claude_kernel.errors import ClaudeKernelError
from claude_kernel.faces import (
    COMM_MESSAGES,
    KernelPaper,
    dispatch_comm_now,
    interrupt_from_thread,
    interruptible,
    peek_content,
    peek_type,
)
from claude_kernel.prompts import Asker, KernelFront
from claude_kernel.render import render_notice, render_printed, render_trouble
from claude_kernel.settings import load_settings
from claude_kernel.steering import steer
from claude_kernel.tools.toolbox import Toolbox
from claude_kernel.trouble import Trouble, trouble_of
from claude_kernel.wirelog import keep_recent_lines

_SHUTDOWN_SECONDS = 4.0
_ABOUT = """
A cell is a prompt. `%%python` runs Python here, `!command` a shell command, `/command` one of Claude's own;
`@file` mentions a file or an image. A leading backslash sends such a line as a prompt.
"""


class ClaudeKernel(IPythonKernel):  # type: ignore[misc]  # ipykernel has no types
    """A cell is a message to Claude Code; `%`, `%%` and `!` cells are IPython's."""

    implementation = "claude-kernel"
    implementation_version = __version__
    language_info = {  # noqa: RUF012 - ipykernel's own spelling of a class attribute
        "name": "markdown",
        "mimetype": "text/x-markdown",
        "file_extension": ".md",
        "codemirror_mode": "markdown",
        "pygments_lexer": "markdown",
        "version": __version__,
    }
    help_links = [  # noqa: RUF012 - likewise
        {"text": "Claude Code", "url": "https://code.claude.com/docs"},
        {"text": "Markdown", "url": "https://commonmark.org/help"},
    ]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        keep_recent_lines()
        self._loaded = load_settings(self.parent)
        self._conversation: Conversation | None = None
        self._warmed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self.shell.input_transformers_cleanup.insert(0, _leave_python)

    @property
    def banner(self) -> str:
        return (
            f"claude-kernel {__version__}: a cell is a message to Claude Code.\n"
            "%claude help lists what else you can say; %%python runs Python here."
        )

    @property
    def conversation(self) -> Conversation:
        """Made when it is first needed: the kernel answers before anything is started."""
        if self._conversation is None:
            settings, rows, problems = self._loaded
            self._conversation = settings.converse(
                ask=Asker(KernelFront(self), settings.prompts),
                tools=Toolbox(self.shell, prefix="%%python\n"),
                settings=rows,
                notices=problems,
            )
        return self._conversation

    # --- cells ----------------------------------------------------------------------------------------------------

    async def do_execute(
        self,
        code: str,
        silent: bool,
        store_history: bool = True,
        user_expressions: dict[str, str] | None = None,
        allow_stdin: bool = False,
        *,
        cell_meta: dict[str, Any] | None = None,
        cell_id: str | None = None,
    ) -> dict[str, Any]:
        self._loop = asyncio.get_running_loop()
        cell = read_cell(code)
        plain = self._is_plain(cell_id, allow_stdin)
        trouble = await self._steer(cell, open_desk(KernelPaper(self), plain=plain, cell=cell_id or ""))
        if trouble is None and cell.code is not None:
            reply: dict[str, Any] = await super().do_execute(
                code, silent, store_history, user_expressions, allow_stdin, cell_meta=cell_meta, cell_id=cell_id
            )
            return reply
        interrupted = False
        if trouble is None and cell.prompt is not None and not silent:
            if store_history:
                with interruptible(self.conversation):
                    paper = KernelPaper(self)
                    end = await self.conversation.run(cell.prompt, paper, plain=plain, cell=cell_id or "")
                trouble, interrupted = end.trouble, end.interrupted
            else:
                open_desk(KernelPaper(self), plain=plain).notice(
                    render_notice("Not sent to Claude: the front end marked this as no part of the notebook.")
                )
        if store_history and not silent:
            self._store(code)
        attended = bool(cell_id)
        return self._reply(trouble, interrupted, user_expressions, attended=attended, silent=silent)

    async def _steer(self, cell: Cell, desk: Desk) -> Trouble | None:
        for line in cell.steering:
            try:
                with interruptible(self.conversation):
                    said = await steer(self.conversation, line, desk, _ABOUT)
            except Exception as error:
                if not isinstance(error, ClaudeKernelError):
                    self.log.exception("a %%claude line failed")
                trouble = trouble_of(error)
                if not desk.plain:
                    desk.notice(render_trouble(trouble.title, trouble.remedy, trouble.details))
                return trouble
            if said:
                desk.notice(render_printed(said))
        return None

    def _is_plain(self, cell_id: str | None, allow_stdin: bool) -> bool:
        """Consoles ignore updates of what they have shown. They send no cell id, as notebooks do, and take input, as
        nbclient does not."""
        display = self._loaded.settings.display
        if display != "auto":
            return bool(display == "plain")
        return cell_id is None and allow_stdin

    def _store(self, code: str) -> None:
        """A prompt counts and is remembered like any other input."""
        self.shell.history_manager.store_inputs(self.shell.execution_count, code)
        self.shell.execution_count += 1

    def _reply(
        self,
        trouble: Trouble | None,
        interrupted: bool,
        user_expressions: dict[str, str] | None,
        *,
        attended: bool,
        silent: bool,
    ) -> dict[str, Any]:
        reply: dict[str, Any] = {"status": "ok", "payload": self._take_payload(), "user_expressions": {}}
        reply["execution_count"] = self.shell.execution_count - (0 if silent else 1)
        if trouble is None and not interrupted:
            reply["user_expressions"] = self.shell.user_expressions(user_expressions or {})
            return reply
        error: dict[str, Any] = {
            "ename": trouble.kind if trouble else "KeyboardInterrupt",
            "evalue": trouble.title if trouble else "The turn was interrupted.",
        }
        told = [f"{error['ename']}: {error['evalue']}", *([_plain(trouble)] if trouble else [])]
        error |= {"traceback": told}
        if not attended:  # nbclient, papermill and consoles know a failure by this message; notebooks have the card
            self.send_response(self.iopub_socket, "error", error)
        return reply | {"status": "error"} | error

    def _take_payload(self) -> list[dict[str, Any]]:
        """What the front end is to do with the reply: put in a new cell."""
        payload: list[dict[str, Any]] = self.shell.payload_manager.read_payload()
        self.shell.payload_manager.clear_payload()
        return payload

    # --- interrupt, start, end ------------------------------------------------------------------------------------

    async def interrupt_request(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        """Runs in the control thread. A turn is interrupted by the protocol; Python code by a signal, as ever."""
        if not self._interrupt_turn():
            await super().interrupt_request(stream, ident, parent)
            return
        self.session.send(stream, "interrupt_reply", {"status": "ok"}, parent, ident=ident)

    def _interrupt_turn(self) -> bool:
        conversation, loop = self._conversation, self._loop
        if conversation is None or loop is None or not conversation.running:
            return False
        interrupt_from_thread(conversation, loop)
        return True

    async def kernel_info_request(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        await super().kernel_info_request(stream, ident, parent)
        if not self._warmed:  # after the answer: a gateway may be waiting for it
            self._warmed = True
            self.io_loop.add_callback(self._warm)

    def _warm(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            self.conversation.prewarm()
        except ClaudeKernelError:
            self.log.info("the CLI could not be started in advance", exc_info=True)

    @property
    def kernel_info(self) -> dict[str, Any]:
        """Without subshells: then every front end sends widget messages on the main shell, in the main thread."""
        info: dict[str, Any] = super().kernel_info
        info["supported_features"] = [
            feature for feature in info.get("supported_features", []) if feature != "kernel subshells"
        ]
        return info

    async def do_shutdown(self, restart: bool) -> dict[str, Any]:
        """Runs in the control thread; the session lives on the main loop."""
        conversation, loop = self._conversation, self._loop
        if conversation is not None and loop is not None:
            closing = asyncio.run_coroutine_threadsafe(conversation.close(), loop)
            try:
                async with asyncio.timeout(_SHUTDOWN_SECONDS):
                    await asyncio.wrap_future(closing)
            except Exception:  # the main thread is busy with Python code: do without it
                self.log.warning("the conversation could not be closed gently", exc_info=True)
                conversation.session.kill_now()
        reply: dict[str, Any] = super().do_shutdown(restart)
        return reply

    # --- manners --------------------------------------------------------------------------------------------------

    async def do_complete(self, code: str, cursor_pos: int) -> dict[str, Any]:
        cell = read_cell(code)
        if cell.code is not None and cursor_pos >= cell.code_offset:
            return _moved(super().do_complete(cell.code, cursor_pos - cell.code_offset), cell.code_offset)
        found = find_completions(code[:cursor_pos], self._folder, self._initialised)
        types = [
            {"start": found.start, "end": cursor_pos, "text": match.text, "type": match.kind, "signature": ""}
            for match in found.matches
        ]
        return {
            "status": "ok",
            "matches": [match.text for match in found.matches],
            "cursor_start": found.start,
            "cursor_end": cursor_pos,
            "metadata": {"_jupyter_types_experimental": types},
        }

    async def do_inspect(
        self, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        cell = read_cell(code)
        if cell.code is not None and cursor_pos >= cell.code_offset:
            reply: dict[str, Any] = super().do_inspect(
                cell.code, cursor_pos - cell.code_offset, detail_level, omit_sections
            )
            return reply
        about = describe(code, cursor_pos, self._folder, self._initialised)
        data = {"text/plain": about} if about else {}
        if about:
            data = render_printed(about).to_mime()
        return {"status": "ok", "found": about is not None, "data": data, "metadata": {}}

    async def do_is_complete(self, code: str) -> dict[str, Any]:
        cell = read_cell(code)
        if cell.code is not None:
            reply: dict[str, Any] = super().do_is_complete(code)
            return reply
        status, indent = is_complete(code)
        return {"status": status, "indent": indent} if status == "incomplete" else {"status": status}

    async def do_history(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """IPython calls its own session 0 in a range, whatever it was asked for; a client gets the number it gave."""
        reply: dict[str, Any] = super().do_history(*arguments, **options)
        asked = options.get("session") or 0
        if asked > 0:
            reply["history"] = [(session or asked, *entry) for session, *entry in reply["history"]]
        return reply

    @property
    def _folder(self) -> Path:
        return self._conversation.folder if self._conversation is not None else Path.cwd()

    @property
    def _initialised(self) -> Any:
        return self._conversation.session.initialised if self._conversation is not None else None

    # --- widgets answer while a cell runs -------------------------------------------------------------------------

    async def shell_main(self, subshell_id: str | None, msg: list[Any]) -> Any:
        busy = subshell_id is None and len(msg) > 1 and self._main_asyncio_lock.locked()
        kind = peek_type(self, msg) if busy else ""
        if kind in COMM_MESSAGES:
            return dispatch_comm_now(self, msg)
        if kind == "execute_request" and self._conversation is not None and _takes_over(peek_content(self, msg)):
            self._conversation.hand_over()  # the running cell ends here, and the one that waits goes on with its turn
        return await super().shell_main(subshell_id, msg)


def _takes_over(content: dict[str, Any]) -> bool:
    return read_cell(str(content.get("code") or "")) == Cell(("last",))


def _leave_python(lines: list[str]) -> list[str]:
    """An IPython input transformer: `%claude` lines and `%%python` are ours; the history keeps the cell as it was."""
    code = read_cell("".join(lines)).code
    return lines if code is None else code.splitlines(keepends=True)


def _plain(trouble: Trouble) -> str:
    return render_trouble(trouble.title, trouble.remedy, trouble.details).text.partition("\n")[2]


def _moved(reply: dict[str, Any], offset: int) -> dict[str, Any]:
    """Positions in the code to positions in the cell."""
    reply["cursor_start"] += offset
    reply["cursor_end"] += offset
    for entry in reply.get("metadata", {}).get("_jupyter_types_experimental", []):
        entry["start"] += offset
        entry["end"] += offset
    return reply


__all__ = ["ClaudeKernel"]
