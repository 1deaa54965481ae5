"""Forms made of widgets: Claude's questions, and the dialogs of MCP servers."""

from __future__ import annotations

from typing import Any

from claude_kernel.errors import UsageError
from claude_kernel.prompts.answers import OTHER, Answer, find_answer, labels_of, render_asked, render_previews
from claude_kernel.prompts.cards import Card, log
from claude_kernel.prompts.fields import Field, find_fields
from claude_kernel.prompts.kit import Kit
from claude_kernel.prompts.ticket import Ticket
from claude_kernel.protocol import Allow, Answers, Decision, Filled, events
from claude_kernel.render import Bundle
from claude_kernel.render.direction import direction_of

_PLACEHOLDERS = {
    (True, False): "In your own words",
    (True, True): "Also, in your own words",
    (False, False): "Your answer",
    (False, True): "Your answer",
}


class _Asked:
    """One question: its choices, and words of one's own."""

    def __init__(self, kit: Kit, asked: events.FormQuestion, changed: Any) -> None:
        self.asked = asked
        labels = labels_of(asked)
        self._other = kit.text(_PLACEHOLDERS[bool(labels), asked.multiple], continuous=True)
        self._ticks = [kit.checkbox(label) for label in labels] if asked.multiple else []
        self._radio = kit.radio([*labels, OTHER]) if labels and not asked.multiple else None
        previews = render_previews(asked)
        choices = [self._radio] if self._radio is not None else self._ticks
        self.widget = kit.column(
            kit.html(render_asked(asked)),
            *([kit.html(previews)] if previews else []),
            *choices,
            self._other,
            rtl=direction_of(asked.text) == "rtl",
        )
        self._other.observe(self._typed, "value")
        for widget, trait in [
            (self._other, "value"),
            *((tick, "value") for tick in self._ticks),
            (self._radio, "index"),
        ]:
            if widget is not None:
                widget.observe(lambda _change: changed(), trait)

    def _typed(self, change: dict[str, Any]) -> None:
        """Who writes means "other"."""
        if self._radio is not None and change["new"].strip():
            self._radio.index = len(self.asked.choices)

    def find(self) -> Answer | None:
        if self._radio is None:
            chosen = [index for index, tick in enumerate(self._ticks) if tick.value]
            return find_answer(self.asked, chosen, self._other.value)
        if self._radio.index is None:
            return None
        other = self._radio.index == len(self.asked.choices)
        return find_answer(self.asked, [] if other else [self._radio.index], self._other.value if other else "")


class QuestionsCard(Card):
    """All questions in one form; the answer can be sent when every one has its answer."""

    def __init__(self, ticket: Ticket, text: Bundle) -> None:
        super().__init__(ticket, text)
        self._asked = [_Asked(self.kit, asked, self._changed) for asked in ticket.question.form]
        self._submit = self.kit.button("Answer", self._send, go=True)
        self._submit.disabled = True
        refusing = self._refusing("Decline", "Decline and stop", "Why not?")
        self._compose(*(asked.widget for asked in self._asked), self.kit.row(self._submit), refusing)

    def _find(self) -> dict[str, Answer] | None:
        found = {asked.asked.text: asked.find() for asked in self._asked}
        complete = {text: given for text, given in found.items() if given is not None}
        return complete if len(complete) == len(found) else None

    def _changed(self) -> None:
        self._submit.disabled = self._find() is None

    def _send(self) -> None:
        """The button's own state is the front end's to change: what counts is looked at again."""
        answers = self._find()
        if answers is None:
            log.warning("ignored an incomplete form for %s", self._ticket.question.id)
            return
        self._answer(Answers(answers))


class DialogCard(Card):
    """An MCP server's form, or a page it wants to be visited."""

    def __init__(self, ticket: Ticket, text: Bundle, dialog: events.Dialog) -> None:
        super().__init__(ticket, text)
        self._fields = [(field, self._input(field)) for field in find_fields(dialog.schema)]
        parts = [widget for _, widget in self._fields]
        label = "I have visited the page" if dialog.url else "Send"
        go = self.kit.button(label, self._send, go=True)
        self._url = dialog.url
        self._compose(*parts, self._remark, self.kit.row(go), self._refusing("Decline", "Decline and stop", "Why not?"))

    def _input(self, field: Field) -> Any:
        if field.kind == "boolean":
            words = f"{field.title} – {field.description}" if field.description else field.title
            return self.kit.checkbox(words, value=field.default is True)
        must = "" if field.required else " (optional)"
        label = f"{field.title}{must}: {field.description}" if field.description else f"{field.title}{must}"
        if field.values:
            chosen = self.kit.dropdown(list(field.labels), label)
            if field.default in field.values:
                chosen.index = field.values.index(field.default)
            return chosen
        box = self.kit.text("", label=label)
        if isinstance(field.default, str | int | float) and not isinstance(field.default, bool):
            box.value = str(field.default)
        return box

    def _send(self) -> None:
        if self._url:
            self._answer(Allow())
            return
        try:
            decision = self._decode()
        except UsageError as error:
            self._say(f"{error} Nothing was sent.")
            return
        self._answer(decision)

    def _decode(self) -> Decision:
        filled: dict[str, Any] = {}
        for field, widget in self._fields:
            if field.kind == "boolean":
                filled[field.name] = widget.value
            elif field.values:
                if widget.index is not None:
                    filled[field.name] = field.values[widget.index]
            elif widget.value.strip():
                filled[field.name] = field.decode(widget.value)
            if field.required and field.name not in filled:
                raise UsageError(f"{field.title} is missing.")
        return Filled(filled)
