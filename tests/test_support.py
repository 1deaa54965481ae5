"""The stand-in for the Messages API, by itself and with the real CLI in front of it."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.messages_api import MessagesApi
from support.model_script import Json, big_text, find_prompt, text_block, tool_block
from support.real_cli import cli_environment, cli_path

BASH = {"name": "Bash", "input_schema": {"type": "object"}}


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    with MessagesApi() as running:
        yield running


def user(*content: str | Json) -> Json:
    return {"role": "user", "content": [text_block(c) if isinstance(c, str) else c for c in content]}


def result_of(call: str, content: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call, "content": content}


def request_with(*messages: Json, **fields: Any) -> Json:
    return {"model": "m", "max_tokens": 9, "tools": [BASH], "messages": list(messages), **fields}


def connect(api: MessagesApi) -> http.client.HTTPConnection:
    host, port = api.url.removeprefix("http://").split(":")
    return http.client.HTTPConnection(host, int(port), timeout=10)


def post(api: MessagesApi, body: Json, path: str = "/v1/messages") -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = connect(api)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def ask(api: MessagesApi, *messages: Json, **fields: Any) -> list[Json]:
    status, _, body = post(api, request_with(*messages, **fields))
    assert status == 200
    content: list[Json] = json.loads(body)["content"]
    return content


def events_of(body: bytes) -> list[Json]:
    return [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]


def stream(api: MessagesApi, prompt: str) -> list[Json]:
    return events_of(post(api, request_with(user(prompt), stream=True))[2])


def deltas(events: list[Json], key: str) -> list[str]:
    return [e["delta"][key] for e in events if e["type"] == "content_block_delta" and key in e["delta"]]


def test_text_is_streamed_in_several_pieces_that_join_to_the_whole(api: MessagesApi) -> None:
    events = stream(api, "say:Hello **world**, this is\na streamed answer.")
    pieces = deltas(events, "text")
    assert len(pieces) > 2
    assert "".join(pieces) == "Hello **world**, this is\na streamed answer."
    assert [events[0]["type"], events[-1]["type"]] == ["message_start", "message_stop"]


def test_a_thought_carries_its_signature_and_comes_before_the_text(api: MessagesApi) -> None:
    events = stream(api, "think:deep")
    assert "".join(deltas(events, "thinking")).endswith("deep")
    assert len(deltas(events, "signature")) == 1
    assert deltas(events, "text") == ["deep"]


def test_a_tool_call_streams_its_input_and_reports_the_result(api: MessagesApi) -> None:
    prompt = 'tool:Bash:{"command": "echo a, b and c"}'
    events = stream(api, prompt)
    assert json.loads("".join(deltas(events, "partial_json"))) == {"command": "echo a, b and c"}
    answered = ask(api, user(prompt), {"role": "assistant", "content": []}, user(result_of("t", "a, b and c")))
    assert answered == [text_block("done: a, b and c")]


def test_steps_take_one_round_for_each_result_and_then_the_last_word(api: MessagesApi) -> None:
    prompt = user('steps:[[["Bash",{"n":1}]],["next",["Bash",{"n":2}],["Bash",{"n":3}]],"fin"]')
    back = user(result_of("t", "ok"))
    rounds = [ask(api, prompt, *[back] * n) for n in range(3)]
    assert [[b.get("input", b.get("text")) for b in blocks] for blocks in rounds] == [
        ["I will use Bash.", {"n": 1}],
        ["next", {"n": 2}, {"n": 3}],
        ["fin"],
    ]


def test_a_loop_never_ends(api: MessagesApi) -> None:
    back = user(result_of("t", "ok"))
    assert ask(api, user('loop:[["Bash",{}]]'), *[back] * 7)[-1]["name"] == "Bash"


@pytest.mark.parametrize(
    "content",
    [
        ["<system-reminder>\nsay:no\n</system-reminder>", "say:yes"],
        ["<system-reminder>\nmind this\n</system-reminder>\n\nsay:yes"],
        ["Cell 3 of notes.ipynb\nsay:yes"],
        [{"type": "image", "source": {}}, "say:yes", "[Image: source: /tmp/1.png]"],
        ["say:no", "[Request interrupted by user]", "say:yes"],
        [result_of("t", "say:no"), "[Request interrupted by user for tool use]", "say:yes"],
        ["say:yes", "The notebook has four cells."],
    ],
)
def test_the_script_word_is_found_whatever_the_cli_wraps_around_it(api: MessagesApi, content: list[Any]) -> None:
    earlier = [user("say:earlier"), {"role": "assistant", "content": "earlier"}]
    assert ask(api, *earlier, user(*content)) == [text_block("yes")]


def test_plain_text_is_said_back_also_when_an_earlier_prompt_was_a_script(api: MessagesApi) -> None:
    assert ask(api, user("say:earlier"), user("hello\nthere")) == [text_block("You said: hello\nthere")]


def test_requests_without_tools_get_neither_calls_nor_errors_nor_delays(api: MessagesApi) -> None:
    for prompt in ('tool:Bash:{"command": "x"}', "fail:500", "slow:60", "hang:"):
        assert ask(api, user(prompt), tools=[]) == [text_block(f"You said: {prompt}")]


NOTIFICATION = """<system-reminder>
<task-notification>
<summary>Agent done</summary>
<result>
say:quoted</result>
</task-notification>
</system-reminder>"""


def test_a_task_notification_is_noted_and_does_not_repeat_the_prompt_before_it(api: MessagesApi) -> None:
    assert ask(api, user("say:earlier"), user(NOTIFICATION)) == [text_block("Noted: Agent done")]


def test_a_task_notification_beside_a_result_or_a_prompt_does_not_take_the_turn_over(api: MessagesApi) -> None:
    steps = user('steps:[[["Bash",{}]],"fin"]')
    assert ask(api, steps, user(result_of("t", "ok"), NOTIFICATION)) == [text_block("fin")]
    assert ask(api, user("say:earlier"), user(NOTIFICATION, "hello")) == [text_block("You said: hello")]


def test_failures_keep_their_status_and_ask_for_no_retry(api: MessagesApi) -> None:
    status, headers, body = post(api, request_with(user("fail:529")))
    assert (status, headers["x-should-retry"]) == (529, "false")
    assert json.loads(body)["error"]["type"] == "overloaded_error"


def test_big_answers_have_the_asked_length_and_small_deltas(api: MessagesApi) -> None:
    pieces = deltas(stream(api, "big:100000"), "text")
    assert "".join(pieces) == big_text(100_000)
    assert len(pieces) == 4000


def test_token_counts_heads_gets_and_unknown_posts_get_harmless_answers(api: MessagesApi) -> None:
    assert json.loads(post(api, {}, "/v1/messages/count_tokens?beta=true")[2]) == {"input_tokens": 42}
    assert post(api, {}, "/api/event_logging/batch")[0] == 200
    connection = connect(api)
    for method in ("HEAD", "GET"):
        connection.request(method, "/")
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"" if method == "HEAD" else b"{}")
    connection.close()
    assert api.requests == []


def test_every_request_is_recorded_with_what_reached_the_model(api: MessagesApi) -> None:
    image: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    ask(api, user(image, "say:seen"))
    ask(api, user("a title, please"), tools=[])
    assert api.prompts() == ["say:seen"]
    assert api.last_request()["messages"][0]["content"][0] == image
    assert len(api.requests) == 2
    api.clear()
    assert api.requests == []


def test_a_test_can_answer_in_its_own_words(api: MessagesApi) -> None:
    api.script(lambda request: [tool_block("Bash", {})] if "own" in find_prompt(request).text else None)
    assert ask(api, user("own words"))[0]["name"] == "Bash"
    assert ask(api, user("say:scripted"))[0]["text"] == "scripted"


def test_one_waits_for_a_request_instead_of_sleeping(api: MessagesApi) -> None:
    asker = threading.Thread(target=ask, args=(api, user("say:later")))
    asker.start()
    assert find_prompt(api.wait_for_request(lambda request: request["model"] == "m")).text == "say:later"
    asker.join()
    with pytest.raises(TimeoutError, match="no such request"):
        api.wait_for_request(lambda _: False, 0.01)


@pytest.mark.parametrize("prompt", ["slow:600", "hang:"])
def test_closing_ends_slow_and_silent_answers_at_once(prompt: str) -> None:
    with MessagesApi() as api:
        connection = connect(api)
        connection.request("POST", "/v1/messages", json.dumps(request_with(user(prompt), stream=True)))
        api.wait_for_request(lambda _: True)
        began = time.monotonic()
    assert time.monotonic() - began < 1.0
    connection.close()


def test_a_slow_answer_ends_when_the_client_hangs_up(api: MessagesApi) -> None:
    connection = connect(api)
    connection.request("POST", "/v1/messages", json.dumps(request_with(user("slow:600"), stream=True)))
    assert connection.getresponse().read(1)
    assert isinstance(connection.sock, socket.socket)
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    assert api.wait_until_idle(2.0)


def test_a_fault_of_the_stand_in_is_raised_where_the_test_can_see_it() -> None:
    with pytest.raises(json.JSONDecodeError), MessagesApi() as api, pytest.raises(http.client.RemoteDisconnected):
        ask(api, user("tool:Bash:{not json"))


def test_the_clis_environment_inherits_nothing_that_could_leave_the_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDECODE", "HTTPS_PROXY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_ENTRYPOINT"):
        monkeypatch.setenv(name, "theirs")
    environment = cli_environment(tmp_path / "home", "http://127.0.0.1:1")
    assert "theirs" not in environment.values()
    assert environment["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert Path(environment["CLAUDE_CONFIG_DIR"]).is_relative_to(tmp_path)


def test_the_transcripts_are_whole_rows_and_name_nobodys_machine() -> None:
    files = sorted((Path(__file__).parent / "transcripts").glob("*.jsonl"))
    assert files, "scripts/record writes them"
    for file in files:
        text = file.read_text(encoding="utf-8")
        rows = [json.loads(line) for line in text.splitlines()]
        assert {row["dir"] for row in rows} <= set("<>!="), file.name
        assert "argv" in rows[0]["m"], file.name
        assert "exit" in rows[-1]["m"], file.name
        assert "/root" not in text, file.name
        assert "/tmp/" not in text.replace("/home/me/tmp/", ""), file.name
    assert sum(file.stat().st_size for file in files) < 1_500_000


@pytest.mark.real_cli
def test_the_real_cli_runs_a_real_tool_for_the_stand_in(
    cli_env: dict[str, str], project: Path, messages_api: MessagesApi
) -> None:
    prompt = 'tool:Bash:{"command": "echo $((6*7))"}'
    command = [str(cli_path()), "-p", "--output-format=json", "--allowedTools=Bash", prompt]
    run = subprocess.run(
        [*command, "--allowedTools=Bash"],
        env=cli_env,
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr.decode()
    assert json.loads(run.stdout)["result"] == "done: 42"
    assert len(messages_api.prompts()) == 2
