"""The public Python API, as the README shows it, against the real CLI."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.messages_api import MessagesApi
from support.real_cli import cli_path
from support.talk import run

import claude_kernel
from claude_kernel import Allow, Answers, Claude, Deny, Options, Prompt, Session
from claude_kernel.errors import TurnFailed
from claude_kernel.protocol import Decision, events
from claude_kernel.reply import Reply

pytestmark = pytest.mark.real_cli

COLOUR = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}


@pytest.fixture
def settings(cli_env: dict[str, str], project: Path) -> dict[str, Any]:
    return {"cli": str(cli_path()), "cwd": str(project), "environment": cli_env, "inherit_environment": False}


def test_three_lines_hold_a_conversation(settings: dict[str, Any]) -> None:
    with Claude(**settings) as claude:
        reply = claude.ask("say:It is **42**.")
    assert reply.text == "It is **42**."
    assert reply.cost is not None
    assert reply.cost > 0
    assert reply.session_id


def test_an_answer_can_be_data(settings: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    with Claude(**settings, json_schema=schema) as claude:
        reply = claude.ask('tool:StructuredOutput:{"n": 42}')
        assert reply.data == {"n": 42}
        with pytest.raises(TurnFailed, match="schema"):
            claude.ask("say:no data this time")


def test_permission_is_asked_of_the_function_given(settings: dict[str, Any], project: Path) -> None:
    def decide(question: events.Question) -> Decision:
        if question.form:
            return Answers({question.form[0].text: "Blue"})
        return Allow() if "allowed" in str(question.input) else Deny(reason="not that one")

    with Claude(**settings, ask=decide) as claude:
        claude.ask('tool:Bash:{"command": "touch allowed.txt"}')
        refused = claude.ask('tool:Bash:{"command": "touch other.txt"}')
        answered = claude.ask("tool:AskUserQuestion:" + json.dumps({"questions": [COLOUR]}))
    assert (project / "allowed.txt").exists()
    assert not (project / "other.txt").exists()
    assert "not that one" in refused.text
    assert refused.tools == ("Bash",)
    assert '"Which colour?"="Blue"' in answered.text


def test_without_a_function_everything_is_refused(settings: dict[str, Any], project: Path) -> None:
    with Claude(**settings) as claude:
        assert "Nobody can be asked" in claude.ask('tool:Bash:{"command": "touch x.txt"}').text
    assert not (project / "x.txt").exists()


def test_a_failed_turn_is_an_error_that_keeps_the_conversation(settings: dict[str, Any]) -> None:
    with Claude(**settings) as claude:
        with pytest.raises(TurnFailed) as caught:
            claude.ask("fail:400")
        assert caught.value.outcome == "api error"
        assert claude.ask("say:recovered").text == "recovered"


def test_a_conversation_is_resumed_by_its_id(settings: dict[str, Any], messages_api: MessagesApi) -> None:
    with Claude(**settings) as claude:
        first = claude.ask("say:the word is walnut").session_id
    with Claude(**settings, resume=first) as claude:
        assert claude.ask("say:again").session_id == first
    assert "walnut" in str(messages_api.last_request())


def test_the_same_in_asyncio(settings: dict[str, Any]) -> None:
    async def scene() -> Reply:
        async with Session(Options(**settings)) as session:
            return await session.ask(Prompt(text="say:hello"))

    assert run(scene()).text == "hello"


def test_the_synchronous_api_works_inside_a_running_loop(settings: dict[str, Any]) -> None:
    async def cell() -> str:
        with Claude(**settings) as claude:
            return claude.ask("say:from a notebook").text

    assert asyncio.run(cell()) == "from a notebook"


def test_code_blocks_are_found_in_the_answer() -> None:
    text = "Try:\n\n```python\nx = 1\n```\nor\n~~~~\n```\nnested\n```\n~~~~\n"
    assert [tuple(block) for block in Reply(text=text).code] == [("python", "x = 1\n"), ("", "```\nnested\n```\n")]


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = claude_kernel.no_such_name
