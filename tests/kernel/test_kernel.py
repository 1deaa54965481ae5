"""The kernel by its messages: a plain client, the real CLI, the loopback API."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.kernels import SECONDS, Client, running_kernel, write_spec
from support.messages_api import MessagesApi
from support.talk import commands_under, is_gone, wait_until

pytestmark = pytest.mark.real_cli

DOT = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\rIDATx\xdac\xfc\xcf\xc0P\x0f\x00\x04\x85\x01\x80\x84\xa9\x8c!\x00\x00\x00\x00IEND\xaeB`\x82"
)


def call(tool: str, **given: Any) -> str:
    return f"tool:{tool}:{json.dumps(given)}"


def cli_of(kernel: Client) -> int:
    """The pid of the CLI that a kernel runs."""
    (cli,) = (
        int(child.pid)
        for child in psutil.Process(kernel.pid).children()
        if "--input-format" in " ".join(child.cmdline())
    )
    return cli


def test_a_cell_is_a_prompt_and_the_answer_comes_back_in_both_mimes(kernel: Client) -> None:
    ran = kernel.run("say:Hello **world**")
    assert ran.reply["status"] == "ok"
    assert ran.reply["execution_count"] == 1
    assert "<strong>world</strong>" in ran.html
    assert "Hello **world**" in ran.text
    assert "opus" in ran.text.splitlines()[-1]
    assert {mime for data in ran.outputs for mime in data} == {"text/html", "text/plain"}


def test_text_is_shown_before_the_turn_ends(kernel: Client) -> None:
    message_id = kernel.send("slow:6")
    first = last = 0.0
    for message in kernel.follow(message_id):
        if "tick 0" in str(message["content"]) and not first:
            first = time.monotonic()
        last = time.monotonic()
    assert first
    assert last - first > 0.5


def test_cells_share_one_conversation_and_one_process(kernel: Client, messages_api: MessagesApi) -> None:
    kernel.run("say:walnut")
    pid = cli_of(kernel)
    kernel.run("say:second")
    assert cli_of(kernel) == pid
    assert "walnut" in str(messages_api.last_request())


@pytest.mark.parametrize(
    "how", [{"silent": True}, {"store_history": False}, {"store_history": False, "silent": True}], ids=str
)
def test_hidden_requests_never_reach_the_model(kernel: Client, messages_api: MessagesApi, how: dict[str, Any]) -> None:
    ran = kernel.run("say:this must not be billed", **how)
    assert ran.reply["status"] == "ok"
    assert kernel.run("").reply["status"] == "ok"
    assert kernel.run("  \n ").reply["status"] == "ok"
    assert not messages_api.prompts()


def test_python_shell_and_magics_are_ipythons(kernel: Client, messages_api: MessagesApi) -> None:
    assert kernel.run("%%python\nx = 6 * 7\nprint('made')").stream.strip() == "made"
    assert kernel.run("%%python\nx").of("execute_result")[0]["data"]["text/plain"] == "42"
    assert kernel.run("!echo from the shell").stream.strip() == "from the shell"
    assert kernel.run("%who").stream.strip() == "x"
    failed = kernel.run("%%python\n1/0")
    assert failed.reply["ename"] == "ZeroDivisionError"
    assert failed.reply["execution_count"] == 5
    assert not messages_api.prompts()


def test_garbage_is_collected_once_the_kernel_has_started(kernel: Client) -> None:
    assert kernel.run("%%python\nimport gc\nprint(gc.isenabled(), gc.get_freeze_count() > 0)").stream == "True True\n"


def test_a_leading_backslash_sends_it_as_a_prompt(kernel: Client, messages_api: MessagesApi) -> None:
    kernel.run("\\%%python is what?")
    assert messages_api.prompts()[-1] == "%%python is what?"


def test_steering_lines_act_before_the_prompt_of_the_same_cell(kernel: Client, messages_api: MessagesApi) -> None:
    ran = kernel.run("%claude model haiku\n%claude mode acceptEdits\nsay:hello")
    assert "haiku" in ran.text
    assert "haiku" in messages_api.last_request()["model"]
    assert "acceptEdits" in kernel.run("%claude status").text
    bad = kernel.run("%claude mode yolo\nsay:never sent")
    assert bad.reply["status"] == "error"
    assert "acceptEdits" in bad.text
    assert "never sent" not in str(messages_api.prompts())


def test_slash_commands_and_files_go_to_the_cli(kernel: Client, project: Path, messages_api: MessagesApi) -> None:
    (project / "notes.txt").write_text("the secret word is walnut")
    kernel.run("read @notes.txt please")
    assert "the secret word is walnut" in str(messages_api.requests)
    assert "Context Usage" in kernel.run("/context").text
    assert "summarised" in kernel.run("/compact").text


def test_images_reach_the_model_by_mention_and_by_steering(
    kernel: Client, project: Path, messages_api: MessagesApi
) -> None:
    (project / "figure.png").write_bytes(DOT)
    kernel.run("what is on @figure.png?")
    assert '"type": "image"' in json.dumps(messages_api.last_request())
    messages_api.clear()
    kernel.run("%claude new")
    kernel.run("%claude image figure.png\nwhat is this?")
    assert '"type": "image"' in json.dumps(messages_api.last_request())
    assert kernel.run("%claude image nowhere.png").reply["status"] == "error"


def test_the_stop_button_ends_the_cell_within_a_second_and_the_process_goes_on(kernel: Client) -> None:
    message_id = kernel.send("slow:200")
    pid = 0
    stopped = 0.0
    outputs = []
    for message in kernel.follow(message_id):
        outputs.append(message)
        if "tick 1" in str(message["content"]) and not stopped:
            pid = cli_of(kernel)
            kernel.interrupt()
            stopped = time.monotonic()
    assert time.monotonic() - stopped < 1
    assert "Interrupted" in str(outputs)
    assert "tick 0" in str(outputs[-8:])
    reply = kernel.kernel.get_shell_msg(timeout=SECONDS)["content"]
    while reply.get("status") != "error":
        reply = kernel.kernel.get_shell_msg(timeout=SECONDS)["content"]
    assert reply["ename"] == "KeyboardInterrupt"
    assert "still here" in kernel.run("say:still here").text
    assert cli_of(kernel) == pid


def test_a_sigint_does_the_same(kernel: Client) -> None:
    message_id = kernel.send("slow:200")
    sent = False
    for message in kernel.follow(message_id):
        if "tick 0" in str(message["content"]) and not sent:
            os.kill(kernel.pid, signal.SIGINT)
            sent = True
    assert sent
    assert "on" in kernel.run("say:on").text


def test_python_code_is_interrupted_as_ever(kernel: Client) -> None:
    message_id = kernel.send("%%python\nprint('go', flush=True)\nimport time\ntime.sleep(60)")
    began = time.monotonic()
    for message in kernel.follow(message_id):
        if message["msg_type"] == "stream":
            kernel.interrupt()
    assert time.monotonic() - began < 20
    assert "fine" in kernel.run("say:fine").text


def test_a_failed_turn_aborts_the_cells_behind_it(kernel: Client, messages_api: MessagesApi) -> None:
    kernel.run("say:warm")
    failing = kernel.send("fail:400")
    behind = kernel.send("say:must not run")
    assert kernel.wait(failing).reply["status"] == "error"
    assert kernel.wait(behind).reply["status"] == "aborted"
    assert "must not run" not in str(messages_api.prompts())
    assert "recovered" in kernel.run("say:recovered").text


def test_expressions_counts_and_history(kernel: Client) -> None:
    kernel.run("%%python\nn = 20")
    ran = kernel.run("say:hello", user_expressions={"n": "n + 1"})
    assert ran.reply["user_expressions"]["n"]["data"]["text/plain"] == "21"
    assert ran.reply["execution_count"] == 2
    kernel.kernel.history(hist_access_type="tail", n=5)
    reply = kernel.kernel.get_shell_msg(timeout=SECONDS)["content"]
    while "history" not in reply:
        reply = kernel.kernel.get_shell_msg(timeout=SECONDS)["content"]
    assert [entry[2] for entry in reply["history"]][-1] == "say:hello"


def test_completion_and_inspection(kernel: Client, project: Path) -> None:
    kernel.run("say:warm")
    (project / "data.csv").write_text("a,b\n1,2\n")

    def ask(verb: str, *arguments: Any) -> dict[str, Any]:
        message_id = getattr(kernel.kernel, verb)(*arguments)
        while True:
            reply = kernel.kernel.get_shell_msg(timeout=SECONDS)
            if reply["parent_header"]["msg_id"] == message_id:
                content: dict[str, Any] = reply["content"]
                return content

    assert "/compact" in ask("complete", "/com", 4)["matches"]
    assert ask("complete", "look at @da", 11)["matches"] == ["data.csv"]
    assert "status" in ask("complete", "%claude st", 10)["matches"]
    assert "acceptEdits" in ask("complete", "%claude mode ac", 15)["matches"]
    python = ask("complete", "%%python\nimport json; json.du", 29)
    assert any("dumps" in match for match in python["matches"])
    assert python["cursor_end"] == 29
    assert "1,2" in ask("inspect", "look at @data.csv", 12)["data"]["text/plain"]
    assert ask("inspect", "/compact", 3)["found"]
    assert not ask("inspect", "plain words", 3)["found"]
    assert ask("is_complete", "```\nopen")["status"] == "incomplete"
    assert ask("is_complete", "a prompt")["status"] == "complete"


def test_the_cli_is_started_before_the_first_prompt(kernel: Client) -> None:
    assert wait_until(
        lambda: any("--input-format" in " ".join(p.cmdline()) for p in psutil.Process(kernel.pid).children())
    )


def test_restart_and_shutdown_leave_no_process(kernel: Client) -> None:
    kernel.run("say:hello")
    first = cli_of(kernel)
    kernel.manager.restart_kernel(now=False)
    kernel.kernel.wait_for_ready(timeout=SECONDS)
    assert wait_until(lambda: is_gone(first))
    kernel.run("%claude mode acceptEdits")
    message_id = kernel.send(call("Bash", command="mkdir -p x; sleep 87"), allow_stdin=False)
    second = cli_of(kernel)
    assert message_id
    wait_until(lambda: bool(commands_under(second, "sleep 87")), seconds=5)
    left = [second, *commands_under(second, "sleep 87")]
    kernel.manager.shutdown_kernel(now=False)
    assert wait_until(lambda: all(map(is_gone, left)), seconds=6)


@pytest.mark.parametrize("when", ["idle", "in a turn"])
def test_a_kernel_killed_with_9_leaves_no_process(kernel: Client, when: str) -> None:
    kernel.run("say:hello")
    cli = cli_of(kernel)
    if when == "in a turn":
        message_id = kernel.send("slow:200")
        for message in kernel.follow(message_id):
            if "tick 0" in str(message["content"]):
                break
    os.kill(kernel.pid, signal.SIGKILL)
    assert wait_until(lambda: is_gone(cli), seconds=5)


def test_a_background_agent_comes_home_to_its_own_cell_and_is_told_in_the_next(kernel: Client) -> None:
    errand = {"description": "errand", "prompt": "slow:4", "subagent_type": "general-purpose"}
    first = kernel.run(f'steps:[[["Task", {json.dumps(errand)}]], "sent"]')
    assert "Working in the background" in first.html
    card = next(
        message["content"]["transient"]["display_id"]
        for message in first.messages
        if "errand" in str(message["content"].get("data", "")) and "transient" in message["content"]
    )
    home = None
    deadline = time.monotonic() + SECONDS
    while home is None and time.monotonic() < deadline:
        message = kernel.kernel.get_iopub_msg(timeout=SECONDS)
        update = message["msg_type"] == "update_display_data"
        if update and message["content"]["transient"]["display_id"] == card:
            html = message["content"]["data"]["text/html"]
            home = None if "Working in the background" in html else html
    assert home is not None
    assert "✓" in home
    second = kernel.run("say:and now")
    assert "errand" in second.text
    assert "and now" in second.text


def test_without_a_cell_id_and_with_stdin_it_is_plain_text(kernel: Client) -> None:
    """As `jupyter console` asks: it ignores updates of what it has shown."""
    ran = kernel.run("say:Hello **world**", cell_id=None, allow_stdin=True)
    assert not ran.outputs
    assert ran.stream.startswith("Hello **world**")
    assert ran.stream.count("Hello") == 1
    assert "<" not in ran.stream


def test_a_batch_client_gets_rich_outputs_and_errors_it_understands(kernel: Client) -> None:
    ran = kernel.run("say:Hello **world**", cell_id=None)
    assert "<strong>world</strong>" in ran.html
    failed = kernel.run("fail:400", cell_id=None)
    assert failed.reply["status"] == "error"
    assert failed.of("error")[0]["ename"] == failed.reply["ename"]


def test_a_missing_cli_is_one_message_with_the_remedy_and_the_kernel_lives(
    cli_env: dict[str, str], project: Path, tmp_path: Path
) -> None:
    nowhere = cli_env | {"CLAUDE_CODE_PATH": str(tmp_path / "nowhere")}
    with running_kernel(write_spec(tmp_path / "jupyter"), nowhere, project) as kernel:
        ran = kernel.run("say:hello", seconds=5)
        assert ran.reply["ename"] == "CliNotFound"
        assert "CLAUDE_CODE_PATH" in ran.text
        assert kernel.run("%%python\n1 + 1").of("execute_result")


def test_not_logged_in_says_what_to_do(kernel_env: dict[str, str], project: Path, tmp_path: Path) -> None:
    with running_kernel(write_spec(tmp_path / "jupyter"), kernel_env | {"ANTHROPIC_API_KEY": ""}, project) as kernel:
        ran = kernel.run("say:hello", seconds=10)
        assert ran.reply["ename"] == "NotLoggedIn"
        assert "/login" in ran.text


def test_a_folder_that_brings_hooks_is_not_trusted_by_itself(
    kernel_env: dict[str, str], project: Path, tmp_path: Path
) -> None:
    marker = tmp_path / "hooked"
    (project / ".claude").mkdir()
    hook = {"hooks": [{"type": "command", "command": f"touch {marker}"}]}
    settings = {"hooks": {"SessionStart": [hook], "UserPromptSubmit": [hook]}}
    (project / ".claude" / "settings.json").write_text(json.dumps(settings))
    with running_kernel(write_spec(tmp_path / "jupyter"), kernel_env, project) as kernel:
        ran = kernel.run("say:hello")
        assert "not trusted" in ran.text
        assert "not trusted" not in kernel.run("say:again").text
    assert not marker.exists()


def test_without_a_network_it_says_so_within_seconds_and_can_be_stopped(
    kernel_env: dict[str, str], project: Path, tmp_path: Path
) -> None:
    """The CLI itself would try for three minutes."""
    nowhere = kernel_env | {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    with running_kernel(write_spec(tmp_path / "jupyter"), nowhere, project) as kernel:
        message_id = kernel.send("say:hello")
        began = told = 0.0
        for message in kernel.follow(message_id):
            began = began or time.monotonic()
            if "cannot be reached" in str(message["content"]) and not told:
                told = time.monotonic()
                kernel.interrupt()
        assert told
        assert told - began < 10
        assert kernel.run("%%python\n1 + 1").of("execute_result")
