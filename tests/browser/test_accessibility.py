"""What axe-core says of everything a person meets in a cell's output, light and dark, and what the keyboard can do.

Real JupyterLab and the real CLI. axe looks into the outputs only: the page around them is JupyterLab's. No rule of
these levels is left out, and what axe cannot decide counts as a complaint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it ships no types
from playwright.sync_api import Locator, expect
from support.lab import NotebookPage

pytestmark = [pytest.mark.browser, pytest.mark.real_cli]

THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
OUTPUTS = {"include": [[".jp-Cell-outputArea"]]}
RULES: dict[str, Any] = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations", "incomplete"],
    # axe's own values, but for the first two: they would leave out marks such as ✓.
    "checks": {
        "color-contrast": {
            "options": {
                "ignoreUnicode": False,
                "ignoreLength": True,
                "ignorePseudo": False,
                "boldValue": 700,
                "boldTextPt": 14,
                "largeTextPt": 18,
                "contrastRatio": {"normal": {"expected": 4.5}, "large": {"expected": 3}},
                "pseudoSizeThreshold": 0.25,
                "shadowOutlineEmMax": 0.2,
            }
        }
    },
}
ANSWER = r"""## What was found

The rule is $\hat{y} = \beta_0 + \beta_1 x$, see [the report](https://example.com/report) and `loader.py`.

| case | before | now |
|---|---:|---:|
| strict | 4 rows | 5 rows |

```python
@cache
def load(path: str, strict=False) -> int:  # a comment
    return len("text") + 42
```

1. Rows are **kept**,
   - and *marked*.

> Quoted words.
"""
ROWS = {
    "question": "Which rows should the report keep?",
    "header": "Rows",
    "multiSelect": False,
    "options": [
        {"label": "All", "description": "keep rows with missing values"},
        {"label": "Complete only", "description": "as before", "preview": "a | b\n1 | 2"},
    ],
}
FORMATS = {
    "question": "Which formats should it write?",
    "header": "Formats",
    "multiSelect": True,
    "options": [{"label": "HTML", "description": "for people"}, {"label": "CSV", "description": "for programs"}],
}
MODULE = "import os\n\n\ndef size_of(path):\n    return os.stat(path).st_size\n"


def call(tool: str, **given: Any) -> str:
    return f"tool:{tool}:{json.dumps(given)}"


def steps(*rounds: Any) -> str:
    return f"steps:{json.dumps(rounds)}"


def complaints(notebook: NotebookPage) -> list[str]:
    # JupyterLab's body has no height and hides what overflows it: axe would take every text for an invisible one.
    notebook.page.evaluate("document.body.style.height = '100vh'")
    found = Axe().run(notebook.page, context=OUTPUTS, options=RULES).response
    assert found["violations"] or "color-contrast" in {rule["id"] for rule in found["passes"]}
    broken = list(_broken(found))
    for node in [node for _rule, node in broken if _is_overlapped(node)]:
        target = node["target"][0]
        notebook.page.evaluate("target => document.querySelector(target).scrollIntoView({block: 'center'})", target)
        again = Axe().run(notebook.page, context={"include": [[target]]}, options=RULES).response
        broken = [row for row in broken if row[1] is not node] + list(_broken(again))
    return [f"{rule}: {node['html'][:300]}\n{node['failureSummary']}" for rule, node in broken]


def _broken(found: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for rule in [*found["violations"], *found["incomplete"]]:
        yield from ((rule["id"], node) for node in rule["nodes"] if not _is_cut_by_its_frame(node))


def _is_overlapped(node: dict[str, Any]) -> bool:
    """Something floats above it, as JupyterLab's toolbar of the cell does: elsewhere on the page it can be judged."""
    return "bgOverlap" in [check["data"].get("messageKey") for check in node["any"] if isinstance(check["data"], dict)]


def _is_cut_by_its_frame(node: dict[str, Any]) -> bool:
    """A line at the edge of code that scrolls: axe sees half of it, and leaves its contrast undecided."""
    reasons = [check["data"].get("messageKey") for check in node["any"] if isinstance(check["data"], dict)]
    return reasons == ["elmPartiallyObscured"]


def assert_accessible(notebook: NotebookPage) -> None:
    for theme in THEMES:
        notebook.theme(theme)
        assert complaints(notebook) == []


def card(notebook: NotebookPage, index: int) -> Locator:
    return notebook.output(index).locator(".ck-ask")


def press(notebook: NotebookPage, index: int, label: str) -> None:
    card(notebook, index).get_by_role("button", name=label, exact=True).click()


def test_axe_complains_of_what_is_wrong(claude_notebook: NotebookPage) -> None:
    claude_notebook.open("wrong.ipynb", ["say:Hello"])
    claude_notebook.run(0)
    claude_notebook.wait_for_output(0, "Hello")
    claude_notebook.wait_idle()
    claude_notebook.output(0).locator("p").first.evaluate("p => { p.style.color = '#ddd'; }")
    (complaint,) = complaints(claude_notebook)
    assert complaint.startswith("color-contrast: <p")


def test_turns_are_accessible(claude_notebook: NotebookPage, project: Path, cli_home: Path) -> None:
    """Prose, thinking, rows closed and open, a difference, a failure, steps, an agent, a plan, trouble, tables."""
    settings = {"permissions": {"allow": ["Bash(sh *)", "Bash(true)", "Edit"]}}
    (cli_home / ".claude" / "settings.json").write_text(json.dumps(settings))
    (project / "empty.txt").write_text("")
    (project / "fail.sh").write_text(
        "printf '\\033[31mE  4 != 5\\033[0m \\033[32mok\\033[0m \\033[33mwell\\033[0m \\033[2mdim\\033[0m'; exit 1\n"
    )
    for name in "abcd":
        (project / f"{name}.py").write_text(MODULE * 9)
    reads = [["Read", {"file_path": str(project / f"{name}.py")}] for name in "abcd"]
    edit = {"file_path": str(project / "a.py"), "old_string": "os", "new_string": "posix", "replace_all": True}
    errand = {
        "description": "Find every caller",
        "prompt": steps([reads[0]], "Only **b** does."),
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    plan = [["TaskCreate", {"subject": words, "description": words}] for words in ("Read", "Mend", "Try")]
    turn = steps(
        ["First I look.", *reads],
        [["Edit", edit], ["Bash", {"command": "sh fail.sh"}], ["Bash", {"command": "true"}]],
        [["Task", errand], ["Read", {"file_path": str(project / "empty.txt")}], *plan],
        [["TaskUpdate", {"taskId": "1", "status": "completed"}], ["Read", {"file_path": str(project / "none.txt")}]],
        ANSWER,
    )
    cells = [f"think:{ANSWER}", turn, "fail:400", "%claude mode yolo", "%claude help", "%claude cost", "hang:"]
    claude_notebook.open("turns.ipynb", cells)
    for index in range(len(cells) - 1):
        claude_notebook.run(index)
        claude_notebook.wait_idle()
    claude_notebook.run(len(cells) - 1)
    claude_notebook.wait_for_output(len(cells) - 1, selector=".live")
    output = claude_notebook.output(1)
    for part in (".add", ".del", "i.no", "mjx-container", ".tb", ".foot"):
        expect(output.locator(part).first).to_be_visible()
    expect(claude_notebook.output(2).locator(".trouble")).to_be_visible()
    assert_accessible(claude_notebook)
    claude_notebook.panel.evaluate("panel => panel.querySelectorAll('details').forEach(row => { row.open = true; })")
    assert_accessible(claude_notebook)
    claude_notebook.interrupt()
    claude_notebook.wait_for_output(len(cells) - 1, "Interrupted")
    assert_accessible(claude_notebook)


def test_permission_and_plan_cards_are_accessible_and_so_are_their_records(
    claude_notebook: NotebookPage, project: Path
) -> None:
    (project / "a.py").write_text(MODULE * 9)
    edit = {"file_path": str(project / "a.py"), "old_string": "os", "new_string": "posix", "replace_all": True}
    cells = [
        call("Bash", command="mkdir -p report && touch report/made.txt", description="Make the report folder"),
        f"%claude mode plan\n{call('ExitPlanMode', plan=ANSWER)}",
        "%claude mode default\n" + steps([["Read", {"file_path": str(project / "a.py")}]], [["Edit", edit]], "Done."),
        call("Bash", command="python3 -c pass " + "a-long-name " * 600),
    ]
    claude_notebook.open("cards.ipynb", cells)
    claude_notebook.run(0)
    claude_notebook.wait_for_output(0, selector=".ck-ask")
    assert_accessible(claude_notebook)
    press(claude_notebook, 0, "More…")
    assert_accessible(claude_notebook)
    press(claude_notebook, 0, "Edit…")
    card(claude_notebook, 0).locator("textarea").fill("")
    press(claude_notebook, 0, "Run this command")
    expect(card(claude_notebook, 0)).to_contain_text("There is no command.")
    assert_accessible(claude_notebook)
    card(claude_notebook, 0).locator("textarea").fill("touch edited.txt")
    press(claude_notebook, 0, "Run this command")
    claude_notebook.wait_idle()
    for index, answer in ((1, "Keep planning"), (2, "Accept edits this session"), (3, "Deny")):
        claude_notebook.run(index)
        claude_notebook.wait_for_output(index, selector=".ck-ask")
        assert_accessible(claude_notebook)
        press(claude_notebook, index, answer)
        claude_notebook.wait_idle()
    expect(claude_notebook.panel.locator(".rec")).to_have_count(4)
    assert_accessible(claude_notebook)


def test_what_is_said_of_the_conversation_is_accessible(
    claude_notebook: NotebookPage, project: Path, cli_home: Path
) -> None:
    """The resume card, an undo with its card and record, notices, the tables of cost, sessions and context."""
    (cli_home / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"allow": ["Write"]}}))
    write = call("Write", file_path=str(project / "new.py"), content=MODULE)
    tables = ["%claude cost", "%claude sessions", "%claude context"]
    cells = ["say:one", write, "%claude undo", *tables, "%claude budget 0.001\nsay:no more"]
    claude_notebook.open("memory.ipynb", cells)
    claude_notebook.run(0)
    claude_notebook.wait_idle()
    claude_notebook.restart()
    for index, answer in ((1, "Go on with it"), (2, "Put them back")):
        claude_notebook.run(index)
        claude_notebook.wait_for_output(index, selector=".ck-ask")
        assert_accessible(claude_notebook)
        press(claude_notebook, index, answer)
        claude_notebook.wait_idle()
    for index in (0, 3, 4, 5, 6):
        claude_notebook.run(index)
        claude_notebook.wait_idle()
    expect(claude_notebook.panel.locator(".tb")).to_have_count(4)
    expect(claude_notebook.output(6).locator(".trouble")).to_be_visible()
    assert_accessible(claude_notebook)


