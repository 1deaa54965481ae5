"""Where `%claude` speaks, outside of any turn: what it says, and the place of a question of ours."""

from __future__ import annotations

import uuid
from typing import Any

from claude_kernel.paper import Paper
from claude_kernel.render import Bundle, style_tag


class Desk:
    """Plain text, for front ends that only append."""

    plain = True

    def __init__(self, paper: Paper, *, cell: str = "") -> None:
        self.paper = paper
        self.cell = cell
        """Jupyter's id of the cell that speaks, where it has one."""

    def notice(self, bundle: Bundle) -> None:
        self.paper.write(bundle.text + "\n")


class Page(Desk):
    plain = False

    def notice(self, bundle: Bundle) -> None:
        self.paper.show(bundle.led_by(style_tag()).to_mime(), uuid.uuid4().hex, {})

    def slot(self) -> Spot:
        return Spot(self.paper)


class Spot:
    """One output: a card while it waits, then the record of what was chosen."""

    def __init__(self, paper: Paper) -> None:
        self._paper = paper
        self._id = ""

    def show(self, mime: dict[str, Any]) -> None:
        if self._id:
            self._paper.update(mime, self._id, {})
        else:
            self._id = uuid.uuid4().hex
            self._paper.show(mime, self._id, {})

    def settle(self, bundle: Bundle) -> None:
        self.show(bundle.led_by(style_tag()).to_mime())


def open_desk(paper: Paper, *, plain: bool, cell: str = "") -> Desk:
    return Desk(paper, cell=cell) if plain else Page(paper, cell=cell)
