"""Every recorded scene, replayed whole and in pieces: what is true of all of them, and what matters in each."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, TypeVar

import pytest
from protocol.replay import CHUNK_SIZES, SCENES, events_of, load, replay, replays_of

from claude_kernel.protocol import events as ev
from claude_kernel.protocol.events import Outcome

E = TypeVar("E", bound=ev.Event)

every_scene = pytest.mark.parametrize("scene", SCENES)


def only(kind: type[E], scene: str) -> list[E]:
    return [event for event in events_of(scene) if isinstance(event, kind)]


def test_there_are_scenes() -> None:
    assert len(SCENES) >= 35


# --- true of every scene --------------------------------------------------------------------------------------------


@every_scene
def test_where_the_stream_is_cut_makes_no_difference(scene: str) -> None:
    for size in CHUNK_SIZES:
        in_pieces = [event for process in load(scene) for event in replay(process, size).events]
        assert in_pieces == list(events_of(scene)), f"in chunks of {size}"


@every_scene
def test_nothing_the_cli_says_is_unknown(scene: str) -> None:
    strange = (ev.Unrecognized, ev.LineDropped, ev.RequestRefused)
    assert [event for event in events_of(scene) if isinstance(event, strange)] == []
    assert all(replayed.connection.bytes_to_send() == b"" for replayed in replays_of(scene))


@every_scene
def test_what_we_send_is_what_the_cli_was_recorded_with(scene: str) -> None:
    for replayed in replays_of(scene):
        for recorded, line in replayed.sent:
            ours, theirs = json.loads(line), json.loads(json.dumps(recorded))
            if theirs["type"] == "control_request":
                ours["request_id"] = theirs["request_id"]
            elif theirs["type"] == "user":
                ours["uuid"] = theirs.setdefault("uuid", ours["uuid"])
            elif theirs["response"]["subtype"] == "error":
                continue  # we never refuse a question in that way: a denial has a reason
            else:  # both forms of several labels are taken; we write the one with commas
                answers = theirs["response"]["response"].get("updatedInput", {}).get("answers", {})
                by_index = "0" in answers
                for question, given in answers.items():
                    answers[question] = given if isinstance(given, str) or by_index else ", ".join(given)
            assert ours == theirs


def texts(scene: str, *kinds: type[ev.Event]) -> dict[str | None, str]:
    """The text of these events, by the agent that said it."""
    joined: dict[str | None, str] = defaultdict(str)
    for event in events_of(scene):
        if isinstance(event, kinds):
            joined[event.parent] += event.text  # type: ignore[attr-defined]  # all four kinds have both
    return joined


@every_scene
def test_what_streamed_is_what_was_finished(scene: str) -> None:
    assert texts(scene, ev.TextStreamed) == texts(scene, ev.TextFinished)
    assert texts(scene, ev.ThinkingStreamed) == texts(scene, ev.ThinkingFinished)


@every_scene
def test_a_turns_answer_is_the_last_thing_said_in_it(scene: str) -> None:
    said = ""
    for event in events_of(scene):
        if isinstance(event, ev.TextFinished) and event.parent is None:
            said = event.text
        elif isinstance(event, ev.TurnEnded | ev.UnaskedTurnEnded):
            structured = isinstance(event, ev.TurnEnded) and event.structured is not None
            if event.outcome is Outcome.FINISHED and not structured:
                assert event.text.rstrip() == said.rstrip()  # what `/context` prints ends in blank lines only here
            said = ""


@every_scene
def test_every_prompt_is_answered_once_and_in_order(scene: str) -> None:
    for replayed in replays_of(scene):
        sent = [json.loads(line)["uuid"] for recorded, line in replayed.sent if recorded["type"] == "user"]
        assert [event.prompt_id for event in replayed.events if isinstance(event, ev.TurnEnded)] == sent


@every_scene
def test_every_request_is_answered_once(scene: str) -> None:
    sent = [
        row.message["request_id"]
        for process in load(scene)
        for row in process
        if row.message["type"] == "control_request" and row.direction == ">"
    ]
    assert sorted(event.request_id for event in only(ev.RequestAnswered, scene)) == sorted(sent)


UNFINISHED_TOOLS = {"max_budget": 1}


@every_scene
def test_every_tool_that_starts_finishes_once_with_its_own_parent(scene: str) -> None:
    started = {event.tool_use_id: event.parent for event in only(ev.ToolStarted, scene)}
    finished = {event.tool_use_id: event.parent for event in only(ev.ToolFinished, scene)}
    assert len(only(ev.ToolStarted, scene)) == len(started)
    assert len(only(ev.ToolFinished, scene)) == len(finished)
    assert finished.items() <= started.items()
    assert len(started) - len(finished) == UNFINISHED_TOOLS.get(scene, 0)


@every_scene
def test_every_tool_of_the_conversation_itself_has_a_structured_result(scene: str) -> None:
    assert [event for event in only(ev.ToolFinished, scene) if event.parent is None and event.result is None] == []


@every_scene
def test_a_streamed_tool_input_is_the_one_the_tool_starts_with(scene: str) -> None:
    written: dict[str, str] = defaultdict(str)
    for event in only(ev.ToolInputStreamed, scene):
        written[event.tool_use_id] += event.fragment
    started = {event.tool_use_id: event.input for event in only(ev.ToolStarted, scene)}
    assert {tool_use_id: json.loads(text) for tool_use_id, text in written.items()} == {
        tool_use_id: started[tool_use_id] for tool_use_id in written
    }


@every_scene
def test_what_turns_cost_adds_up_to_what_sessions_cost(scene: str) -> None:
    usages = [event.usage for event in events_of(scene) if isinstance(event, ev.TurnEnded | ev.UnaskedTurnEnded)]
    totals = [usage.session_cost_usd or 0.0 for usage in usages]
    # A total that goes back began anew: after `/clear`, or in another session.
    last_totals = [now for now, after in zip(totals, [*totals[1:], -1.0], strict=False) if after < now]
    assert sum(usage.cost_usd or 0.0 for usage in usages) == pytest.approx(sum(last_totals))
    assert all(sum(usage.by_model.values()) == pytest.approx(usage.cost_usd) for usage in usages)


@every_scene
def test_a_process_begins_with_what_it_is_and_ends_with_its_stream(scene: str) -> None:
    for events, *_ in replays_of(scene):
        assert [type(event) for event in events].count(ev.StreamEnded) == 1
        assert isinstance(events[-1], ev.StreamEnded)
        initialised = [event for event in events if isinstance(event, ev.Initialised)]
        assert len(initialised) == (0 if scene == "resume_unknown" else 1)
        assert all(event.version and event.models and event.commands and event.agents for event in initialised)


# --- what matters in each -------------------------------------------------------------------------------------------

FINISHED, INTERRUPTED, API_ERROR = Outcome.FINISHED, Outcome.INTERRUPTED, Outcome.API_ERROR
NOT_ALL_FINISHED = {
    "api_error": [API_ERROR, FINISHED],
    "cancelled": [API_ERROR, INTERRUPTED, FINISHED],
    "interrupt": [INTERRUPTED, FINISHED, INTERRUPTED, INTERRUPTED],
    "max_budget": [Outcome.MAX_BUDGET],
    "max_turns": [Outcome.MAX_TURNS],
    "not_logged_in": [API_ERROR],
    "rate_limit": [FINISHED, API_ERROR],
}


@every_scene
def test_the_outcomes_are_those_of_the_scene(scene: str) -> None:
    turns = only(ev.TurnEnded, scene)
    assert [turn.outcome for turn in turns] == NOT_ALL_FINISHED.get(scene, [FINISHED] * len(turns))


ERRORS: list[tuple[str, str, str, int | None]] = [
    ("api_error", "API Error: 400", "unknown", 400),
    ("not_logged_in", "Not logged in", "authentication_failed", None),
    ("rate_limit", "You've hit your 5-hour limit", "rate_limit", 429),
    ("max_turns", "Reached maximum number of turns", "", None),
    ("max_budget", "Reached maximum budget", "", None),
]


@pytest.mark.parametrize(("scene", "words", "kind", "status"), ERRORS, ids=[scene for scene, *_ in ERRORS])
def test_a_failure_says_what_kind_it_is_and_is_not_said_by_claude(
    scene: str, words: str, kind: str, status: int | None
) -> None:
    (turn,) = (turn for turn in only(ev.TurnEnded, scene) if turn.outcome is not FINISHED)
    assert turn.error.startswith(words)
    assert (turn.error_kind, turn.api_status, turn.text) == (kind, status, "")
    assert not any(turn.error in event.text for event in only(ev.TextFinished, scene))


def test_text_streams_in_pieces_and_thinking_is_told_apart() -> None:
    assert len(only(ev.TextStreamed, "text")) > len(only(ev.TextFinished, "text"))
    assert [turn.text for turn in only(ev.TurnEnded, "text")] == [
        "Hello **world**, this is a streamed answer.",
        "deep",
    ]
    (thought,) = only(ev.ThinkingFinished, "text")
    assert thought.text
    assert only(ev.ThinkingCounted, "text")[-1].tokens > 0


def test_the_context_and_its_window_are_known_at_the_end_of_a_turn() -> None:
    for turn in only(ev.TurnEnded, "text"):
        started = [event.input_tokens for event in only(ev.MessageStarted, "text")]
        assert turn.usage.context_tokens is not None
        assert turn.usage.context_tokens > started[0] > 0
        assert turn.usage.context_window


def questions(scene: str) -> list[ev.Question]:
    return [event.question for event in only(ev.QuestionAsked, scene)]


QUESTIONS = {
    "permission": ["Bash", "Bash", "Bash", "Write"],
    "permission_parallel": ["Bash", "Bash"],
    "permission_error_reply": ["Bash"],
    "plan": ["ExitPlanMode", "ExitPlanMode"],
    "question": ["AskUserQuestion"] * 4,
    "question_preview": ["AskUserQuestion"],
    "subagent_tools": ["Bash"],
    "subagents_parallel": ["Bash", "Bash"],
    "interrupt": ["Bash", "Bash"],
    "rewind": ["Write"],
    "text": [],
}


@pytest.mark.parametrize("scene", QUESTIONS)
def test_the_questions_are_those_of_the_scene_and_each_belongs_to_a_tool_call(scene: str) -> None:
    assert [question.tool_name for question in questions(scene)] == QUESTIONS[scene]
    started = {event.tool_use_id: event for event in only(ev.ToolStarted, scene)}
    for question in questions(scene):
        assert question.tool_use_id in started
        assert question.input == started[question.tool_use_id].input or question.tool_name != "Bash"


def test_a_denial_reaches_claude_word_for_word_and_an_edited_input_is_what_runs() -> None:
    results = {event.text for event in only(ev.ToolFinished, "permission")}
    assert {"made", "use a folder called out", "edited"} <= results
    denied = [event for event in only(ev.ToolFinished, "permission") if event.is_error]
    assert [(event.text, event.refused) for event in denied] == [("use a folder called out", "permission-rule")]
    assert [turn.refused_tools for turn in only(ev.TurnEnded, "permission")][1] == ("Bash",)


def test_a_question_offers_rules_to_keep_and_a_kept_one_changes_the_mode() -> None:
    write = questions("permission")[-1]
    assert [offer["type"] for offer in write.suggestions] == ["setMode"]
    assert [event.mode for event in only(ev.StatusChanged, "permission") if event.mode] == ["acceptEdits"]


def test_a_tools_structured_result_is_its_own() -> None:
    by_name = {event.tool_use_id: event.name for event in only(ev.ToolStarted, "permission")}
    results = {by_name[event.tool_use_id]: event.result for event in only(ev.ToolFinished, "permission")}
    assert results["Bash"]["stdout"] == "edited"
    assert results["Write"]["type"] == "create"
    assert results["Edit"]["structuredPatch"]


def test_questions_of_a_form_are_read_whole() -> None:
    for question in questions("question"):
        assert question.needs_person
        assert [(asked.text, asked.multiple) for asked in question.form] == [
            ("Which colour?", False),
            ("Which sizes?", True),
        ]
        assert [choice.label for choice in question.form[0].choices] == ["Red", "Blue"]
    (with_previews,) = questions("question_preview")
    assert all(choice.preview for choice in with_previews.form[0].choices)


def test_answers_by_text_are_heard_and_answers_by_index_are_not() -> None:
    heard = [event.text for event in only(ev.ToolFinished, "question")]
    assert '"Which colour?"="Blue", "Which sizes?"="S, M"' in heard[0]
    assert '"Which colour?"="Something else: teal"' in heard[1]
    assert heard[2:] == ["The user did not answer the questions.", "I would rather not say"]


def test_a_plan_needs_a_person_and_allowing_it_leaves_the_plan_mode() -> None:
    assert all(question.needs_person for question in questions("plan"))
    assert [event.mode for event in only(ev.SessionStarted, "plan")] == ["plan", "plan"]
    modes = [event.mode for event in only(ev.StatusChanged, "plan") if event.mode]
    assert len(modes) == 1
    assert modes != ["plan"]


def test_an_interrupt_withdraws_the_open_question_and_the_process_lives_on() -> None:
    withdrawn = only(ev.QuestionWithdrawn, "interrupt")
    assert [event.question_id for event in withdrawn] == [questions("interrupt")[0].id]
    assert [turn.text for turn in only(ev.TurnEnded, "interrupt")] == ["", "still here", "", ""]
    assert all(turn.error == "" for turn in only(ev.TurnEnded, "interrupt"))


def test_a_prompt_that_waited_through_an_interrupt_is_answered() -> None:
    assert only(ev.TurnEnded, "cancelled")[-1].text == "it waited"


UNASKED = {"background_bash": 1, "subagent": 1, "unasked_turn": 2}


@every_scene
def test_turns_that_nobody_asked_for_are_told_apart(scene: str) -> None:
    unasked = only(ev.UnaskedTurnEnded, scene)
    if scene == "resume_unknown":
        assert [(turn.outcome, turn.origin) for turn in unasked] == [(Outcome.FAILED, "")]
        assert unasked[0].text.startswith("No conversation found")
        return
    assert len(unasked) == len(only(ev.UnaskedTurnStarted, scene)) == UNASKED.get(scene, 0)
    assert all(turn.origin == "task-notification" and turn.text.startswith("Noted: ") for turn in unasked)


def test_a_prompt_sent_during_an_unasked_turn_gets_its_own_answer() -> None:
    assert [turn.text for turn in only(ev.TurnEnded, "unasked_turn")] == [
        "The errand is on its way.",
        "ours again",
        "The errand is on its way.",
        "asked during the foreign turn",
    ]


def test_two_messages_sent_at_once_are_each_answered() -> None:
    first, second = only(ev.TurnEnded, "two_messages_one_turn")
    assert first.text.startswith("tick 0")
    assert second.text == "second"


@pytest.mark.parametrize("scene", ["subagent", "subagent_tools", "subagents_parallel", "unasked_turn"])
def test_a_sub_agents_doings_carry_the_call_that_started_it(scene: str) -> None:
    calls = {event.tool_use_id for event in only(ev.ToolStarted, scene) if event.name in ("Task", "Agent")}
    parents = {event.parent for event in only(ev.TextFinished, scene)} - {None}
    assert calls
    assert parents == calls
    assert {event.tool_use_id for event in only(ev.TaskStarted, scene)} == calls
    assert {event.tool_use_id for event in only(ev.TaskFinished, scene)} == calls
    assert all(event.status == "completed" for event in only(ev.TaskFinished, scene))


def test_a_sub_agents_progress_is_told() -> None:
    running = [event for event in only(ev.TaskUpdated, "subagent_tools") if event.status == "running"]
    assert [event.changes["tool"] for event in running] == ["Bash", "Read"]


def test_a_background_command_is_a_task_too() -> None:
    (task,) = only(ev.TaskStarted, "background_bash")
    (finished,) = only(ev.TaskFinished, "background_bash")
    assert (finished.task_id, finished.status) == (task.task_id, "completed")
    assert [len(event.tasks) for event in only(ev.BackgroundTasksChanged, "background_bash")] == [1, 0]


def test_tools_in_our_process_are_called_before_and_in_a_turn() -> None:
    calls = only(ev.McpCalled, "host_tools")
    assert {call.server for call in calls} == {"notebook"}
    assert [call.message["method"] for call in calls] == [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
    ]
    assert calls[-1].message["params"]["name"] == "run_python"
    finished = {event.tool_use_id: event for event in only(ev.ToolFinished, "host_tools")}
    (run,) = (event for event in only(ev.ToolStarted, "host_tools") if event.name == "mcp__notebook__run_python")
    assert finished[run.tool_use_id].text.startswith("42")
    assert [image.media_type for image in finished[run.tool_use_id].images] == ["image/png"]


def test_hooks_are_called_with_the_tool_call_they_are_about() -> None:
    calls = Counter(call.callback_id for call in only(ev.HookCalled, "hooks"))
    assert calls == {
        "on_UserPromptSubmit": 3,
        "on_PreToolUse": 3,
        "on_PostToolUse": 1,
        "on_PostToolUseFailure": 1,
        "on_Stop": 3,
    }
    tools = {event.tool_use_id for event in only(ev.ToolStarted, "hooks")}
    about = {call.tool_use_id for call in only(ev.HookCalled, "hooks") if "ToolUse" in call.callback_id}
    assert about == tools
    assert [event.refused for event in only(ev.ToolFinished, "hooks")] == [None, "permission-rule", None]


def test_requests_are_answered_or_refused_with_a_code() -> None:
    refused = [(event.subtype, event.error_code) for event in only(ev.RequestAnswered, "controls") if event.error]
    assert refused == [("set_permission_mode", "invalid_mode"), ("no_such_request", "unsupported_request")]
    (context,) = (event for event in only(ev.RequestAnswered, "controls") if event.subtype == "get_context_usage")
    assert context.response["categories"]


def test_files_are_rewound_once_there_is_a_checkpoint() -> None:
    dry, real, unknown = (event for event in only(ev.RequestAnswered, "rewind") if event.subtype == "rewind_files")
    assert dry.response["filesChanged"] == ["/home/me/project/r.txt"]
    assert real.response["canRewind"]
    assert unknown.error is not None
    assert unknown.error.startswith("No file checkpoint")


def test_slash_commands_compact_clear_and_print() -> None:
    (compacted,) = only(ev.ConversationCompacted, "slash")
    assert (compacted.trigger, bool(compacted.tokens_before)) == ("manual", True)
    assert [event.text.strip() for event in only(ev.LocalCommandPrinted, "slash")] == ["Compacted"]
    assert [turn.local_command for turn in only(ev.TurnEnded, "slash")] == ["", "compact", "clear", ""]
    assert len(only(ev.ConversationReset, "slash")) == 1
    sessions = [event.session_id for event in only(ev.SessionStarted, "slash")]
    assert len(set(sessions)) == 2
    assert list(session_ids("slash")) == sessions[-1:]


def test_a_structured_answer_comes_as_such() -> None:
    assert [turn.structured for turn in only(ev.TurnEnded, "structured")] == [{"n": 42}]


def test_an_image_that_a_tool_read_is_in_its_result() -> None:
    (finished,) = only(ev.ToolFinished, "read_image")
    assert [image.media_type for image in finished.images] == ["image/png"]


def test_a_result_too_big_is_kept_in_a_file() -> None:
    (finished,) = only(ev.ToolFinished, "big_result")
    assert finished.text.startswith("<persisted-output>")


def session_ids(scene: str) -> Iterator[str]:
    for replayed in replays_of(scene):
        yield replayed.connection.session_id


def test_resuming_keeps_the_session_and_forking_leaves_it() -> None:
    first, resumed, forked = session_ids("resume")
    assert first == resumed != forked
    first, back = session_ids("resume_at")
    assert first != back


def test_a_conversation_that_is_not_there_leaves_initialise_unanswered() -> None:
    assert [(event.subtype, event.error) for event in only(ev.RequestAnswered, "resume_unknown")] == [
        ("initialize", "Claude Code ended")
    ]


def test_rate_limits_say_when_they_end() -> None:
    limits = only(ev.RateLimited, "rate_limit")
    assert [(limit.status, limit.kind) for limit in limits] == [
        ("allowed_warning", "five_hour"),
        ("rejected", "five_hour"),
    ]
    assert all(limit.resets_at for limit in limits)


def test_whether_someone_is_logged_in_is_known_from_the_start() -> None:
    def logged_in(scene: str) -> Any:
        return only(ev.Initialised, scene)[0].logged_in

    assert (logged_in("text"), logged_in("not_logged_in"), logged_in("rate_limit")) == (True, False, True)
