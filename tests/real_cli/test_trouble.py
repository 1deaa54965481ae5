"""Trouble made on purpose, with the real CLI: each has its name within seconds, and once it is gone the same session
answers the next prompt.

The CLI would retry most of these ten times, for three minutes; `CLAUDE_CODE_MAX_RETRIES=0` makes each failure the first
and last. What it says is the same (probed with 0, 1, 3 and 10).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, Self

import msgspec
import pytest
from support.model_script import Json, choose_answer, stream_events
from support.real_cli import cli_environment, cli_path
from support.talk import ended, marked_processes, run, text, turn, wait_until

from claude_kernel.cli import Options
from claude_kernel.errors import ClaudeKernelError
from claude_kernel.protocol import events
from claude_kernel.session import Session, Timing
from claude_kernel.trouble import Trouble, find_trouble, trouble_of

pytestmark = pytest.mark.real_cli

WITHIN_SECONDS = 15
"""Generous, for a loaded machine: alone, each takes one to two, most of it the CLI's start."""


class Failure(NamedTuple):
    status: int = 200
    kind: str = ""
    message: str = ""
    page: str = ""
    stop_reason: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    hangs: bool = False


class FailingApi(ThreadingHTTPServer):
    """A Messages API that fails as `failure` says, and where it says nothing answers as the script does.

    It is bound from the beginning but refuses connections until `listen`.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Exchange, bind_and_activate=False)
        self.failure: Callable[[Json], Failure | None] = lambda _request: None
        self.requests: list[Json] = []
        self.server_bind()
        self._thread = Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fail(self, failure: Failure | None) -> None:
        self.failure = lambda _request: failure

    def listen(self) -> Self:
        self.server_activate()
        self._thread.start()
        return self

    def close(self) -> None:
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what several scenes are about."""


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FailingApi

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Nothing: a test's stderr belongs to the test."""

    def do_HEAD(self) -> None:
        self._send(200, "application/json", "{}")

    def do_GET(self) -> None:
        self._send(200, "application/json", "{}")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.partition("?")[0] != "/v1/messages":
            self._send(200, "application/json", '{"input_tokens": 42}')
            return
        request: Json = json.loads(body)
        self.server.requests.append(request)
        failure = self.server.failure(request) or Failure()
        if failure.hangs:
            self.connection.recv(1)  # until the client hangs up
            self.close_connection = True
        elif failure.page:
            self._send(failure.status, "text/html", failure.page)
        elif failure.status != 200:
            error = {"type": failure.kind, "message": failure.message}
            self._send(failure.status, "application/json", json.dumps({"type": "error", "error": error}), failure)
        else:
            self._stream(request, failure)

    def _stream(self, request: Json, failure: Failure) -> None:
        rows = list(stream_events(request, choose_answer(request)))
        for row in rows:
            if row["type"] == "message_delta" and failure.stop_reason:
                row["delta"]["stop_reason"] = failure.stop_reason
        self._send(
            200, "text/event-stream", "".join(f"event: {row['type']}\ndata: {json.dumps(row)}\n\n" for row in rows)
        )

    def _send(self, status: int, media: str, body: str, failure: Failure | None = None) -> None:
        encoded = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(encoded)))
        for name, value in failure.headers if failure else ():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(encoded)


@pytest.fixture
def silent_api() -> Iterator[FailingApi]:
    api = FailingApi()
    yield api
    api.close()


@pytest.fixture
def api(silent_api: FailingApi) -> FailingApi:
    return silent_api.listen()


@pytest.fixture
def options(cli_home: Path, project: Path, silent_api: FailingApi) -> Iterator[Options]:
    environment = cli_environment(cli_home, silent_api.url) | {"CLAUDE_CODE_MAX_RETRIES": "0"}
    yield Options(cli=str(cli_path()), cwd=str(project), environment=environment, inherit_environment=False)
    assert wait_until(lambda: not marked_processes()), f"left behind: {marked_processes()}"


def changed(options: Options, **fields: Any) -> Options:
    return msgspec.structs.replace(options, **fields)


