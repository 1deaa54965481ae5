"""The notebook's tools as an MCP server in this process: one table, and the three messages the CLI sends.

A new tool is one row. What only looks is allowed without asking; what runs code asks like Bash does.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from claude_kernel import __version__
from claude_kernel.errors import ClaudeKernelError, UsageError
from claude_kernel.protocol.events import Image
from claude_kernel.tools.cells import KINDS, Cells
from claude_kernel.tools.figures import open_figures
from claude_kernel.tools.privacy import Privacy
from claude_kernel.tools.running import PythonRan, PythonRunner
from claude_kernel.tools.variables import inspect_variable, list_variables

log = logging.getLogger("claude_kernel.tools")

Json = dict[str, Any]
SERVER = "notebook"
RUN_PYTHON = f"mcp__{SERVER}__run_python"
_PROTOCOL = "2025-06-18"

INSTRUCTIONS = f"""\
You are inside a Jupyter notebook: the person reads your answer as the output of a cell, and works in the same live \
Python process that the tools of the MCP server `{SERVER}` reach.

- Data that the person speaks of is usually a variable there: look with list_variables and inspect_variable before you \
ask or read files. read_cells shows what was run so far.
- Use run_python, not Bash, for Python that works with the person's variables. It runs in their namespace, what it \
prints, shows and draws appears in the notebook, figures come back to you as images, and variables stay.
- To propose code for the person to run themselves, use add_cell: it puts a cell below this one and does not run it.
- Never edit the .ipynb file of the open notebook: the front end holds it, and one of the two versions would be lost.
"""


class Room(Protocol):
    """Where outputs of the code go: the running cell."""

    async def make_room(self) -> None:
        """Everything that came before the code is on the page."""

    def close_room(self) -> None:
        """The code has shown something; what follows stands below it."""


class Answer(NamedTuple):
    text: str
    images: tuple[Image, ...] = ()
    failed: bool = False


class Tool(NamedTuple):
    act: Callable[[Toolbox, Json], Awaitable[Answer]]
    description: str
    properties: Json = {}  # noqa: RUF012 - never changed
    required: tuple[str, ...] = ()
    asks: bool = False

    def describe(self, name: str) -> Json:
        schema: Json = {"type": "object", "properties": self.properties, "additionalProperties": False}
        if self.required:
            schema["required"] = list(self.required)
        hints = {"readOnlyHint": not self.asks, "destructiveHint": self.asks, "openWorldHint": self.asks}
        return {"name": name, "description": self.description, "inputSchema": schema, "annotations": hints}


class Toolbox:
    """One shell's tools. Made with the shell; `enter` and `leave` mark the cell in which code may run."""

    def __init__(self, shell: Any, *, prefix: str = "") -> None:
        self.shell = shell
        self.privacy = Privacy()
        self.cells = Cells(shell, self.privacy, prefix)
        self.runner = PythonRunner(shell)
        self._room: Room | None = None
        self._context: contextvars.Context | None = None

    @property
    def allowed(self) -> tuple[str, ...]:
        """The names, as the CLI knows them, of what it need not ask for."""
        return tuple(f"mcp__{SERVER}__{name}" for name, tool in TOOLS.items() if not tool.asks)

    def enter(self, room: Room) -> None:
        """Called by the coroutine of a cell: what code shows belongs to that cell."""
        self._room, self._context = room, contextvars.copy_context()
        self.cells.begin()
        self.runner.begin()

    def leave(self) -> None:
        self._room, self._context = None, None

    async def __call__(self, message: Json) -> Json | None:
        """A JSON-RPC message of the CLI, and its response."""
        method, params = message.get("method"), message.get("params") or {}
        if method == "initialize":
            info = {"name": SERVER, "version": __version__}
            result: Json = {"protocolVersion": _PROTOCOL, "capabilities": {"tools": {}}, "serverInfo": info}
        elif method == "tools/list":
            result = {"tools": [tool.describe(name) for name, tool in TOOLS.items()]}
        elif method == "tools/call":
            result = await self._call(str(params.get("name") or ""), params.get("arguments") or {})
        elif method == "ping":
            result = {}
        elif "id" not in message:
            return None
        else:
            return {**_envelope(message), "error": {"code": -32601, "message": f"There is no method {method}."}}
        return {**_envelope(message), "result": result}

    async def _call(self, name: str, given: Json) -> Json:
        tool = TOOLS.get(name)
        try:
            if tool is None:
                raise UsageError(f"There is no tool {name}; there are {', '.join(TOOLS)}.")
            unknown = [key for key in given if key not in tool.properties]
            missing = [key for key in tool.required if key not in given]
            if unknown or missing:
                raise UsageError(f"{name} takes {', '.join(tool.properties) or 'nothing'}; got {', '.join(given)}.")
            answer = await tool.act(self, given)
        except ClaudeKernelError as error:
            answer = Answer(str(error), failed=True)
        content: list[Json] = [{"type": "text", "text": answer.text}]
        content += [{"type": "image", "data": image.data, "mimeType": image.media_type} for image in answer.images]
        return {"content": content, "isError": answer.failed}

    async def _run_python(self, given: Json) -> Answer:
        room, context = self._room, self._context
        if room is None or context is None:
            raise UsageError("No cell is running, so there is nowhere to show the output. Ask the person to run one.")
        code = _text(given, "code")
        # In the context of the cell: this was called in that of whichever cell started the CLI.
        ran = await asyncio.get_running_loop().create_task(self._run_in(room, code), context=context.copy())
        return Answer(self.privacy.clean(ran.text, self.shell.user_ns), ran.images, ran.failed)

    async def _run_in(self, room: Room, code: str) -> PythonRan:
        await room.make_room()
        ran = await self.runner.run(code)
        if ran.shown:
            room.close_room()
        return ran

    async def _list_variables(self, _given: Json) -> Answer:
        hidden = getattr(self.shell, "user_ns_hidden", {})
        return Answer(list_variables(self.shell.user_ns, hidden, self.privacy))

    async def _inspect_variable(self, given: Json) -> Answer:
        return Answer(inspect_variable(self.shell.user_ns, _text(given, "name"), self.privacy))

    async def _read_cells(self, given: Json) -> Answer:
        last = given.get("last", 20)
        if not isinstance(last, int):
            raise UsageError("`last` is a number of cells.")
        return Answer(self.cells.read(last))

    async def _show_figure(self, given: Json) -> Answer:
        number = given.get("number")
        if number is not None and not isinstance(number, int):
            raise UsageError("`number` is the number of a figure.")
        images = open_figures(number)
        return Answer(f"{len(images)} open figure{'s' * (len(images) != 1)}.", images)

    async def _add_cell(self, given: Json) -> Answer:
        return Answer(self.cells.add(_text(given, "source"), given.get("kind") or "code"))


