"""Widgets that take only what their kind may be told, and that are all closed together. It knows no question.

Every model has an unguessable id of its own. Whatever reaches it in another shape than a front end's own (a click for
something that is no button, a state that is not for the person to change) is dropped and logged before ipywidgets
sees it.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets

from claude_kernel.prompts.cardstyle import card_style
from claude_kernel.render import Bundle

log = logging.getLogger("claude_kernel.prompts")

_MOST_REMEMBERED = 4_096
_spent: dict[str, None] = {}
"""The ids of models that are closed, oldest first: a second click on a card that is gone is nobody's error."""


def _to_our_log(record: logging.LogRecord) -> bool:
    """ipykernel would print "No such comm" into the running cell, to be read by somebody who clicked twice."""
    late = isinstance(record.args, tuple) and any(arg in _spent for arg in record.args if isinstance(arg, str))
    if late:
        log.warning("ignored a message to a card that is closed")
    return not late


logging.getLogger("Comm").addFilter(_to_our_log)

Check = Callable[[Any], bool]
_MOST_TYPED = 1_000_000


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MOST_TYPED


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10_000


class Kit:
    def __init__(self) -> None:
        self._made: list[ipywidgets.Widget] = []
        self._layout = ipywidgets.Layout(model_id=secrets.token_hex(16))
        self._guard(self._layout, {}, ())
        self.closed = False

    # --- the kinds ------------------------------------------------------------------------------------------------

    def html(self, bundle: Bundle | None = None) -> ipywidgets.HTML:
        """Only what has passed the sanitizer is ever a value."""
        return self._make(ipywidgets.HTML, {}, (), value=bundle.html if bundle else "")

    def button(self, label: str, clicked: Callable[[], None], *, tooltip: str = "", go: bool = False) -> Any:
        button = self._make(ipywidgets.Button, {}, ("click",), description=label, tooltip=tooltip or label)
        if go:
            button.add_class("ck-go")
        button.on_click(lambda _button: clicked())
        return button

    def text(self, placeholder: str, *, label: str = "", continuous: bool = False) -> ipywidgets.Text:
        """Not `continuous`: it is sent whole when it is left, and so before any click that follows."""
        return self._make(
            ipywidgets.Text,
            {"value": _is_text},
            ("submit",),
            description=_no_formula(label),
            placeholder=placeholder,
            continuous_update=continuous,
        )

    def textarea(self, value: str, label: str) -> ipywidgets.Textarea:
        rows = min(24, value.count("\n") + 2)
        traits = {"value": value, "description": _no_formula(label), "rows": rows, "continuous_update": False}
        return self._make(ipywidgets.Textarea, {"value": _is_text}, (), **traits)

    def radio(self, labels: list[str]) -> ipywidgets.RadioButtons:
        return self._make(ipywidgets.RadioButtons, _index_in(len(labels)), (), options=labels, index=None)

    def dropdown(self, labels: list[str], label: str) -> ipywidgets.Dropdown:
        traits = {"options": labels, "index": None, "description": _no_formula(label)}
        return self._make(ipywidgets.Dropdown, _index_in(len(labels)), (), **traits)

    def checkbox(self, label: str, *, value: bool = False) -> ipywidgets.Checkbox:
        ticks: dict[str, Check] = {"value": lambda given: isinstance(given, bool)}
        return self._make(ipywidgets.Checkbox, ticks, (), description=_no_formula(label), indent=False, value=value)

    def row(self, *children: Any) -> ipywidgets.Box:
        return self._box(ipywidgets.Box, "ck-row", children)

    def column(self, *children: Any, rtl: bool = False) -> ipywidgets.VBox:
        column = self._box(ipywidgets.VBox, "ck-col", children)
        if rtl:
            column.add_class("ck-rtl")
        return column

    def card(self, *children: Any) -> ipywidgets.VBox:
        """The outermost: it counts the views that a live front end has of it."""
        style = self._make(ipywidgets.HTML, {}, (), value=card_style())
        views: dict[str, Check] = {"_view_count": _is_count}
        card = self._make(ipywidgets.VBox, views, (), children=(style, *children), _view_count=0)
        card.add_class("ck-ask")
        return card

    # --- making and closing -----------------------------------------------------------------------------------------

    def _box(self, kind: Any, name: str, children: tuple[Any, ...]) -> Any:
        box = self._make(kind, {}, (), children=children)
        box.add_class(name)
        return box

    def _make(self, kind: Any, states: Mapping[str, Check], sent: tuple[str, ...], **traits: Any) -> Any:
        widget = kind(layout=self._layout, model_id=secrets.token_hex(16), **traits)
        self._guard(widget, states, sent)
        style = getattr(widget, "style", None)
        if isinstance(style, ipywidgets.Widget):
            self._guard(style, {}, ())
        return widget

    def _guard(self, widget: ipywidgets.Widget, states: Mapping[str, Check], sent: tuple[str, ...]) -> None:
        self._made.append(widget)
        take = widget._handle_msg

        def guarded(message: dict[str, Any]) -> None:
            if _fits(message, states, sent):
                take(message)
            else:
                log.warning("ignored a message that no %s may be sent", type(widget).__name__)

        widget.comm.on_msg(guarded)

    def close(self) -> None:
        """Every model, layouts and styles too: nothing is left to be saved with the notebook."""
        if not self.closed:
            self.closed = True
            for widget in reversed(self._made):
                _spent[widget.model_id] = None
                widget.close()
            for old in list(_spent)[:-_MOST_REMEMBERED]:
                del _spent[old]


def _index_in(length: int) -> dict[str, Check]:
    return {"index": lambda given: _is_count(given) and given < length}


def _fits(message: dict[str, Any], states: Mapping[str, Check], sent: tuple[str, ...]) -> bool:
    content = message.get("content")
    told = content.get("data") if isinstance(content, dict) else None
    if not isinstance(told, dict):
        return False
    if told.get("method") == "request_state":
        return True
    if told.get("method") == "custom":
        event = told.get("content")
        return isinstance(event, dict) and set(event) == {"event"} and event["event"] in sent
    state = told.get("state")
    if told.get("method") != "update" or not isinstance(state, dict) or told.get("buffer_paths"):
        return False
    return all(key in states and states[key](value) for key, value in state.items())


def _no_formula(label: str) -> str:
    """A label is typeset; a price is no formula. A dollar sign of its own is left alone by MathJax."""
    plain = label.replace("\\", "∖")
    return plain.replace("$", "\\$") if plain.count("$") > 1 else plain