def with_environment(options: Options, **variables: str) -> Options:
    return changed(options, environment=options.environment | variables)


async def fail(session: Session, prompt: str = "say:hello") -> Trouble:
    """The trouble that a prompt ends in, as the kernel would learn of it."""
    began = time.monotonic()
    trouble: Trouble | None
    try:
        trouble = find_trouble(ended(await turn(session, prompt)))
    except ClaudeKernelError as error:
        trouble = trouble_of(error)
    assert time.monotonic() - began < WITHIN_SECONDS
    assert trouble is not None
    return trouble


async def answers(session: Session) -> bool:
    return text(await turn(session, "say:nothing was lost")) == "nothing was lost"


def fails_then_answers(options: Options, kind: str, mend: Callable[[], object]) -> Trouble:
    async def scene() -> Trouble:
        async with Session(options) as session:
            trouble = await fail(session)
            assert trouble.kind == kind, trouble
            mend()
            assert await answers(session)
            return trouble

    return run(scene(), 60)


# --- the API says no ------------------------------------------------------------------------------------------------

LOW = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
TOO_LONG = "prompt is too long: 210000 tokens > 200000 maximum"
PAGE = "<html><body>Welcome to the hotel. Room number?</body></html>"

FAILURES = [
    (Failure(401, "authentication_error", "invalid x-api-key"), "LoginRefused"),
    (Failure(403, "permission_error", "Your API key may not use this."), "LoginRefused"),
    (Failure(402, "billing_error", "Your credit balance is too low"), "Billing"),
    (Failure(400, "invalid_request_error", LOW), "Billing"),
    (Failure(404, "not_found_error", "model: claude-opus-5-5"), "BadModel"),
    (Failure(429, "rate_limit_error", "Too many requests", headers=(("retry-after", "1"),)), "RateLimited"),
    (Failure(429, "rate_limit_error", "Too many requests", headers=(("retry-after", "3600"),)), "RateLimited"),
    (Failure(529, "overloaded_error", "Overloaded"), "Overloaded"),
    (Failure(500, "api_error", "Internal server error"), "ServerError"),
    (Failure(503, page=PAGE), "ServerError"),
    (Failure(200, page=PAGE), "NoConnection"),  # scene "a captive portal"
    (Failure(400, "invalid_request_error", TOO_LONG), "PromptTooLong"),  # scene "too long"
    (Failure(413, "request_too_large", "Request exceeds the maximum size"), "RequestTooLarge"),
    (Failure(400, "invalid_request_error", "messages.0: odd"), "ApiError"),
    (Failure(stop_reason="refusal"), "Safeguards"),  # scene "a refusal"
    (Failure(stop_reason="max_tokens"), "AnswerTooLong"),
]


@pytest.mark.parametrize(("failure", "kind"), FAILURES, ids=[f"{f.status or f.stop_reason}-{k}" for f, k in FAILURES])
def test_an_api_failure_has_its_name_and_the_same_process_answers_once_it_is_over(
    options: Options, api: FailingApi, failure: Failure, kind: str
) -> None:
    api.fail(failure)
    trouble = fails_then_answers(options, kind, lambda: api.fail(None))
    assert trouble.details


def test_a_failure_after_a_tool_ran_does_not_advise_to_begin_again(options: Options, api: FailingApi) -> None:
    rounds = iter([None, Failure(500, "api_error", "boom")])
    api.failure = lambda request: next(rounds) if request.get("tools") else None

    async def scene() -> None:
        async with Session(options) as session:
            trouble = await fail(session, 'tool:Bash:{"command": "echo walnut"}')
            assert trouble.kind == "ServerError"
            assert "run this cell again" not in trouble.remedy
            api.fail(None)
            assert await answers(session)
            assert "walnut" in str(api.requests[-1]["messages"])

    run(scene(), 60)


def test_the_prompt_that_failed_stays_in_the_conversation(options: Options, api: FailingApi) -> None:
    api.fail(Failure(500, "api_error", "boom"))
    fails_then_answers(options, "ServerError", lambda: api.fail(None))
    assert "say:hello" in str(api.requests[-1]["messages"])


