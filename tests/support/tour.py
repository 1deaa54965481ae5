"""The notebooks of `notebooks/`, run as a person runs them: in JupyterLab, with the offline demo, with real clicks.

`scripts/notebooks` saves with it, and the tests compare with it: so what a reader sees is what happens. It must not
know pytest, nor the words of any notebook, but for the ids of the cells where somebody has to decide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Locator, expect
from support.lab import PROJECT, NotebookPage

Json = dict[str, Any]
Act = Callable[[Locator], None]

NOTEBOOKS = PROJECT / "notebooks"
NAMES = tuple(sorted(path.name for path in NOTEBOOKS.glob("*.ipynb")))
SECONDS = 60.0


def demo_environment() -> dict[str, str]:
    """For the kernels. matplotlib's list of fonts is made here: a kernel that is slow at it would say so in a cell."""
    from matplotlib import font_manager, get_cachedir

    assert font_manager.fontManager
    return {"CLAUDE_KERNEL_CLI": "demo", "MPLCONFIGDIR": get_cachedir()}


def press(label: str) -> Act:
    return lambda card: card.get_by_role("button", name=label, exact=True).first.click()


def tick(label: str) -> Act:
    return lambda card: card.get_by_label(label, exact=False).first.check()


def fill(placeholder: str, words: str) -> Act:
    return lambda card: card.get_by_placeholder(placeholder, exact=False).first.fill(words)


CARDS: dict[str, tuple[tuple[Act, ...], ...]] = {
    "write": ((press("Allow once"),),),
    "edit": ((press("Allow once"),),),
    "undo": ((press("Put them back"),),),
    "run": ((press("Allow once"),),),
    "deny": ((fill("Why not", "I still need it."), press("Deny")),),
    "ask": ((tick("Blue"), tick("A title"), tick("A grid"), press("Answer")),),
    "plan": ((press("Approve, ask for each edit"),), (press("Allow once"),), (press("Allow once"),)),
    "outliers": ((press("Allow once"),),),
    "chart": ((press("Allow once"),),),
}
"""By the id of a cell: the cards that come, one after another, and what the person does on each."""


def copy_notebooks(folder: Path) -> None:
    """All of them, since a prompt may look around; without outputs, so that a wait cannot take an old one for new."""
    for name in NAMES:
        notebook = read(NOTEBOOKS / name)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell.update(outputs=[], execution_count=None)
        write(folder / name, notebook)


def play(page: NotebookPage, name: str, look: Callable[[str], object] = lambda _cell: None) -> Json:
    """Opens the notebook, runs it from the top, and answers with what JupyterLab saved, tidied up.

    `look` is called with a cell's id while a card waits in it.
    """
    copy_notebooks(page.folder)
    page.path = page.folder / name
    page.visit()
    cells = read(page.path)["cells"]
    for index, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        page.run(index)
        for acts in CARDS.get(cell["id"], ()):
            card = page.output(index).locator(".ck-ask")
            expect(card).to_be_visible(timeout=SECONDS * 1000)
            look(cell["id"])
            shown = card.element_handle()
            for act in acts:
                act(card)
            shown.wait_for_element_state("hidden")
        page.wait_idle(SECONDS)
    return tidy(page.save())


def tidy(notebook: Json) -> Json:
    """Without what says more of the machine than of the notebook."""
    cells = [{**cell, "metadata": {}} for cell in notebook["cells"]]
    for cell in cells:
        if "outputs" in cell:
            cell["outputs"] = [_anonymous(output) for output in cell["outputs"]]
    language = {"name": notebook["metadata"]["language_info"]["name"]}
    kernel = notebook["metadata"]["kernelspec"]
    return {**notebook, "cells": cells, "metadata": {"kernelspec": kernel, "language_info": language}}


def _anonymous(output: Json) -> Json:
    """Without the names of a conversation that no reader has: the kernel would tell each of them that it is gone."""
    return {**output, "metadata": {}} if "metadata" in output else output


def keep_what_is_true(saved: Json, now: Json) -> Json:
    """`now`, with the outputs as they are saved where only a time or a picture's bytes differ: small diffs."""
    kept = {cell["id"]: cell.get("outputs") for cell in saved["cells"]}
    cells = [
        {**cell, "outputs": kept[cell["id"]]}
        if cell["cell_type"] == "code" and normalised(kept.get(cell["id"])) == normalised(cell["outputs"])
        else cell
        for cell in now["cells"]
    ]
    return {**now, "cells": cells}


# What a step took, when somebody decided, what a conversation is called and how old it is, and a picture's bytes.
_VARYING = (
    (re.compile(r"\b\d+(\.\d+)? (ms|s|min)\b"), "TIME"),
    (re.compile(r"\b\d\d:\d\d\b"), "CLOCK"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b\d{4}-\d\d-\d\d-\d{6}\b"), "WHEN"),
    (re.compile(r"\bjust now\b|\b\d+ (minute|hour)s? ago\b"), "AGE"),
    (re.compile(r'("image/png": )"[^"]*"'), r'\1"PICTURE"'),
)


def normalised(outputs: Any) -> str:
    told = json.dumps(outputs, sort_keys=True, ensure_ascii=False)
    for pattern, name in _VARYING:
        told = pattern.sub(name, told)
    return told


def words(cell: Json) -> str:
    """What a reader reads below a cell: not how it is laid out, which may change without making it untrue."""
    outputs = []
    for output in cell["outputs"]:
        bundle = {**output.get("data", {})}
        if "text/html" in bundle:
            text = re.sub(r"<style>.*?</style>|<[^>]*>", " ", str(bundle["text/html"]), flags=re.DOTALL)
            bundle["text/html"] = " ".join(unescape(text).split())
        outputs.append({**output, "data": bundle} if bundle else output)
    return normalised(outputs)


def read(path: Path) -> Json:
    notebook: Json = nbformat.read(str(path), as_version=4)
    return notebook


def write(path: Path, notebook: Json) -> None:
    nbformat.write(nbformat.from_dict(notebook), str(path))
