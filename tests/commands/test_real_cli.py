"""The doctor, the list of conversations and the policy against the real CLI, on loopback."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from commands.keyboard import Typed
from support.messages_api import MessagesApi
from support.real_cli import cli_path
from support.talk import marked_processes, run, wait_until

from claude_kernel import Claude
from claude_kernel.cli import Options
from claude_kernel.commands.rulebooks import read_policy
from claude_kernel.session import Session

pytestmark = pytest.mark.real_cli


@pytest.fixture
def folder(project: Path, cli_env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's whole environment is the CLI's; it takes the place of the one without any CLI."""
    for name in [*os.environ]:
        monkeypatch.delenv(name)
    for name, value in cli_env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CLAUDE_CODE_PATH", str(cli_path()))
    monkeypatch.chdir(project)
    return project


def test_the_doctor_gets_an_answer_for_a_few_tokens_and_leaves_no_trace(
    typed: Typed, messages_api: MessagesApi, cli_home: Path, folder: Path
) -> None:
    said = typed("doctor", "--json")
    rows = {row["name"]: row for row in said.json["checks"]}
    assert rows["Claude Code"]["finding"].startswith("2.1.")
    assert rows["login"] == {
        "name": "login",
        "state": "ok",
        "finding": "logged in with a key from ANTHROPIC_API_KEY",
        "remedy": "",
    }
    assert rows["answer"]["state"] == "ok"
    assert rows["answer"]["finding"].startswith("an answer after ")
    assert " tokens, $0.00" in rows["answer"]["finding"]
    assert messages_api.url in rows["network"]["finding"]
    assert "sk-ant" not in said.out
    (request,) = messages_api.requests
    assert request["tools"] == []
    assert len(json.dumps(request)) < 8_000
    assert not list((cli_home / ".claude" / "projects").glob("*/*.jsonl"))
    assert f"No conversation was held in {folder}" in typed("sessions").out
    assert wait_until(lambda: not marked_processes())


def test_offline_no_prompt_is_sent(typed: Typed, messages_api: MessagesApi) -> None:
    rows = {row["name"]: row for row in typed("doctor", "--json", "--offline").json["checks"]}
    assert (rows["login"]["state"], rows["answer"]["state"]) == ("ok", "skipped")
    assert messages_api.requests == []


@pytest.mark.parametrize(
    ("environ", "login", "answer", "words"),
    [
        ({"ANTHROPIC_API_KEY": ""}, "problem", "skipped", "not asked, as there is no login"),
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, "ok", "problem", "cannot be reached"),
    ],
)
def test_what_is_missing_is_found_within_seconds(
    typed: Typed,
    monkeypatch: pytest.MonkeyPatch,
    environ: dict[str, str],
    login: str,
    answer: str,
    words: str,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    said = typed("doctor", "--json")
    rows = {row["name"]: row for row in said.json["checks"]}
    assert said.code == 1
    assert (rows["login"]["state"], rows["answer"]["state"]) == (login, answer)
    assert words in rows["answer"]["finding"]
    assert "this cell" not in rows["answer"]["remedy"]


def test_a_hook_of_a_folder_that_is_not_trusted_does_not_run(typed: Typed, folder: Path) -> None:
    hook = {"hooks": [{"type": "command", "command": f"touch {folder / 'ran'}"}]}
    (folder / ".claude").mkdir()
    (folder / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"SessionStart": [hook]}}))
    rows = {row["name"]: row for row in typed("doctor", "--json").json["checks"]}
    assert rows["trust"]["state"] == "warning"
    assert rows["answer"]["state"] == "ok"
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("name", ["plain", "with space.and_é😀", "x" * 120 + "/" + "y" * 120])
def test_conversations_are_found_and_can_be_gone_on_with(typed: Typed, folder: Path, name: str) -> None:
    work = folder / name
    work.mkdir(parents=True)
    with Claude(cwd=str(work)) as claude:
        claude.ask("say:one\nand more")
        claude.ask("/compact")
        claude.ask('tool:Bash:{"command": "echo hi"}')
        session = claude.session_id
    found = typed("sessions", str(work), "--json").json["sessions"]
    assert [(one["id"], one["first_prompt"], one["prompts"]) for one in found] == [(session, "say:one\nand more", 3)]
    with Claude(cwd=str(work), resume=found[0]["id"]) as claude:
        assert claude.ask("say:still here").text == "still here"
    assert typed("sessions", str(work), "--json").json["sessions"][0]["prompts"] == 4


def _permissions(tag: str, **more: Any) -> dict[str, Any]:
    return {"permissions": {"allow": [f"Bash({tag}:*)"], **more}}


@pytest.mark.parametrize(
    "files",
    [
        {"home": _permissions("user", defaultMode="acceptEdits"), "project": _permissions("project")},
        {"home": _permissions("user", defaultMode="bypassPermissions")},
        {"home": _permissions("u", defaultMode="bypassPermissions", disableBypassPermissionsMode="disable")},
        {"home": _permissions("u", defaultMode="acceptEdits"), "project": _permissions("p", defaultMode="auto")},
        {"project": _permissions("p", defaultMode="plan"), "local": _permissions("l", defaultMode="dontAsk")},
        {"project": _permissions("p", defaultMode="yolo"), "root": _permissions("r"), "local": _permissions("l")},
        {"project": "{broken", "home": _permissions("u", defaultMode="manual")},
    ],
)
def test_the_policy_is_what_the_cli_itself_says(folder: Path, cli_home: Path, files: dict[str, Any]) -> None:
    work = folder / "repository" / "sub"
    work.mkdir(parents=True)
    (folder / "repository" / ".git").mkdir()
    places = {
        "home": cli_home / ".claude" / "settings.json",
        "root": work.parent / ".claude" / "settings.local.json",
        "local": work / ".claude" / "settings.local.json",
        "project": work / ".claude" / "settings.json",
    }
    for name, settings in files.items():
        places[name].parent.mkdir(parents=True, exist_ok=True)
        places[name].write_text(settings if isinstance(settings, str) else json.dumps(settings))
    trusted = {"projects": {str(folder): {"hasTrustDialogAccepted": True}}}
    (cli_home / ".claude" / ".claude.json").write_text(json.dumps(trusted))

    async def ask() -> tuple[str, set[str], list[str]]:
        # The tests may run as root, who could not bypass otherwise.
        async with Session(Options(cwd=str(work), environment={"IS_SANDBOX": "1"})) as session:
            initialised = await session.start()
            settings = await session.request("get_settings")
            assert initialised is not None
            allowed = settings["effective"].get("permissions", {}).get("allow", [])
            return initialised.mode, set(allowed), [error["file"] for error in settings.get("errors", [])]

    mode, allowed, broken = run(ask())
    policy = read_policy(work)
    assert policy.mode == mode
    assert {rule for book in policy.rulebooks if book.counts for rule in book.allow} == allowed
    assert {book.path for book in policy.broken} == set(broken)
