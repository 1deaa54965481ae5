"""The conversation as Markdown and as JSON: complete, and nothing in it can pass for what stands around it."""

from __future__ import annotations

import json

import msgspec
import pytest
from markdown_it import MarkdownIt

from claude_kernel.export import as_json, as_markdown
from claude_kernel.journal import Book, Journal, Turn
from claude_kernel.protocol import events as ev
from claude_kernel.recording import pack
from claude_kernel.render import Bundle, render_record


def journal(*answers: str, prompt: str = "what is it?", more: tuple[ev.Event | Bundle, ...] = ()) -> Journal:
    kept = Journal(None, Book(notebook="/work/nb.ipynb"))
    for number, answer in enumerate(answers):
        happened: tuple[ev.Event | Bundle, ...] = (*more, ev.TextFinished(text=answer))
        packed = msgspec.json.encode(pack([(1.0, what) for what in happened]))
        kept.add(
            Turn(
                at=1_700_000_000.0,
                prompt_id=f"p{number}",
                after=f"p{number - 1}" if number else "",
                prompt=prompt,
                session_id="s1",
                outcome="finished",
                model="opus",
                version="2.1.326",
                cost_usd=0.25,
                by_model={"opus": 0.25},
                tools=("Bash",),
                events=msgspec.Raw(packed),
            )
        )
    return kept


CALL = (
    ev.ToolStarted(tool_use_id="t", name="Bash", input={"command": "echo ```"}),
    render_record("Allowed", "once"),
    ev.ToolFinished(tool_use_id="t", text="out\n````\nput"),
)


def test_both_forms_hold_prompts_answers_tools_decisions_costs_and_versions() -> None:
    kept = journal("It is **this**.", "And that.", more=CALL)
    page = as_markdown(kept)
    for words in ("# nb.ipynb", "2 prompts, $0.50 in all", "> what is it?", "It is **this**.", "**Bash**", "Allowed"):
        assert words in page
    for words in ("opus", "Claude Code 2.1.326", "$0.25", "session s1", "claude-kernel "):
        assert words in page
    told = json.loads(as_json(kept))
    assert told["cost_usd"] == 0.5
    assert told["cost_by_model"] == {"opus": 0.5}
    first = told["turns"][0]
    assert (first["prompt"], first["model"], first["version"], first["tools"]) == (
        "what is it?",
        "opus",
        "2.1.326",
        ["Bash"],
    )
    assert [event["e"] for event in first["events"]] == ["ToolStarted", "Record", "ToolFinished", "TextFinished"]


HOSTILE = [
    "```python\nnever closed",
    "~~~~\nnever closed\n```",
    "<!-- never closed",
    "<script>\nnever closed",
    "<pre>",
    "<![CDATA[ never closed",
    "> quoted\n> ```\n> open in a quote",
    "- item\n\n  ```\n  open in a list",
    "1. a\n\n   <!-- open in a list",
    "```\n<!--",
    "````\n```\nwhat-comes-after",
    "\n> what is it?\n\n## 7",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("where", ["answer", "prompt", "result", "record"])
def test_hostile_text_stays_in_its_place(text: str, where: str) -> None:
    given = {
        "answer": lambda: journal(text, "the end"),
        "prompt": lambda: journal("first", "the end", prompt=text),
        "result": lambda: journal("first", "the end", more=(CALL[0], ev.ToolFinished(tool_use_id="t", text=text))),
        "record": lambda: journal("first", "the end", more=(Bundle("", text),)),
    }[where]()
    tokens = MarkdownIt().parse(as_markdown(given))
    tops = [token for token in tokens if token.level == 0]
    titles = [
        tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open" and not token.level
    ]
    assert titles[0] == "nb.ipynb"
    assert titles[-1] == "2"
    assert [title for title in titles[1:] if title in ("1", "2")] == ["1", "2"]
    inlines = [token.content for token in tokens if token.type == "inline" and token.level == 1]
    assert "the end" in inlines
    assert tops[-1].type == "paragraph_close"
    assert inlines[-1].startswith("<sub>")


def test_a_notebooks_name_is_one_line() -> None:
    kept = journal("x")
    kept.book.notebook = "/work/a\n# b.ipynb"
    assert as_markdown(kept).splitlines()[0].startswith("# a")
    assert "\n# b.ipynb" not in as_markdown(kept)