def test_a_form_is_accessible_empty_filled_in_and_answered(claude_notebook: NotebookPage) -> None:
    claude_notebook.open("form.ipynb", [call("AskUserQuestion", questions=[ROWS, FORMATS])])
    claude_notebook.run(0)
    claude_notebook.wait_for_output(0, selector=".ck-ask")
    form = card(claude_notebook, 0)
    assert_accessible(claude_notebook)
    form.get_by_placeholder("in your own words").first.fill("only the last year")
    form.locator("input[type=checkbox]").first.check()
    expect(form.get_by_role("button", name="Answer", exact=True)).to_be_enabled()
    assert_accessible(claude_notebook)
    press(claude_notebook, 0, "Answer")
    claude_notebook.wait_idle()
    assert_accessible(claude_notebook)


def test_nothing_leaves_its_card_in_a_narrow_window(claude_notebook: NotebookPage) -> None:
    word = "unbroken" * 40
    choices = [{"label": f"{word}{number}", "description": word} for number in range(2)]
    asked = {"header": "Words", "options": choices}
    one = asked | {"question": f"Which {word}?", "multiSelect": False}
    several = asked | {"question": f"Which {word}s?", "multiSelect": True}
    cells = [
        call("Bash", command=f"touch {word}", description=f"Make {word}"),
        call("AskUserQuestion", questions=[one, several]),
    ]
    claude_notebook.open("narrow.ipynb", cells)
    claude_notebook.page.set_viewport_size({"width": 760, "height": 900})
    for index, answer in ((0, "Deny"), (1, "Decline")):
        claude_notebook.run(index)
        claude_notebook.wait_for_output(index, selector=".ck-ask")
        outside = card(claude_notebook, index).evaluate("card => card.scrollWidth - card.clientWidth")
        assert outside == 0
        press(claude_notebook, index, answer)
        claude_notebook.wait_idle()


