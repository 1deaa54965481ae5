"""What the CLI asks of this process, and what it says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from claude_kernel.protocol import asking
from claude_kernel.protocol import events as ev

Json = dict[str, Any]


def decode(subtype: str, **request: Any) -> ev.Event | None:
    return asking.REQUESTS[subtype]("r1", {"subtype": subtype, **request})


def question(**request: Any) -> ev.Question:
    event = decode("can_use_tool", **request)
    assert isinstance(event, ev.QuestionAsked)
    return event.question


def test_a_permission_question_carries_all_that_was_asked() -> None:
    rule = {"type": "addRules", "rules": [{"toolName": "Read"}], "behavior": "allow", "destination": "session"}
    assert question(
        tool_name="Bash",
        display_name="Shell",
        input={"command": "ls /tmp/test/"},
        description="List",
        decision_reason="outside the project",
        tool_use_id="toolu_1",
        permission_suggestions=[rule],
        blocked_path="/private/tmp/test",
        requires_user_interaction=True,
        agent_id="agent",
    ) == ev.Question(
        id="r1",
        tool_name="Bash",
        input={"command": "ls /tmp/test/"},
        tool_use_id="toolu_1",
        display_name="Shell",
        description="List",
        reason="outside the project",
        blocked_path="/private/tmp/test",
        suggestions=(rule,),
        needs_person=True,
        agent_id="agent",
    )


@pytest.mark.parametrize(
    "absent", [{}, dict.fromkeys(asking._CanUseTool.__struct_fields__[1:])], ids=["absent", "null"]
)
def test_a_permission_question_needs_only_a_tools_name(absent: Json) -> None:
    assert question(**absent, tool_name="Bash") == ev.Question(id="r1", tool_name="Bash", input={}, display_name="Bash")


@pytest.mark.parametrize(("tool", "needs_person"), [("AskUserQuestion", True), ("ExitPlanMode", True), ("Bash", False)])
def test_some_tools_always_need_a_person(tool: str, needs_person: bool) -> None:
    assert question(tool_name=tool).needs_person is needs_person


COLOUR = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": True,
    "options": [{"label": "Red", "description": "warm", "preview": "#f00"}, {"label": "Blue"}],
}
FORMS: list[tuple[str, Json, tuple[ev.FormQuestion, ...]]] = [
    (
        "a whole form",
        {"questions": [COLOUR]},
        (
            ev.FormQuestion(
                "Which colour?", "Colour", (ev.Choice("Red", "warm", "#f00"), ev.Choice("Blue")), multiple=True
            ),
        ),
    ),
    ("a bare question", {"questions": [{"question": "Why?"}]}, (ev.FormQuestion("Why?"),)),
    (
        "nulls",
        {
            "questions": [
                {
                    "question": "Why?",
                    "header": None,
                    "multiSelect": None,
                    "options": [{"label": "x", "description": None}],
                }
            ]
        },
        (ev.FormQuestion("Why?", choices=(ev.Choice("x"),)),),
    ),
    ("no questions", {}, ()),
    ("null questions", {"questions": None}, ()),
    ("questions of another shape", {"questions": ["Why?"]}, ()),
]


@pytest.mark.parametrize(("name", "tool_input", "form"), FORMS, ids=[name for name, *_ in FORMS])
def test_a_form_is_read_as_far_as_it_can_be(name: str, tool_input: Json, form: tuple[ev.FormQuestion, ...]) -> None:
    assert question(tool_name="AskUserQuestion", input=tool_input).form == form, name


def test_no_other_tool_has_a_form() -> None:
    assert asking.decode_form("Bash", {"questions": [COLOUR]}) == ()


def test_an_mcp_servers_form_is_a_question_for_a_person() -> None:
    schema = {"type": "object"}
    asked = decode("elicitation", mcp_server_name="db", message="Which table?", requested_schema=schema, url=None)
    assert isinstance(asked, ev.QuestionAsked)
    assert asked.question == ev.Question(
        id="r1",
        tool_name="elicitation",
        input={},
        description="Which table?",
        needs_person=True,
        dialog=ev.Dialog("db", "Which table?", schema),
    )


def test_an_mcp_message_and_a_hook_are_calls() -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert decode("mcp_message", server_name="notebook", message=message) == ev.McpCalled("r1", "notebook", message)
    assert decode("hook_callback", callback_id="h", input={"a": 1}, tool_use_id="t") == ev.HookCalled(
        "r1", "h", {"a": 1}, "t"
    )
    assert decode("hook_callback", callback_id="h", input="odd", tool_use_id=5) == ev.HookCalled("r1", "h", {})


@pytest.mark.parametrize(
    ("subtype", "request_fields"),
    [
        ("can_use_tool", {}),
        ("can_use_tool", {"tool_name": 5}),
        ("can_use_tool", {"tool_name": "Bash", "input": "ls"}),
        ("elicitation", {"message": 5}),
        ("mcp_message", {"server_name": "s"}),
        ("mcp_message", {"message": {}}),
        ("hook_callback", {"input": {}}),
    ],
    ids=str,
)
def test_a_request_that_cannot_be_understood_is_not_guessed_at(subtype: str, request_fields: Json) -> None:
    assert decode(subtype, **request_fields) is None


def test_a_host_tool_call_becomes_a_question_under_its_own_id() -> None:
    started = ev.ToolStarted("toolu_123", "read_file", {"path": "foo.rs"})
    assert asking.question_of_host_tool(started) == ev.Question(
        id="toolu_123",
        tool_name="read_file",
        input={"path": "foo.rs"},
        tool_use_id="toolu_123",
        display_name="read_file",
    )
    form = asking.question_of_host_tool(ev.ToolStarted("t", "AskUserQuestion", {"questions": [COLOUR]}))
    assert (form.needs_person, len(form.form)) == (True, 1)


# --- initialize -----------------------------------------------------------------------------------------------------


def test_what_the_cli_says_of_itself_is_read() -> None:
    assert asking.decode_initialised(
        {
            "claude_code_version": "2.1.326",
            "current_permission_mode": "default",
            "commands": [{"name": "compact", "description": "d", "argumentHint": "h"}],
            "models": [
                {
                    "value": "opus",
                    "displayName": "Opus",
                    "description": "d",
                    "resolvedModel": "claude-opus-5-5",
                    "supportedEffortLevels": ["low", "high", 5],
                }
            ],
            "agents": [{"name": "Explore", "description": "d"}],
            "output_style": "default",
            "available_output_styles": ["default", "Learning"],
            "account": {"email": "user@example.com"},
        }
    ) == ev.Initialised(
        version="2.1.326",
        mode="default",
        commands=(ev.SlashCommand("compact", "d", "h"),),
        models=(ev.Model("opus", "Opus", "d", "claude-opus-5-5", ("low", "high")),),
        agents=(ev.AgentKind("Explore", "d"),),
        output_style="default",
        output_styles=("default", "Learning"),
        account={"email": "user@example.com"},
        logged_in=True,
    )


def test_the_bridge_dialect_spelling_of_commands_and_models_is_read() -> None:
    said = asking.decode_initialised(
        {
            "commands": [{"name": "/help", "description": "h"}],
            "models": [{"value": "opus", "display": "Opus (Powerful)"}],
        }
    )
    assert said.commands == (ev.SlashCommand("help", "h"),)
    assert said.models == (ev.Model("opus", "Opus (Powerful)"),)


@pytest.mark.parametrize("odd", [None, 5, True, "words", {}, [], [5, None, "x"]], ids=str)
def test_odd_lists_in_the_answer_are_empty(odd: Any) -> None:
    fields = ("commands", "models", "agents", "account", "claude_code_version", "output_style")
    said = asking.decode_initialised({**dict.fromkeys(fields, odd), "available_output_styles": 5})
    assert (said.commands, said.models, said.agents, said.output_styles) == ((), (), (), ())
    model = asking.decode_initialised({"models": [{"supportedEffortLevels": odd}]}).models[0]
    assert model.effort_levels == (("x",) if isinstance(odd, list) and odd else ())


@pytest.mark.parametrize(
    ("account", "logged_in"),
    [
        ({}, None),
        ({"tokenSource": "none"}, False),
        ({"tokenSource": "none", "apiKeySource": "ANTHROPIC_API_KEY"}, True),
        ({"tokenSource": "none", "apiProvider": "firstParty"}, False),
        ({"tokenSource": "none", "apiProvider": "bedrock"}, True),
        ({"tokenSource": "claude.ai"}, True),
        ({"email": "user@example.com"}, True),
    ],
    ids=str,
)
def test_whether_someone_is_logged_in_is_read_from_the_account(account: Json, logged_in: bool | None) -> None:
    assert asking.decode_initialised({"account": account}).logged_in is logged_in
