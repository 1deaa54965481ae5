"""One row a check: what is wrong is named, with a remedy, and no check can stop or hold up the others."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from commands.keyboard import Program, Said, Typed

from claude_kernel import cli
from claude_kernel.commands import doctor
from claude_kernel.commands.claude_checks import judge_network, without_secrets
from claude_kernel.commands.doctor import CHECKS, Check, examine
from claude_kernel.commands.findings import Case, Finding, State, ok
from claude_kernel.commands.jupyter_checks import judge_ipykernel, judge_python, judge_widgets
from claude_kernel.commands.login import describe, find_credential
from claude_kernel.commands.rule_checks import judge_policy, judge_trust
from claude_kernel.commands.rulebooks import read_policy
from claude_kernel.protocol.events import Initialised
from claude_kernel.trust import Trust

pytestmark = pytest.mark.slow


def rows(said: Said) -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in said.json["checks"]}


def spec(folder: Path, name: str, argv0: str) -> None:
    place = folder / "kernels" / name
    place.mkdir(parents=True)
    argv = [argv0, "-m", "claude_kernel", "-f", "{connection_file}"]
    (place / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": name, "language": "markdown"}))


@pytest.fixture
def kernels(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Jupyter finds what is in this folder before anything else."""
    monkeypatch.setenv("JUPYTER_PATH", str(home / "jupyter"))
    return home / "jupyter"


# --- the whole ------------------------------------------------------------------------------------------------------