def test_another_model_mends_a_bad_one(options: Options, api: FailingApi) -> None:
    missing = Failure(404, "not_found_error", "model: no-such-model")
    api.failure = lambda request: missing if request["model"] == "no-such-model" else None

    async def scene() -> None:
        async with Session(changed(options, model="no-such-model")) as session:
            trouble = await fail(session)
            assert trouble.kind == "BadModel"
            assert "no-such-model" in trouble.details
            await session.set_model("sonnet")
            assert await answers(session)

    run(scene(), 60)


@pytest.mark.parametrize(("limit", "kind"), [({"max_turns": 1}, "MaxTurns"), ({"max_budget_usd": 0.0001}, "MaxBudget")])
def test_a_limit_has_its_name(options: Options, api: FailingApi, limit: dict[str, Any], kind: str) -> None:
    async def scene() -> None:
        async with Session(changed(options, **limit)) as session:
            assert (await fail(session, 'loop:[["Bash", {"command": "echo again"}]]')).kind == kind
            assert await answers(session)

    assert api.url
    run(scene(), 60)


# --- logging in -----------------------------------------------------------------------------------------------------


def test_a_login_made_elsewhere_is_seen_by_the_running_cli(options: Options, api: FailingApi, cli_home: Path) -> None:
    login = {
        "accessToken": "sk-ant-oat01-stand-in",
        "refreshToken": "sk-ant-ort01-stand-in",
        "expiresAt": int(time.time() * 1000) + 86_400_000,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    }

    def log_in() -> None:
        (cli_home / ".claude" / ".credentials.json").write_text(json.dumps({"claudeAiOauth": login}))

    assert api.url
    fails_then_answers(with_environment(options, ANTHROPIC_API_KEY=""), "NotLoggedIn", log_in)


# --- no network -----------------------------------------------------------------------------------------------------


def test_a_refused_connection_is_no_connection_until_there_is_one(options: Options, silent_api: FailingApi) -> None:
    fails_then_answers(options, "NoConnection", silent_api.listen)


def test_a_host_that_never_answers_is_no_connection(options: Options, api: FailingApi) -> None:
    api.fail(Failure(hangs=True))
    fails_then_answers(with_environment(options, API_TIMEOUT_MS="1000"), "NoConnection", lambda: api.fail(None))


@pytest.mark.parametrize(
    "variables",
    [
        {"ANTHROPIC_BASE_URL": "https://no-such-host.invalid"},
        {"HTTP_PROXY": "http://127.0.0.1:9"},
        {"ANTHROPIC_BASE_URL": "https://no-such-host.invalid", "HTTPS_PROXY": "http://127.0.0.1:9"},
    ],
    ids=["no such host", "no such proxy", "no such proxy for https"],
)
def test_a_wrong_host_or_proxy_is_no_connection(
    options: Options, silent_api: FailingApi, variables: dict[str, str]
) -> None:
    async def scene() -> None:
        async with Session(with_environment(options, **variables)) as session:
            assert (await fail(session)).kind == "NoConnection"

    assert silent_api.url
    run(scene(), 60)


def test_speaking_tls_to_what_is_not_is_no_connection(options: Options, api: FailingApi) -> None:
    async def scene() -> None:
        url = api.url.replace("http:", "https:")
        async with Session(with_environment(options, ANTHROPIC_BASE_URL=url)) as session:
            assert (await fail(session)).kind == "NoConnection"

    run(scene(), 60)


# --- this machine ---------------------------------------------------------------------------------------------------


