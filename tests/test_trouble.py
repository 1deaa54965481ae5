"""What a person is told when something fails: the tables of `trouble`, row by row, and that no key gets out."""

from __future__ import annotations

import re
from typing import Any

import pytest

from claude_kernel import errors
from claude_kernel import trouble as trouble_module
from claude_kernel.protocol.events import Outcome, RetryNoticed, TurnEnded
from claude_kernel.trouble import DETAILS_LIMIT, Trouble, find_trouble, trouble_of, trouble_of_retry

KEY = "sk-ant-api03-Walnut_Walnut-Walnut"


def ended(outcome: Outcome = Outcome.API_ERROR, word: str = "", status: int | None = None, **more: Any) -> TurnEnded:
    return TurnEnded(prompt_id="p", outcome=outcome, error_kind=word, api_status=status, **more)


def found(turn: TurnEnded) -> Trouble:
    trouble = find_trouble(turn)
    assert trouble is not None
    return trouble


def died(said: str = "", *, start_error: str = "", exit_code: int | None = 1) -> errors.CliDied:
    return errors.CliDied("message", exit_code=exit_code, stderr_tail=said, start_error=start_error)


TOO_LONG = "Prompt is too long · the request is ~210000 tokens (limit 200000)"
PORTAL = "API Error: API returned an empty or malformed response (HTTP 200) — check for a proxy or gateway"
FLAGGED = "API Error: Opus 5.5's safeguards flagged this message (https://www.anthropic.com/legal/aup)."

TURNS = [
    (ended(word="authentication_failed", error="Not logged in · Please run /login"), "NotLoggedIn"),
    (ended(word="authentication_failed", status=401), "LoginRefused"),
    (ended(word="authentication_failed", status=403), "LoginRefused"),
    (ended(word="oauth_org_not_allowed", status=403), "AccountTrouble"),
    (ended(word="account_on_hold", status=403), "AccountTrouble"),
    (ended(word="verification_required"), "AccountTrouble"),
    (ended(word="cloud_credential_error"), "CloudCredentials"),
    (ended(word="billing_error", status=400), "Billing"),
    (ended(word="billing_error", status=402), "Billing"),
    (ended(word="model_not_found", status=404), "BadModel"),
    (ended(word="rate_limit", status=429), "RateLimited"),
    (ended(word="max_output_tokens"), "AnswerTooLong"),
    (ended(word="overloaded", status=529), "Overloaded"),
    (ended(word="server_error", status=529), "Overloaded"),
    (ended(word="server_error", status=500), "ServerError"),
    (ended(word="server_error", status=503), "ServerError"),
    (ended(word="server_error", error="API Error: Connection refused (ECONNREFUSED)"), "NoConnection"),
    (ended(word="server_error", error="Request timed out"), "NoConnection"),
    (ended(word="unknown", error=PORTAL), "NoConnection"),
    (ended(word="unknown", error="API Error: something else"), "ApiError"),
    (ended(word="invalid_request", status=400, error=TOO_LONG), "PromptTooLong"),
    (ended(word="invalid_request", status=400, error="messages.0: odd"), "ApiError"),
    (ended(word="invalid_request", status=413), "RequestTooLarge"),
    (ended(word="invalid_request", error=FLAGGED), "Safeguards"),
    (ended(word="unknown", status=400), "ApiError"),
    (ended(status=401), "LoginRefused"),
    (ended(status=402), "Billing"),
    (ended(status=429), "RateLimited"),
    (ended(status=500), "ServerError"),
    (ended(word="a word of a later version", status=418), "ApiError"),
    (ended(), "ApiError"),
    (ended(Outcome.MAX_TURNS, error="Reached maximum number of turns (1)"), "MaxTurns"),
    (ended(Outcome.MAX_BUDGET, error="Reached maximum budget ($0.0001)"), "MaxBudget"),
    (ended(Outcome.FAILED, error="Failed to provide valid structured output after 5 attempts"), "NoStructuredAnswer"),
    (ended(Outcome.FAILED, error="no reason of note"), "TurnFailed"),
    (ended(Outcome.FAILED, exit_code=1), "CliDied"),
    (ended(Outcome.FAILED, exit_code=-9), "CliDied"),
    (ended(Outcome.FAILED, stderr_tail="it stopped talking"), "CliDied"),
]

