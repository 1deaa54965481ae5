"""What is asked and what may be answered, from real requests: `offers`, `rules`, `things`, `answers`, `fields`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from claude_kernel.errors import UsageError
from claude_kernel.prompts.answers import labels_of, read_answer
from claude_kernel.prompts.fields import find_fields
from claude_kernel.prompts.offers import NO, find_editable, find_offers, refusal
from claude_kernel.prompts.records import render_decision
from claude_kernel.prompts.scene import Scene
from claude_kernel.prompts.things import compose_thing
from claude_kernel.prompts.unattended import find_refusals, refuse_unattended
from claude_kernel.protocol import Allow, Answers, Deny, events
from claude_kernel.protocol.asking import REQUESTS

TRANSCRIPTS = Path(__file__).parent.parent / "transcripts"
SCENE = Scene(project="/home/me/project")


def asked(scene: str) -> list[events.Question]:
    """Every question of a recorded scene."""
    found = []
    for line in (TRANSCRIPTS / f"{scene}.jsonl").read_text().splitlines():
        row = json.loads(line)["m"]
        if isinstance(row, dict) and row.get("request", {}).get("subtype") == "can_use_tool":
            event = REQUESTS["can_use_tool"](row["request_id"], row["request"])
            assert isinstance(event, events.QuestionAsked)
            found.append(event.question)
    return found


def question(tool: str, *suggestions: dict[str, Any], **given: Any) -> events.Question:
    return events.Question(id="q", tool_name=tool, input=given, display_name=tool, suggestions=suggestions)


def rules(*contents: str | None, tool: str = "Bash", **more: Any) -> dict[str, Any]:
    listed = [{"toolName": tool} | ({"ruleContent": content} if content is not None else {}) for content in contents]
    return {"type": "addRules", "rules": listed, "behavior": "allow", "destination": "localSettings"} | more


def labels(asking: events.Question) -> list[str]:
    return [offer.label for offer in find_offers(asking, SCENE)]


ACCEPT = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
BYPASS = {"type": "setMode", "mode": "bypassPermissions", "destination": "session"}


@pytest.mark.parametrize(
    ("asking", "expected"),
    [
        (
            question("Bash", rules("npm test *"), command="npm test"),
            ["Allow once", "Allow “npm test *” for this session", "Always allow “npm test *”"],
        ),
        (
            question("Bash", rules("make report && make publish"), command="make report && make publish"),
            ["Allow once", "Allow for this session", "Always allow"],
        ),
        (
            question("Bash", command="make"),
            ["Allow once", "Allow “make” for this session", "Always allow “make”"],
        ),
        (
            question("Bash", rules("git push *", "rm -rf build"), command="git push && rm -rf build"),
            ["Allow once", "Allow “git push *” and “rm -rf build” for this session"],
        ),
        (
            question("Bash", rules(None), command="make"),
            ["Allow once", "Allow every command for this session", "Always allow every command"],
        ),
        (
            question("Write", ACCEPT, file_path="/home/me/project/n.txt", content="x"),
            ["Allow once", "Accept edits this session", "Always allow edits to n.txt"],
        ),
        (
            question("Write", BYPASS, file_path="/home/me/project/n.txt", content="x"),
            ["Allow once", "Allow edits to n.txt for this session", "Always allow edits to n.txt"],
        ),
        (
            question("Read", rules("//etc/**", tool="Read"), file_path="/etc/hostname"),
            ["Allow once", "Allow reading /etc/** for this session", "Always allow reading /etc/**"],
        ),
        (
            question("WebFetch", url="https://example.com/a"),
            ["Allow once", "Allow pages of example.com for this session", "Always allow pages of example.com"],
        ),
        (
            question("mcp__db__drop", table="x"),
            ["Allow once", "Allow every use of mcp__db__drop for this session"],
        ),
        (
            question("Bash", rules("x", behavior="deny"), {"type": "removeRules", "rules": []}, command="make"),
            ["Allow once", "Allow “make” for this session", "Always allow “make”"],
        ),
    ],
)
def test_offers_are_in_words_and_in_order_of_safety(asking: events.Question, expected: list[str]) -> None:
    assert labels(asking)[: len(expected)] == expected


def test_the_scope_is_rewritten_to_what_was_chosen() -> None:
    offers = {offer.key: offer.decision for offer in find_offers(asked("permission")[0], SCENE)}
    places = {}
    for key, decision in offers.items():
        assert isinstance(decision, Allow)
        places[key] = {entry["type"]: entry["destination"] for entry in decision.permissions}
    assert places == {
        "y": {},
        "s": {"addRules": "session", "setMode": "session"},
        "a": {"addRules": "localSettings", "setMode": "session"},
        "u": {"addRules": "userSettings", "setMode": "session"},
    }


@pytest.mark.parametrize("scene", ["permission", "hooks", "subagents_parallel", "partials", "host_tools"])
def test_nothing_is_kept_that_is_not_said(scene: str) -> None:
    for asking in asked(scene):
        for offer in find_offers(asking, SCENE):
            assert isinstance(offer.decision, Allow)
            assert bool(offer.keeps) == bool(offer.decision.permissions)
            for entry in offer.decision.permissions:
                assert entry["type"] in ("addRules", "addDirectories", "setMode")
                for rule in entry.get("rules", []):
                    assert rule.get("ruleContent", "every").lstrip("/") in offer.keeps
                assert entry.get("mode") in (None, "acceptEdits")


def test_a_folder_outside_is_added_and_the_project_itself_is_not() -> None:
    def folder(path: str) -> dict[str, Any]:
        return {"type": "addDirectories", "directories": [path], "destination": "session"}

    inside = question("Bash", rules("touch a"), folder("/home/me/project"), ACCEPT, command="touch a")
    outside = question("Bash", rules("touch /tmp/a"), folder("/tmp"), ACCEPT, command="touch /tmp/a")
    assert labels(inside)[1:3] == [
        "Allow and accept edits this session",
        "Always allow “touch a”, accept edits this session",
    ]
    assert labels(outside)[1] == "Allow and accept edits and add folder /tmp this session"


def test_a_mode_that_asks_nobody_is_never_offered() -> None:
    for mode in ("bypassPermissions", "dontAsk", "auto", "yolo"):
        asking = question("Bash", {"type": "setMode", "mode": mode, "destination": "session"}, command="make")
        for offer in find_offers(asking, SCENE):
            assert isinstance(offer.decision, Allow)
            assert all(entry["type"] != "setMode" for entry in offer.decision.permissions)


def test_what_needs_a_person_is_allowed_once_or_not_at_all() -> None:
    asking = events.Question(id="q", tool_name="mcp__x__sign", input={}, suggestions=(rules(None),), needs_person=True)
    assert labels(asking) == ["Allow once"]


def test_a_plan_is_approved_in_one_of_two_modes() -> None:
    modes = []
    for offer in find_offers(asked("plan")[0], SCENE):
        assert isinstance(offer.decision, Allow)
        modes.append((offer.label, offer.decision.permissions[0]["mode"]))
    assert modes == [("Approve, ask for each edit", "default"), ("Approve, accept edits", "acceptEdits")]


def test_the_plan_is_found_in_the_call_where_the_request_has_none() -> None:
    asking = asked("plan")[0]
    assert asking.input == {}
    scene = Scene(project="/home/me/project")
    assert "did not send the plan" in compose_thing(asking, scene).render().text
    scene.note(events.ToolStarted(asking.tool_use_id or "", "ExitPlanMode", {"plan": "1. do **it**"}))
    assert "do <strong>it</strong>" in compose_thing(asking, scene).render().html


def test_an_agents_question_says_which_agent_asks() -> None:
    scene = Scene(project="/home/me/project")
    for asking in asked("subagents_parallel"):
        scene.note(events.TaskStarted(asking.agent_id or "", description="Errand one"))
        assert compose_thing(asking, scene).sentence == "An agent (Errand one) wants to run a command"


# --- exactly what -----------------------------------------------------------------------------------------------------


def test_a_command_is_shown_whole_or_can_be_unfolded() -> None:
    command = "\n".join(f"echo line {number}" for number in range(2_000)) + "; rm -rf /"
    html = compose_thing(question("Bash", command=command), SCENE).render().html
    assert "left out" in html
    assert "<details><summary><b>All of it: 2,000 lines" in html
    assert html.count("line 1000") == 1
    assert html.count("rm -rf /") == 2


def test_the_beginning_of_a_command_is_no_reason_for_it() -> None:
    """The CLI describes a call that came without a description by its first words."""
    command = "make " + "target " * 30
    asking = question("Bash", command=command)
    shown = compose_thing(msgspec.structs.replace(asking, description=f"{command[:48]}…"), SCENE)
    assert shown.why.html == ""
    assert "Tidy up." in compose_thing(msgspec.structs.replace(asking, description="Tidy up"), SCENE).why.html


def test_what_a_tools_own_way_does_not_show_follows_as_json() -> None:
    text = compose_thing(question("Bash", command="make", timeout=5, run_in_background=True), SCENE).render().text
    assert '"run_in_background": true' in text
    assert '"timeout": 5' in text
    lying = compose_thing(question("Bash", command=["rm", "-rf"]), SCENE).render().text
    assert '"-rf"' in lying


def test_a_long_line_in_a_difference_is_behind_all_of_it() -> None:
    hidden = "x" * 500 + "; evil()"
    asking = question("Edit", file_path="/home/me/project/a.py", old_string="a", new_string=hidden)
    html = compose_thing(asking, SCENE, "a\n").render().html
    assert "All of it" in html
    assert "evil" in html


def test_writing_over_a_file_is_a_difference_and_a_new_file_its_content() -> None:
    asking = question("Write", file_path="/home/me/project/n.txt", content="one\nthree\n")
    assert "− two" in compose_thing(asking, SCENE, "one\ntwo\n").render().text
    assert "−" not in compose_thing(asking, SCENE, None).render().text
    assert "empty" in compose_thing(question("Write", file_path="n", content=""), SCENE).render().text


def test_an_edit_that_finds_no_place_still_shows_its_texts() -> None:
    asking = question("Edit", file_path="/home/me/project/a.py", old_string="old", new_string="new")
    assert "− old" in compose_thing(asking, SCENE, "something else\n").render().text


def test_why_names_the_place_outside_the_project() -> None:
    asking = events.Question(
        id="q",
        tool_name="Bash",
        input={"command": "rm x"},
        description="Tidy up",
        blocked_path="/etc/x",
        reason="Because",
    )
    assert "Tidy up. Because. Outside the project: /etc/x" in compose_thing(asking, SCENE).render().text
    inside = events.Question(id="q", tool_name="Bash", input={"command": "rm x"}, blocked_path="/home/me/project/x")
    assert "Outside" not in compose_thing(inside, SCENE).render().text


HOSTILE = '<img src=x onerror=alert(1)><script>1</script><b class="jp-x">`$x$`\u202e'


@pytest.mark.parametrize("tool", ["Bash", "Edit", "Write", "WebFetch", "ExitPlanMode", "NotebookEdit", HOSTILE])
def test_nothing_of_the_cli_is_markup(tool: str) -> None:
    keys = ("command", "file_path", "content", "old_string", "new_string", "url", "prompt", "plan", "new_source")
    asking = events.Question(
        id="q",
        tool_name=tool,
        input=dict.fromkeys(keys, HOSTILE),
        display_name=HOSTILE,
        description=HOSTILE,
        reason=HOSTILE,
        blocked_path=HOSTILE,
        agent_id="a",
        dialog=None,
    )
    scene = Scene(project="/home/me/project", agents={"a": events.TaskStarted("a", description=HOSTILE)})
    for bundle in (
        compose_thing(asking, scene, HOSTILE).render(),
        render_decision(asking, Deny(reason=HOSTILE), None, scene),
        render_decision(asking, Allow(), find_offers(asking, scene)[-1], scene),
        render_decision(asking, Answers({HOSTILE: [HOSTILE]}), None, scene),
    ):
        for bad in ("<img", "<script", '<b class="jp', "\u202e"):
            assert bad not in bundle.html


# --- editing, refusing, forms -----------------------------------------------------------------------------------------


def test_an_edited_input_is_exactly_what_was_typed() -> None:
    asking = question("Bash", command="make", description="d")
    editable = find_editable(asking)
    assert editable is not None
    assert editable.decode(asking, "make  all\n").input == {"command": "make  all\n", "description": "d"}
    with pytest.raises(UsageError):
        editable.decode(asking, "  ")
    whole = find_editable(question("Write", file_path="n", content="x"))
    assert whole is not None
    assert whole.decode(asking, whole.text).input == {"file_path": "n", "content": "x"}
    for wrong in ("{", "[]", "3", ""):
        with pytest.raises(UsageError):
            whole.decode(asking, wrong)


def test_no_without_a_reason_has_words_of_ours() -> None:
    asking = question("Bash", command="make")
    assert refusal(asking, "  ").reason == NO
    assert refusal(asking, " use git mv ", stop=True) == Deny(reason="use git mv", stop=True)


@pytest.mark.parametrize(
    ("typed", "multiple", "expected"),
    [
        ("2", False, "Blue"),
        ("teal", False, "teal"),
        ("3", False, "3"),
        ("", False, None),
        ("1, 2", True, ["Red", "Blue"]),
        ("1, huge", True, ["Red", "huge"]),
        ("huge, really", True, ["huge, really"]),
        (" ", True, None),
    ],
)
def test_typed_answers_are_numbers_or_own_words(typed: str, multiple: bool, expected: Any) -> None:
    choices = (events.Choice("Red", "warm"), events.Choice("Blue"))
    assert read_answer(events.FormQuestion("Which?", choices=choices, multiple=multiple), typed) == expected


def test_no_two_choices_have_one_label() -> None:
    choices = tuple(map(events.Choice, ("Red", "Red", "Other…")))
    assert labels_of(events.FormQuestion("Which?", choices=choices)) == ["Red", "Red (2)", "Other… (3)"]


def test_a_schema_becomes_fields() -> None:
    schema = {
        "properties": {
            "name": {"type": "string", "title": "Your name"},
            "age": {"type": "integer"},
            "sure": {"type": "boolean"},
            "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["small", "medium"]},
            "odd": 3,
        },
        "required": ["name"],
    }
    fields = {field.name: field for field in find_fields(schema)}
    assert list(fields) == ["name", "age", "sure", "size"]
    assert fields["name"].required
    assert fields["age"].decode(" 42 ") == 42
    assert fields["sure"].decode("yes") is True
    assert fields["size"].labels == ("small", "medium")
    with pytest.raises(UsageError):
        fields["age"].decode("many")
    assert find_fields({"properties": []}) == ()


def test_where_nobody_is_asked_the_trouble_names_tool_and_setting() -> None:
    scene = Scene(project="/home/me/project")
    assert find_refusals(scene) is None
    assert not refuse_unattended(question("Bash", rules("npm test *"), command="npm test"), scene).stop
    form = events.Question(id="q", tool_name="AskUserQuestion", input={}, needs_person=True)
    assert refuse_unattended(form, scene).stop
    trouble = find_refusals(scene)
    assert trouble is not None
    assert trouble.kind == "PermissionNeeded"
    assert "set `CLAUDE_KERNEL_ALLOW` to `Bash(npm test *)`" in trouble.remedy
    assert "`AskUserQuestion` needs a person" in trouble.remedy


def test_only_a_regular_file_of_moderate_size_is_read(tmp_path: Path) -> None:
    scene = Scene(project=str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("hello")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "large").write_text("x" * 1_000_001)
    read = {name: scene.read_before(question("Write", file_path=name)) for name in ("pipe", "text", "binary", "large")}
    assert read == {"pipe": None, "text": "hello", "binary": None, "large": None}
    assert scene.read_before(question("Bash", file_path="text")) is None