def replace_by_the_real_one(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(cli_path())


@pytest.fixture
def fake(cli_home: Path) -> Path:
    return cli_home / "bin-claude"


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("#!/bin/sh\necho \"error: unknown option '--include-partial-messages'\" >&2\nexit 1\n", "CliTooOld"),
        ("#!/bin/sh\nexec /usr/bin/env no-such-node\n", "CliNotStarted"),
        ("#!/no/such/interpreter\n", "CliNotStarted"),
        ("\x7fELF is not enough", "CliNotStarted"),
        ("#!/bin/sh\nexit 0\n", "CliDied"),
        ("#!/bin/sh\nexec sleep 60\n", "CliSilent"),
    ],
    ids=["an old CLI", "no node", "no interpreter", "no program", "no reason", "silence"],
)
def test_a_cli_that_does_not_start_has_its_name_until_it_is_replaced(
    options: Options, api: FailingApi, fake: Path, script: str, kind: str
) -> None:
    fake.write_text(script)
    fake.chmod(0o755)

    async def scene() -> None:
        async with Session(changed(options, cli=str(fake)), timing=Timing(start_seconds=5)) as session:
            assert (await fail(session)).kind == kind
            replace_by_the_real_one(fake)
            assert await answers(session)

    assert api.url
    run(scene(), 60)


@pytest.mark.parametrize("written", [False, True], ids=["absent", "not executable"])
def test_a_cli_that_is_not_there_is_found_once_it_is(
    options: Options, api: FailingApi, fake: Path, written: bool
) -> None:
    if written:
        fake.write_text("#!/bin/sh\n")
        fake.chmod(0o644)
    assert api.url
    fails_then_answers(changed(options, cli=str(fake)), "CliNotFound", lambda: replace_by_the_real_one(fake))


def test_a_missing_folder_is_used_once_it_is_there(options: Options, api: FailingApi, project: Path) -> None:
    folder = project / "to be made"
    assert api.url
    fails_then_answers(changed(options, cwd=str(folder)), "FolderTrouble", folder.mkdir)


def test_no_room_for_its_temporary_files_is_trouble_with_a_folder(
    options: Options, api: FailingApi, cli_home: Path
) -> None:
    in_the_way = cli_home / "in the way"
    in_the_way.write_text("")

    def make_room() -> None:
        in_the_way.unlink()
        in_the_way.mkdir()

    assert api.url
    no_room = with_environment(options, CLAUDE_CODE_TMPDIR=str(in_the_way))
    trouble = fails_then_answers(no_room, "FolderTrouble", make_room)
    assert str(in_the_way) in trouble.details


def test_settings_that_are_not_json_are_named(options: Options, api: FailingApi, cli_home: Path) -> None:
    settings = cli_home / ".claude" / ".claude.json"
    settings.write_text("{ not json")
    assert api.url
    trouble = fails_then_answers(options, "ConfigBroken", settings.unlink)
    assert str(settings) in trouble.details


def test_an_unknown_conversation_is_named(options: Options, api: FailingApi) -> None:
    async def scene() -> None:
        async with Session(changed(options, resume="00000000-0000-0000-0000-000000000000")) as session:
            assert (await fail(session)).kind == "ConversationNotFound"

    assert api.url
    run(scene(), 60)


def test_a_cli_killed_in_a_turn_is_named_and_the_next_one_answers(options: Options, api: FailingApi) -> None:
    async def scene() -> None:
        async with Session(options) as session:
            api.fail(Failure(hangs=True))
            async for event in session.turn("say:hello"):
                if isinstance(event, events.SessionStarted):
                    assert session.pid is not None
                    os.kill(session.pid, signal.SIGKILL)
            assert isinstance(event, events.TurnEnded)
            trouble = find_trouble(event)
            assert trouble is not None
            assert trouble.kind == "CliDied"
            assert "killed" in trouble.title
            api.fail(None)
            assert await answers(session)

    run(scene(), 60)


def test_stopping_a_hopeless_turn_is_no_trouble(options: Options, api: FailingApi) -> None:
    api.fail(Failure(hangs=True))

    async def scene() -> None:
        async with Session(options) as session:
            async for event in session.turn("say:hello"):
                if isinstance(event, events.SessionStarted):
                    stopping = asyncio.ensure_future(session.interrupt())
            assert isinstance(event, events.TurnEnded)
            await stopping
            assert find_trouble(event) is None
            api.fail(None)
            assert await answers(session)

    run(scene(), 60)