def test_the_keyboard_reaches_every_button_and_approves_nothing_by_itself(
    claude_notebook: NotebookPage, project: Path
) -> None:
    """No button has the focus when a card appears; Enter and Escape in the cell answer nothing; Tab finds them all."""
    claude_notebook.open("keys.ipynb", [call("Bash", command="touch keyed.txt")])
    claude_notebook.run(0)
    claude_notebook.wait_for_output(0, selector=".ck-ask")
    keyboard = claude_notebook.page.keyboard
    buttons = card(claude_notebook, 0).locator("button")
    expect(buttons.and_(claude_notebook.page.locator(":focus"))).to_have_count(0)
    keyboard.press("Enter")
    keyboard.press("Escape")
    reached: list[str] = []
    for _ in range(60):
        keyboard.press("Tab")
        focused = buttons.and_(claude_notebook.page.locator(":focus"))
        reached += focused.all_inner_texts()
        if reached[-1:] == ["Deny and stop"]:
            break
    assert reached == [label for label in buttons.all_inner_texts() if label]
    assert reached[0] == "Allow once"
    allow = buttons.filter(has_text="Allow once")
    allow.focus()
    keyboard.press("Escape")
    expect(card(claude_notebook, 0)).to_be_visible()
    assert not (project / "keyed.txt").exists()
    allow.focus()
    keyboard.press("Enter")
    claude_notebook.wait_for_output(0, "You allowed once")
    claude_notebook.wait_idle()
    assert (project / "keyed.txt").exists()