def _envelope(message: Json) -> Json:
    return {"jsonrpc": "2.0", "id": message.get("id")}


def _text(given: Json, key: str) -> str:
    value = given[key]
    if not isinstance(value, str):
        raise UsageError(f"`{key}` must be text.")
    return value


_STRING = {"type": "string"}

TOOLS: dict[str, Tool] = {
    "run_python": Tool(
        Toolbox._run_python,
        "Runs Python in the person's live namespace, as a notebook cell does: output, errors and figures appear in the "
        "notebook and come back to you, variables stay. IPython syntax (%magics, await) works.",
        {"code": {**_STRING, "description": "The code. The value of its last expression is shown."}},
        ("code",),
        asks=True,
    ),
    "list_variables": Tool(
        Toolbox._list_variables, "Lists the variables of the live namespace with type, shape and a short summary."
    ),
    "inspect_variable": Tool(
        Toolbox._inspect_variable,
        "Describes one variable: type, shape, dtypes, the first rows, docstring. Bounded, and free of side effects.",
        {"name": {**_STRING, "description": "The variable's name; not an expression."}},
        ("name",),
    ),
    "read_cells": Tool(
        Toolbox._read_cells,
        "The inputs and outputs of the cells that were run in this session, the last ones.",
        {"last": {"type": "integer", "minimum": 1, "description": "How many cells; 20 unless told."}},
    ),
    "show_figure": Tool(
        Toolbox._show_figure,
        "The open matplotlib figures as images.",
        {"number": {"type": "integer", "description": "Which figure; all unless told."}},
    ),
    "add_cell": Tool(
        Toolbox._add_cell,
        "Puts a new cell below the running one, for the person to read, change and run. It is not run.",
        {"source": _STRING, "kind": {**_STRING, "enum": list(KINDS)}},
        ("source",),
    ),
}
