"""A person at a plain client: sees cards as models and clicks by comm message, or types, or is not there at all.

It knows Jupyter's messages and ipywidgets' models, as a front end does; nothing of how the kernel makes them.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from support.kernels import Client, Ran

WIDGET = "application/vnd.jupyter.widget-view+json"
SECONDS = 30.0
Json = dict[str, Any]


@dataclass
class Model:
    id: str
    state: Json

    @property
    def kind(self) -> str:
        return str(self.state.get("_model_name", ""))


@dataclass
class Cell:
    """One execute request and what it has brought so far."""

    id: str
    messages: list[Json] = field(default_factory=list)
    idle: bool = False


class Person:
    def __init__(self, client: Client, *, sees_cards: bool = True, types: bool = False) -> None:
        self.client = client
        self.sees_cards = sees_cards
        self.types = types
        self.models: dict[str, Model] = {}
        self.closed: list[str] = []
        self.cells: dict[str, Cell] = {}
        self.roots: list[str] = []
        """The cards, in the order in which they were shown."""
        self.sent: list[Json] = []
        self.updates: list[str] = []
        """The HTML of every output that was updated, whichever cell it belongs to."""

    # --- cells ----------------------------------------------------------------------------------------------------

    def run(self, code: str, **how: Any) -> Cell:
        message_id = self.client.send(code, **{"allow_stdin": self.types, **how})
        self.cells[message_id] = Cell(message_id)
        return self.cells[message_id]

    def finish(self, cell: Cell, seconds: float = SECONDS) -> Ran:
        self.until(lambda: cell.idle, seconds)
        while True:
            reply = self.client.kernel.get_shell_msg(timeout=seconds)
            if reply["parent_header"].get("msg_id") == cell.id:
                return Ran(reply["content"], cell.messages)

    def until(self, condition: Callable[[], Any], seconds: float = SECONDS) -> Any:
        """Reads what comes until this holds."""
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            try:
                self._take(self.client.kernel.get_iopub_msg(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                raise TimeoutError(f"it did not come about within {seconds} s; cards: {self.describe()}") from None
        return found

    def _take(self, message: Json) -> None:
        kind, content = message["msg_type"], message["content"]
        if kind == "comm_open":
            self.models[content["comm_id"]] = Model(content["comm_id"], content["data"]["state"])
        elif kind == "comm_msg" and content["data"].get("method") == "update" and content["comm_id"] in self.models:
            self.models[content["comm_id"]].state.update(content["data"]["state"])
        elif kind == "comm_close":
            self.closed.append(content["comm_id"])
            self.models.pop(content["comm_id"], None)
        elif kind == "update_display_data":
            self.updates.append(str(content["data"].get("text/html", "")))
        cell = self.cells.get(message["parent_header"].get("msg_id", ""))
        if cell is None:
            return
        if kind == "status" and content["execution_state"] == "idle":
            cell.idle = True
            return
        cell.messages.append(message)
        if kind in ("display_data", "update_display_data") and WIDGET in content["data"]:
            self._see(content["data"][WIDGET]["model_id"])

    def _see(self, model_id: str) -> None:
        if model_id in self.roots:
            return
        self.roots.append(model_id)
        if self.sees_cards:
            self.tell(model_id, {"method": "update", "state": {"_view_count": 1}, "buffer_paths": []})

    # --- cards ----------------------------------------------------------------------------------------------------

    def card(self, number: int = -1) -> str:
        """Waits for the card with this number among all that were shown, and that it is complete."""
        wanted = number + 1 if number >= 0 else 1
        self.until(lambda: len(self.roots) >= wanted and (number >= 0 or self.roots[-1] in self.models))
        return self.roots[number]

    def parts(self, model_id: str) -> list[Model]:
        """All models of a card, top to bottom."""
        model = self.models[model_id]
        found = [model]
        for child in model.state.get("children", []):
            found += self.parts(child.removeprefix("IPY_MODEL_"))
        return found

    def find(self, card: str, kind: str, label: str = "", key: str = "description") -> Model:
        for model in self.parts(card):
            if model.kind == kind and label in str(model.state.get(key, "")):
                return model
        raise LookupError(f"no {kind} {label!r} in {self.describe()}")

    def all(self, card: str, kind: str) -> list[Model]:
        return [model for model in self.parts(card) if model.kind == kind]

    def labels(self, card: str) -> list[str]:
        return [str(model.state["description"]) for model in self.all(card, "ButtonModel")]

    def shown(self, card: str) -> str:
        """The text of a card, as HTML."""
        return "\n".join(str(model.state["value"]) for model in self.all(card, "HTMLModel"))

    def is_gone(self, card: str) -> bool:
        return card not in self.models

    def describe(self) -> list[list[str]]:
        return [self.labels(root) for root in self.roots if root in self.models]

    # --- acting ---------------------------------------------------------------------------------------------------

    def tell(self, model_id: str, told: Any) -> None:
        session = self.client.kernel.session
        message = session.msg("comm_msg", {"comm_id": model_id, "data": told})
        self.sent.append(message)
        self.client.kernel.shell_channel.send(message)

    def click(self, card: str, label: str) -> Model:
        button = self.find(card, "ButtonModel", label)
        self.tell(button.id, {"method": "custom", "content": {"event": "click"}})
        return button

    def set(self, model: Model, **state: Any) -> None:
        model.state.update(state)
        self.tell(model.id, {"method": "update", "state": state, "buffer_paths": []})

    def type(self, model: Model, text: str) -> None:
        self.set(model, value=text)

    def answer(self, expect: str, text: str, seconds: float = SECONDS) -> str:
        """Types into the input box, which must ask with these words."""
        request = self.client.kernel.get_stdin_msg(timeout=seconds)
        prompt = str(request["content"]["prompt"])
        assert expect in prompt, prompt
        self.client.kernel.input(text)
        return prompt
