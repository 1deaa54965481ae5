"""What a page does with a turn of 200 tool cards and half a megabyte of text, in JupyterLab in headless Chromium."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright
from support.lab import LabServer, NotebookPage

from benchmarks.children import kernel_environment, scratch, write_prose
from benchmarks.rows import Effort, Row

CARDS = 200
CHARACTERS = 500_000
ROUNDS = 2
TURN_SECONDS = 60.0
LAST_WORDS = "All cards are shown."
CHROMIUM_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")

# JupyterLab builds parts of itself for seconds after a notebook is there: none of that is ours.
_SETTLE = """() => new Promise(settled => {
  let last = performance.now();
  const observer = new PerformanceObserver(() => { last = performance.now(); });
  observer.observe({type: 'longtask'});
  const look = setInterval(() => {
    if (performance.now() - last < 2500) return;
    clearInterval(look);
    observer.disconnect();
    settled();
  }, 100);
})"""
# The wall clocks of page and kernel are one: what the kernel said last, and when, is in that message's header.
_WATCH = """() => {
  const watched = window.benchWatched = {blocked: 0, changed: 0, idle: 0};
  const now = () => performance.timeOrigin + performance.now();
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) watched.blocked = Math.max(watched.blocked, entry.duration);
  }).observe({type: 'longtask'});
  const area = document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell-outputArea');
  new MutationObserver(() => requestAnimationFrame(() => { watched.changed = now(); }))
    .observe(area, {childList: true, subtree: true, characterData: true});
  window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.anyMessage.connect((_, {msg}) => {
    if (msg.header.msg_type === 'status' && msg.content.execution_state === 'idle')
      watched.idle = Date.parse(msg.header.date);
  });
}"""
_OVER = """() => benchWatched.idle
  && performance.timeOrigin + performance.now() - Math.max(benchWatched.changed, benchWatched.idle) > 1500"""


def measure_page(effort: Effort) -> Iterator[Row]:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise RuntimeError("no Chromium on the PATH")
    watched: list[dict[str, Any]] = []
    with scratch() as folder, LabServer(folder) as lab, sync_playwright() as playwright:
        text = write_prose(folder, CHARACTERS)
        text.write_text(_with_fewer_headings(text.read_text()))
        lab.set_environment(kernel_environment(folder))
        browser = playwright.chromium.launch(executable_path=found, args=list(CHROMIUM_ARGUMENTS))
        try:
            for number in range(effort.rounds(ROUNDS)):
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                watched.append(_run(page, lab, text, number))
                page.close()
                lab.forget()
        finally:
            browser.close()
    what = f"{CARDS} tool cards and 500 KB of text in a page"
    blocked = max(seen["blocked"] for seen in watched)
    yield Row(f"{what}, longest block", "no baseline", blocked, "ms", 200, details={"rounds": watched})
    late = max(seen["changed"] - seen["idle"] for seen in watched)
    yield Row(f"{what}, shown after the end", "no baseline", late, "ms", 1_000, details={"rounds": watched})


def _with_fewer_headings(text: str) -> str:
    """One in ten. JupyterLab lists each in its table of contents, and 540 would cost the page more than all else."""
    return re.sub(r"^## (Part \d*[1-9])$", r"**\1**", text, flags=re.MULTILINE)


def _run(page: Page, lab: LabServer, text: Path, number: int) -> dict[str, Any]:
    notebook = NotebookPage(lab, page, lab.new_folder(f"page-{number}"))
    notebook.open("cards.ipynb", [f"bench:cards:{CARDS}:{text}"])
    page.evaluate(_SETTLE)
    page.evaluate(_WATCH)
    notebook.run(0)
    # Playwright's own waits read the whole page again and again, which costs it more than the turn does.
    page.wait_for_function(_OVER, timeout=TURN_SECONDS * 1000)
    seen: dict[str, Any] = page.evaluate("() => window.benchWatched")
    if LAST_WORDS not in notebook.output_text(0):
        raise RuntimeError("the page did not show all of the turn")
    return seen
