"""The corpus of hostile texts in a real browser, by itself and through the kernel in JupyterLab.

No script runs, nothing is asked for, no address leaves the allowed schemes, no command of JupyterLab fires.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from browser.conftest import Chromium
from playwright.sync_api import Browser, Page, Route, expect
from render.everywhere import outputs_with
from render.hostile import HOSTILE
from support.lab import NotebookPage
from support.messages_api import MessagesApi

from claude_kernel.render import style_tag

pytestmark = pytest.mark.browser

HOME = "http://127.0.0.1:1/lab"

# As JupyterLab does it for a trusted output (innerHTML), and by the way that runs scripts even where that does not.
# Then every element is poked with the events that handlers listen to.
SHOW = """html => {
  document.body.innerHTML = html;
  document.body.append(document.createRange().createContextualFragment(html));
  const events = ['click', 'mouseover', 'pointerenter', 'focus', 'blur', 'load', 'error', 'toggle', 'animationstart'];
  for (const element of document.body.querySelectorAll('*')) {
    if (element.localName === 'a') continue;
    for (const name of events) element.dispatchEvent(new Event(name, {bubbles: true}));
  }
  const schemes = new Set([...document.querySelectorAll('a[href]')].map(a => a.protocol));
  const covering = [...document.body.querySelectorAll('*')]
    .filter(e => ['fixed', 'absolute', 'sticky'].includes(getComputedStyle(e).position)).length;
  return {fired: window.__fired ?? null, schemes: [...schemes], covering, forms: document.forms.length};
}"""


@dataclass
class Trap:
    page: Page
    asked_for: list[str] = field(default_factory=list)

    def refuse(self, route: Route) -> None:
        self.asked_for.append(route.request.url)
        route.abort()


def trapped_page(browser: Browser) -> Trap:
    page = browser.new_page()
    trap = Trap(page)
    page.route(lambda url: url != HOME, trap.refuse)
    page.route(HOME, lambda route: route.fulfill(body="<!doctype html><body>", content_type="text/html"))
    page.goto(HOME)
    return trap


@pytest.fixture
def trap(chromium: Chromium) -> Iterator[Trap]:
    with chromium.awake() as browser:
        made = trapped_page(browser)
        yield made
        made.page.close()


def test_the_trap_catches(trap: Trap) -> None:
    """Else the tests below could not fail."""
    with trap.page.expect_event("requestfailed"):
        seen = trap.page.evaluate(SHOW, "<img src=http://hostile.invalid/a><b onclick='window.__fired=1'>x</b>")
    assert seen["fired"] == 1
    assert trap.asked_for


def test_nothing_runs_and_nothing_is_fetched(trap: Trap) -> None:
    """Every text through every renderer, each by the ways in which a page may come to hold HTML."""
    for name, text in HOSTILE.items():
        html = style_tag() + "".join(bundle.html for _, bundle in outputs_with(text))
        seen = trap.page.evaluate(SHOW, html)
        assert seen["fired"] is None, name
        assert seen["forms"] == 0, name
        assert seen["covering"] == 0, name
        assert set(seen["schemes"]) <= {"http:", "https:", "mailto:"}, name
        assert trap.page.url == HOME, name
        assert trap.asked_for == [], name
    trap.page.wait_for_load_state("networkidle")
    assert trap.page.evaluate("window.__fired ?? null") is None
    assert trap.asked_for == []


# --- the whole way: model, real CLI, kernel, JupyterLab -------------------------------------------------------------

# Before anything is shown: every command that JupyterLab runs is noted, whoever asks for it.
WATCH_COMMANDS = """() => {
  window.__commands = [];
  const commands = window.jupyterapp.commands, execute = commands.execute.bind(commands);
  commands.execute = (id, args) => { window.__commands.push(id); return execute(id, args); };
}"""
POKE = """panel => {
  const outputs = [...panel.querySelectorAll('.jp-OutputArea-output')];
  const names = ['click', 'mouseover', 'pointerenter', 'focus', 'blur', 'toggle', 'animationstart'];
  window.__commands.length = 0;
  for (const output of outputs) for (const element of output.querySelectorAll('*')) {
    if (element.closest('a, summary, button, input, textarea, label')) continue;
    for (const name of names) element.dispatchEvent(new Event(name, {bubbles: true}));
  }
  const found = selector => outputs.flatMap(o => [...o.querySelectorAll(selector)]).length;
  return {
    fired: window.__fired ?? null,
    commands: window.__commands,
    schemes: [...new Set(outputs.flatMap(o => [...o.querySelectorAll('a[href]')].map(a => a.protocol)))],
    linkers: found('[data-commandlinker-command]'),
    forms: found('form, iframe, object, embed, script, link, meta, base'),
    pictures: found('img:not([src^="data:"])'),
  };
}"""


def usable(text: str) -> str:
    """What can travel as JSON and as a file name's bytes; the rest is tested without a wire."""
    return text.encode("utf-8", "replace").decode()