def test_without_a_cli_it_says_how_to_get_one(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_find_bundled", lambda: None)
    monkeypatch.setattr(cli, "_USUAL_PLACES", ())
    said = typed("doctor", "--json")
    assert said.code == 1
    assert said.json["ok"] is False
    found = rows(said)
    assert [*found] == [check.name for check in CHECKS]
    assert found["Claude Code"]["state"] == "problem"
    assert found["Claude Code"]["finding"] == "not found"
    assert "pip install claude-agent-sdk" in found["Claude Code"]["remedy"]
    assert (found["login"]["state"], found["answer"]["state"]) == ("skipped", "skipped")
    assert found["Python"]["finding"] == f"{sys.version.split()[0]} at {sys.executable}"
    assert found["ipykernel"]["state"] == "ok"


def test_a_cli_that_was_named_but_is_not_there_is_not_replaced(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_PATH", "/nowhere/claude")
    row = rows(typed("doctor", "--json", "--offline"))["Claude Code"]
    assert row["state"] == "problem"
    assert "/nowhere/claude" in row["finding"]


def test_an_old_cli_is_a_warning_and_one_that_dies_a_problem(typed: Typed, program: Program) -> None:
    path = program("claude", "import sys\nprint('2.0.9 (Claude Code)') if '--version' in sys.argv else sys.exit(3)")
    found = rows(typed("doctor", "--json", "--offline"))
    assert found["Claude Code"]["state"] == "warning"
    assert "2.0.9 is older than" in found["Claude Code"]["finding"]
    assert str(path) in found["Claude Code"]["finding"]
    assert "`claude update`" in found["Claude Code"]["remedy"]
    assert found["login"]["state"] == "problem"
    assert found["login"]["finding"].startswith("Claude Code ended instead of answering.")
    assert "cell" not in found["login"]["remedy"]


@pytest.mark.usefixtures("claude_without_login")
def test_without_a_login_nothing_is_asked(typed: Typed) -> None:
    said = typed("doctor", "--json")
    found = rows(said)
    assert said.code == 1
    assert found["Claude Code"]["state"] == "ok"
    assert (found["login"]["state"], found["login"]["finding"]) == ("problem", "not logged in")
    assert "Run `claude` in a terminal and choose /login" in found["login"]["remedy"]
    assert (found["answer"]["state"], found["answer"]["finding"]) == ("skipped", "not asked, as there is no login")


def test_the_demo_needs_no_login_and_is_no_problem(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_KERNEL_CLI", "demo")
    found = rows(typed("doctor", "--json"))
    assert (found["Claude Code"]["state"], found["login"]["state"], found["answer"]["state"]) == (
        "warning",
        "skipped",
        "skipped",
    )
    assert "cli=demo" in found["settings"]["finding"]


@pytest.mark.usefixtures("claude_without_login")
def test_for_people_it_is_one_aligned_screen_without_colour_in_a_pipe(typed: Typed, folder: Path) -> None:
    said = typed("doctor", "--offline")
    lines = said.out.splitlines()
    assert said.code == 1
    assert f"✓ trust        {folder} brings nothing that needs trust" in lines
    assert "✗ login        not logged in" in lines
    assert lines[lines.index("✗ login        not logged in") + 1].startswith(" " * 15 + "→ Run `claude`")
    assert "- answer       not asked, because of --offline" in lines
    assert lines[-1].startswith("1 problem")
    assert "\x1b" not in said.out


# --- no check can spoil the rest ------------------------------------------------------------------------------------


def _raise(_case: Case) -> Finding:
    raise RuntimeError("the disk is on fire")


def _hang(_case: Case) -> Finding:
    threading.Event().wait()
    return ok("never")


def test_a_check_that_fails_or_hangs_is_a_row_like_any_other() -> None:
    case = Case(folder=".", offline=True)
    checks = (Check("fails", _raise), Check("hangs", _hang, 0.05), Check("works", lambda _: ok("fine")))
    found = dict(examine(case, checks))
    assert found["fails"].state is State.PROBLEM
    assert found["fails"].finding == "RuntimeError: the disk is on fire"
    assert found["hangs"].state is State.PROBLEM
    assert found["hangs"].finding == "no result within 0.05 s"
    assert found["works"] == ok("fine")
    assert case.states == {"fails": State.PROBLEM, "hangs": State.PROBLEM, "works": State.OK}


class _Screen:
    """A terminal that can show what its encoding can."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self.shown = ""

    def write(self, text: str) -> None:
        self.shown += text

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("encoding", "no_colour", "shown"),
    [
        ("utf-8", "", "\x1b[32m✓\x1b[0m x            well\n"),
        ("utf-8", "1", "✓ x            well\n"),
        ("ascii", "1", "ok      x            well\n"),
    ],
)
def test_colour_is_for_terminals_and_for_those_who_want_it(
    monkeypatch: pytest.MonkeyPatch, encoding: str, no_colour: str, shown: str
) -> None:
    screen = _Screen(encoding)
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("NO_COLOR", no_colour)
    doctor._show("x", ok("well"))
    assert screen.shown == shown


# --- Python and Jupyter ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "state"), [("3.10.14", "problem"), ("3.11.0", "ok"), ("3.13.0rc1", "ok"), ("4.0", "ok")]
)
def test_python_is_new_enough(version: str, state: str) -> None:
    assert judge_python(version).state.value == state


@pytest.mark.parametrize(
    ("version", "state"),
    [
        (None, "problem"),
        ("6.30.1", "problem"),
        ("7.3.9", "problem"),
        ("7.4", "ok"),
        ("7.9.1", "ok"),
        ("8.0.0a1", "problem"),
    ],
)
def test_ipykernel_is_in_its_range(version: str | None, state: str) -> None:
    found = judge_ipykernel(version)
    assert found.state.value == state
    assert ("ipykernel>=7.4,<8" in found.remedy) == (state == "problem")


def test_buttons_need_both_halves_of_the_widgets(tmp_path: Path) -> None:
    assert judge_widgets(None, []).state is State.PROBLEM
    missing = judge_widgets("8.1.9", [tmp_path])
    assert (missing.state, "jupyterlab_widgets" in missing.remedy) == (State.WARNING, True)
    manager = tmp_path / "labextensions/@jupyter-widgets/jupyterlab-manager"
    manager.mkdir(parents=True)
    (manager / "package.json").write_text('{"version": "5.0.16"}')
    assert judge_widgets("8.1.9", [Path("/nowhere"), tmp_path]) == ok(
        f"ipywidgets 8.1.9, and its manager 5.0.16 in {tmp_path / 'labextensions'}"
    )


def _only(*names: str) -> tuple[Check, ...]:
    return tuple(check for check in CHECKS if check.name in names)


def test_a_jupyter_of_another_environment_is_told_of(home: Path, program: Program) -> None:
    data = home / "elsewhere"
    jupyter = program("jupyter", f"print('{{\"data\": [{json.dumps(str(data))}]}}')")
    found = dict(examine(Case(folder=".", offline=True), _only("Jupyter", "widgets")))
    assert found["Jupyter"].state is State.WARNING
    assert str(jupyter) in found["Jupyter"].finding
    assert "`claude-kernel lab`" in found["Jupyter"].remedy
    assert found["widgets"].state is State.WARNING


def test_a_jupyter_that_sees_this_environment_is_fine(program: Program) -> None:
    program("jupyter", f"import json; print(json.dumps({{'data': [{json.dumps(sys.prefix + '/share/jupyter')}]}}))")
    found = dict(examine(Case(folder=".", offline=True), _only("Jupyter", "widgets")))
    assert (found["Jupyter"].state, found["widgets"].state) == (State.OK, State.OK)
    assert "JupyterLab 4" in found["Jupyter"].finding


@pytest.mark.parametrize(
    ("argv0", "state", "words"),
    [
        ("python", "ok", f"run by {sys.executable}"),
        (sys.executable, "ok", f"run by {sys.executable}"),
        ("/nowhere/python", "problem", "names a Python that is not there"),
        ("broken-python", "problem", "cannot import claude_kernel: ModuleNotFoundError"),
        ("older-python", "warning", "which has claude-kernel 0.0.1"),
    ],
)
def test_the_kernels_python_is_really_tried(
    kernels: Path, program: Program, argv0: str, state: str, words: str
) -> None:
    program("broken-python", "import sys; sys.exit('Traceback\\nModuleNotFoundError: No module named claude_kernel')")
    program("older-python", "print('0.0.1')")
    spec(kernels, "claude", argv0)
    found = dict(examine(Case(folder=".", offline=True), _only("kernel")))["kernel"]
    assert found.state.value == state
    assert words in found.finding
    assert ("claude-kernel install" in found.remedy) == (state != "ok")


def test_a_kernel_that_jupyter_does_not_know_is_a_problem_and_the_demo_a_warning(
    kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jupyter_client.kernelspec import KernelSpecManager

    monkeypatch.setattr(KernelSpecManager, "_kernel_dirs_default", lambda _self: [str(kernels / "kernels")])
    found = dict(examine(Case(folder=".", offline=True), _only("kernel", "demo kernel")))
    assert (found["kernel"].state, found["demo kernel"].state) == (State.PROBLEM, State.WARNING)
    assert found["kernel"].remedy == "Run `claude-kernel install`."


# --- network and login ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://me:secret@proxy.example:8080", "https://proxy.example:8080"),
        ("http://gateway/v1?key=secret#secret", "http://gateway/v1"),
        ("me:secret@proxy:8080", ""),
        ("http://[broken", ""),
        ("https://", ""),
    ],
)
def test_an_address_is_shown_without_its_secrets(address: str, shown: str) -> None:
    assert without_secrets(address) == shown


def test_the_settings_of_the_network_are_listed_and_no_key_is(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    environ = {
        "ANTHROPIC_API_KEY": "sk-ant-secret",
        "ANTHROPIC_BASE_URL": "https://me:secret@gateway.example/v1",
        "HTTPS_PROXY": "http://proxy:3128",
        "NO_PROXY": "localhost",
        "NODE_EXTRA_CA_CERTS": str(tmp_path / "ca.pem"),
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "CLAUDE_CODE_USE_VERTEX": "0",
    }
    assert judge_network(environ) == ok(
        "ANTHROPIC_BASE_URL=https://gateway.example/v1, HTTPS_PROXY=http://proxy:3128, NO_PROXY=localhost, "
        f"NODE_EXTRA_CA_CERTS={tmp_path / 'ca.pem'}, CLAUDE_CODE_USE_BEDROCK"
    )
    assert judge_network({}).state is State.OK


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"HTTPS_PROXY": "me:secret@proxy:8080"}, "HTTPS_PROXY is not an address"),
        ({"NODE_EXTRA_CA_CERTS": "/nowhere.pem"}, "NODE_EXTRA_CA_CERTS names no readable file"),
        ({"NODE_TLS_REJECT_UNAUTHORIZED": "0"}, "nobody's certificate is checked"),
    ],
)
def test_what_cannot_work_on_the_network_is_a_warning(environ: dict[str, str], words: str) -> None:
    found = judge_network(environ)
    assert found.state is State.WARNING
    assert words in found.finding
    assert "secret" not in found.finding


@pytest.mark.parametrize(
    ("account", "logged_in", "who"),
    [
        ({"email": "ann@example.org", "tokenSource": "claude.ai"}, True, "as ann@example.org"),
        ({"tokenSource": "none", "apiKeySource": "ANTHROPIC_API_KEY"}, True, "with a key from ANTHROPIC_API_KEY"),
        ({"tokenSource": "none", "apiProvider": "bedrock"}, True, "through bedrock"),
        ({"tokenSource": "CLAUDE_CODE_OAUTH_TOKEN"}, True, "with a token from CLAUDE_CODE_OAUTH_TOKEN"),
        ({"tokenSource": "none", "apiProvider": "firstParty"}, False, ""),
        ({}, None, ""),
    ],
)
def test_who_is_logged_in_is_what_the_cli_says(account: dict[str, Any], logged_in: bool | None, who: str) -> None:
    assert describe(Initialised(account=account, logged_in=logged_in)) == (logged_in, who)


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({}, None),
        ({"ANTHROPIC_API_KEY": " "}, None),
        ({"CLAUDE_CODE_USE_BEDROCK": "false"}, None),
        ({"ANTHROPIC_BASE_URL": "https://gateway"}, None),
        ({"CLAUDE_CODE_USE_VERTEX": "1"}, "CLAUDE_CODE_USE_VERTEX"),
        ({"ANTHROPIC_AUTH_TOKEN": "x"}, "ANTHROPIC_AUTH_TOKEN"),
    ],
)
def test_the_environment_may_hold_a_login(environ: dict[str, str], found: str | None) -> None:
    assert find_credential(environ) == found


# --- what Claude may do ---------------------------------------------------------------------------------------------


def test_a_broken_settings_file_is_a_problem_and_bypassing_a_warning(home: Path, folder: Path) -> None:
    user = home / ".claude/settings.json"
    user.parent.mkdir()
    user.write_text("{")
    found = judge_policy(read_policy(folder, home / "managed"))
    assert (found.state, f"{user}: line 1, column 2" in found.finding) == (State.PROBLEM, True)
    user.write_text('{"permissions": {"defaultMode": "bypassPermissions"}}')
    found = judge_policy(read_policy(folder, home / "managed"))
    assert (found.state, "without asking" in found.finding) == (State.WARNING, True)
    user.write_text('{"permissions": {"allow": ["Bash(ls:*)"]}}')
    assert judge_policy(read_policy(folder, home / "managed")) == ok("mode default, 1 rule, no managed settings file")


def test_trust_is_told() -> None:
    assert judge_trust(Trust(True), "/here") == ok("/here brings nothing that needs trust")
    assert judge_trust(Trust(True, (".mcp.json",)), "/here") == ok("/here brings .mcp.json and is trusted")
    found = judge_trust(Trust(False, (".mcp.json",)), "/here")
    assert (found.state, "Run `claude` once" in found.remedy) == (State.WARNING, True)


def test_settings_of_the_kernel_that_cannot_be_are_a_warning(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_KERNEL_MODE", "yolo")
    found = dict(examine(Case(folder=str(home), offline=True), _only("settings")))["settings"]
    assert found.state is State.WARNING
    assert "CLAUDE_KERNEL_MODE" in found.finding
    assert os.environ["CLAUDE_KERNEL_MODE"] in found.finding