ERRORS = [
    (errors.CliNotFound("none"), "CliNotFound"),
    (errors.CliNotStarted("/x could not be started in /y: Exec format error"), "CliNotStarted"),
    (errors.CliNotStarted("The folder /x does not exist. Choose another working folder."), "FolderTrouble"),
    (errors.CliNotStarted("The folder /x cannot be read. Choose another, or mend its permissions."), "FolderTrouble"),
    (died("error: unknown option '--include-partial-messages'\n"), "CliTooOld"),
    (died("EACCES: permission denied, mkdir '/home/me/tmp/claude-1000'\n"), "FolderTrouble"),
    (died("Error: ENOSPC: no space left on device, write\n"), "FolderTrouble"),
    (died("long\nlog\n", start_error="Configuration error in /home/me/.claude.json: JSON Parse error"), "ConfigBroken"),
    (died(start_error="No conversation found with session ID: 0"), "ConversationNotFound"),
    (died("/usr/bin/env: 'node': No such file or directory\n", exit_code=127), "CliNotStarted"),
    (died("", exit_code=0), "CliDied"),
    (errors.CliSilent("Claude Code did not answer `set_model` within 30 s."), "CliSilent"),
    (errors.CliRefused("no such mode", subtype="set_permission_mode"), "CliRefused"),
    (errors.TurnFailed("x", outcome="interrupted", session_id=""), "Interrupted"),
    (errors.TurnFailed("x", outcome="max turns", session_id=""), "MaxTurns"),
    (errors.TurnFailed("x", outcome="max budget", session_id=""), "MaxBudget"),
    (errors.TurnFailed("x", outcome="api error", session_id=""), "ApiError"),
    (errors.TurnFailed("x", outcome="finished", session_id=""), "NoStructuredAnswer"),
    (errors.TurnFailed("x", outcome="failed", session_id=""), "TurnFailed"),
    (errors.SessionBusy("busy"), "SessionBusy"),
    (errors.QuestionClosed("closed"), "QuestionClosed"),
    (errors.UsageError("no such mode"), "UsageError"),
    (errors.CliError("x"), "CliError"),
    (errors.BudgetReached("x"), "BudgetReached"),
    (errors.EnvironmentTrouble("x"), "EnvironmentTrouble"),
    (errors.ClaudeKernelError("x"), "ClaudeKernelError"),
    (KeyError("walnut"), "KernelFault"),
]

ALL = [found(turn) for turn, _ in TURNS] + [trouble_of(error) for error, _ in ERRORS]