def answers_with(texts: list[str], project: Path) -> list[list[dict[str, Any]]]:
    """The model's messages, one after another: words, thoughts, tool inputs, tool results, file names."""
    words = [{"type": "text", "text": text} for text in texts]
    thoughts = [{"type": "thinking", "thinking": text, "signature": "c2ln"} for text in texts]
    reads = []
    for number, text in enumerate(texts):
        name = "".join(letter for letter in text if letter not in "/\0")[:60].encode()[:200].decode("utf-8", "ignore")
        path = project / f"{number} {name}.md"
        path.write_text(text)
        reads.append(("Read", {"file_path": str(path)}))
    # Not the very long ones: the CLI's own look at `*a **b *a **b …` as a command takes it minutes (2.1.326).
    commands = [("Bash", {"command": text, "description": text}) for text in texts if len(text) < 300]
    others = [("Grep", {"pattern": text, "path": text}) for text in texts] + [
        ("mcp__x__y", {text[:50]: text, "url": text}) for text in texts
    ]
    calls = [
        {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}
        for number, (name, given) in enumerate([*reads, *others, *commands])
    ]
    return [[*thoughts, *words, *calls]]


@pytest.mark.real_cli
@pytest.mark.parametrize("part", range(6))
def test_nothing_gets_through_the_kernel_into_jupyterlab(
    claude_notebook: NotebookPage, project: Path, messages_api: MessagesApi, part: int
) -> None:
    texts = [usable(text) for text in list(HOSTILE.values())[part::6] if len(text) < 20_000]
    pending = answers_with(texts, project)

    def script(request: dict[str, Any]) -> list[dict[str, Any]] | None:
        if "hostile turn" not in json.dumps(request["messages"]) or not request.get("tools"):
            return None
        return pending.pop() if pending else [{"type": "text", "text": "The end of it."}]

    messages_api.script(script)
    try:
        claude_notebook.open("hostile.ipynb", ["%claude prompts never\nhostile turn"])
        claude_notebook.page.evaluate(WATCH_COMMANDS)
        claude_notebook.run(0)
        claude_notebook.wait_for_output(0, "The end of it.", timeout_seconds=60)
        claude_notebook.wait_idle(timeout_seconds=30)
    finally:
        messages_api.script(None)
    _assert_harmless(claude_notebook)


def form_of(texts: list[str]) -> dict[str, Any]:
    """As many texts as a form holds: four questions of four choices, each with a description and a preview."""
    pending = iter(texts)
    questions = []
    for _ in range(4):
        options = [
            {"label": next(pending, "a")[:200], "description": next(pending, "b"), "preview": next(pending, "c")}
            for _ in range(4)
        ]
        questions.append(
            {"question": next(pending, "d") + "?", "header": "x", "multiSelect": False, "options": options}
        )
    return {"questions": questions}


@pytest.mark.real_cli
@pytest.mark.timeout(300)
def test_nothing_gets_through_a_card(claude_notebook: NotebookPage, messages_api: MessagesApi) -> None:
    """Forms that hold every text, and permission for commands that are such texts, in widgets."""
    texts = [usable(text) for text in HOSTILE.values() if len(text) < 5_000 and text.strip()]
    held = 4 * 13
    calls = [("AskUserQuestion", form_of(texts[at : at + held])) for at in range(0, len(texts), held)]
    calls += [("Bash", {"command": f"touch x; : {text}", "description": text}) for text in texts[::12]]
    pending = [
        [{"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}]
        for number, (name, given) in enumerate(calls)
    ]

    def script(request: dict[str, Any]) -> list[dict[str, Any]] | None:
        if "hostile turn" not in json.dumps(request["messages"]) or not request.get("tools"):
            return None
        return pending.pop(0) if pending else [{"type": "text", "text": "The end of it."}]

    messages_api.script(script)
    try:
        claude_notebook.open("cards.ipynb", ["hostile turn"])
        claude_notebook.page.evaluate(WATCH_COMMANDS)
        claude_notebook.run(0)
        seen = 0
        output = claude_notebook.output(0)
        refuse = output.locator(".ck-ask").get_by_role("button", name=re.compile("^(Decline|Deny)$"))
        end = output.get_by_text("The end of it.")
        while True:
            expect(refuse.or_(end).first).to_be_visible()
            if end.is_visible():
                break
            _assert_harmless(claude_notebook)
            card = output.locator(".ck-ask").element_handle()
            assert card is not None
            refuse.click()
            card.wait_for_element_state("hidden")
            seen += 1
        claude_notebook.wait_idle()
    finally:
        messages_api.script(None)
    assert seen >= len(calls) - 3  # the CLI itself refuses a form that does not fit its schema
    _assert_harmless(claude_notebook)


def _assert_harmless(notebook: NotebookPage) -> None:
    notebook.page.evaluate("document.querySelectorAll('.jp-OutputArea-output details').forEach(d => d.open = true)")
    seen = notebook.panel.evaluate(POKE)
    assert seen["fired"] is None
    assert seen["commands"] == []
    assert seen["linkers"] == seen["forms"] == seen["pictures"] == 0
    assert set(seen["schemes"]) <= {"http:", "https:", "mailto:"}