@pytest.mark.parametrize(("turn", "kind"), TURNS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_failed_turn_has_its_name(turn: TurnEnded, kind: str) -> None:
    assert found(turn).kind == kind


@pytest.mark.parametrize(("error", "kind"), ERRORS, ids=lambda value: value if isinstance(value, str) else "")
def test_an_error_has_its_name(error: Exception, kind: str) -> None:
    assert trouble_of(error).kind == kind


def test_every_error_of_ours_is_in_the_table() -> None:
    def leaves(kind: type[Exception]) -> set[type[Exception]]:
        return {kind}.union(*(leaves(below) for below in kind.__subclasses__()))

    assert leaves(errors.ClaudeKernelError) <= {type(error) for error, _ in ERRORS}


@pytest.mark.parametrize("outcome", Outcome)
def test_only_what_finished_or_was_stopped_is_no_trouble(outcome: Outcome) -> None:
    fine = outcome in (Outcome.FINISHED, Outcome.INTERRUPTED)
    assert (find_trouble(ended(outcome)) is None) == fine


@pytest.mark.parametrize("trouble", ALL, ids=lambda trouble: trouble.kind)
def test_every_trouble_is_one_sentence_and_a_short_remedy_that_says_what_was_lost(trouble: Trouble) -> None:
    if trouble.kind == "UsageError":  # its remedy is the error's own words
        assert trouble.remedy
        return
    assert re.fullmatch(r"[A-Z][^.!?]*\.", trouble.title)
    assert len(trouble.title) <= 70
    assert len(trouble.remedy.replace(trouble_module._claude(), "claude")) <= 260  # its path may be long
    assert re.search(r"lost|kept|[Nn]othing was changed", trouble.remedy.rpartition(". ")[2])
    assert trouble.remedy.endswith(".")
    assert trouble.kind.isidentifier()


def test_before_anything_was_done_the_cell_is_run_again_and_afterwards_not() -> None:
    assert found(ended(status=500, steps=1)).remedy.endswith("run this cell again: nothing was lost.")
    assert found(ended(status=500, steps=3)).remedy.endswith("ask Claude to go on: what it did before this is kept.")


def test_a_killed_cli_is_told_apart_from_one_that_ended() -> None:
    assert "killed" in found(ended(Outcome.FAILED, exit_code=-9)).title
    assert "killed" not in found(ended(Outcome.FAILED, exit_code=1)).title


def test_the_details_are_the_clis_own_words() -> None:
    assert found(ended(status=500, error="API Error: 500 boom")).details == "API Error: 500 boom"
    assert trouble_of(died("out of walnuts\n")).details == "out of walnuts"
    assert "exit code 3" in trouble_of(died(exit_code=3)).details
    assert (
        found(ended(Outcome.FAILED, exit_code=1, error="It ended (exit code 1).")).details == "It ended (exit code 1)."
    )


def test_a_fault_of_ours_says_so_and_shows_where() -> None:
    try:
        raise ZeroDivisionError("by walnut")
    except ZeroDivisionError as error:
        trouble = trouble_of(error)
    assert "claude-kernel" in trouble.title
    assert "ZeroDivisionError: by walnut" in trouble.details
    assert __name__.rpartition(".")[2] in trouble.details


@pytest.mark.parametrize(
    "text",
    [
        KEY,
        f"Invalid key {KEY}.",
        '"x-api-key": "Walnut-1234"',
        "ANTHROPIC_AUTH_TOKEN=Walnut.1234",
        "AWS_SECRET_ACCESS_KEY_password: Walnut1234",
        "Authorization: Bearer Walnut.1234.5678",
        "proxy http://me:Walnut@proxy.example:8080 refused",
        "AKIAWALNUTWALNUTWALN",
    ],
)
def test_no_key_gets_out(text: str) -> None:
    troubles = [
        found(ended(status=400, error=text)),
        found(ended(Outcome.FAILED, exit_code=1, stderr_tail=text)),
        trouble_of(died(text)),
        trouble_of(died(start_error=text)),
        trouble_of(errors.CliRefused(text, subtype="x")),
        trouble_of(errors.UsageError(text)),
        trouble_of(ValueError(text)),
    ]
    assert all("walnut" not in str(trouble).lower() for trouble in troubles)


def test_half_a_key_in_a_message_that_quotes_stderr_is_not_shown() -> None:
    half = f"Claude Code ended (exit code 1): {KEY[10:]}"
    dead = errors.CliDied(half, exit_code=1, stderr_tail=f"{KEY} is wrong")
    assert "Walnut" not in trouble_of(dead).details
    turn = ended(Outcome.FAILED, error=half, exit_code=1, stderr_tail=f"{KEY} is wrong")
    assert "Walnut" not in found(turn).details


def test_ordinary_words_are_left_alone() -> None:
    said = "OAuth token has expired; a task-list-item of 128000 tokens (limit 200000): see https://example.com/a@b"
    assert found(ended(status=401, error=said)).details == said


def test_long_details_keep_the_end_of_a_log_and_the_beginning_of_a_sentence() -> None:
    log = trouble_of(died("x" * 99_999 + "the end")).details
    assert len(log) == DETAILS_LIMIT
    assert log.endswith("the end")
    sentence = found(ended(status=400, error="the beginning" + "x" * 99_999)).details
    assert len(sentence) == DETAILS_LIMIT
    assert sentence.startswith("the beginning")


@pytest.mark.timeout(5)
@pytest.mark.parametrize("piece", ["a-", "token ", "sk-", "://", "bearer ", "EACCES: ", "EACCES: open"])
def test_no_text_is_slow_to_read(piece: str) -> None:
    """Every pattern takes time in proportion; one that did not took half a minute here."""
    assert trouble_of(died(piece * 20_000)).kind


@pytest.mark.parametrize(
    ("status", "attempt", "hopeless"),
    [(401, 1, False), (401, 2, True), (401, 9, True), (529, 9, False), (None, 9, False)],
)
def test_only_a_key_that_was_refused_again_is_hopeless(status: int | None, attempt: int, hopeless: bool) -> None:
    trouble = trouble_of_retry(RetryNoticed(attempt, 10, error="authentication_failed", api_status=status))
    assert (trouble is not None) == hopeless
    assert trouble is None or trouble.kind == "LoginRefused"
