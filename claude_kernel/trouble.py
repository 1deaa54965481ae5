"""What went wrong and what to do about it, in plain words: one table for failed turns, one for errors.

It decides by type, outcome, the CLI's own word and the API's status. Words are matched only where the CLI (2.1.326)
gives nothing else; each such row names its scene in `tests/real_cli/test_trouble.py`. It must not know Jupyter, HTML,
or how the trouble came about, and it lets no key out.
"""

from __future__ import annotations

import functools
import re
import traceback
from collections.abc import Container

import msgspec

from claude_kernel.cli import find_cli, spoken
from claude_kernel.errors import (
    BudgetReached,
    ClaudeKernelError,
    CliDied,
    CliError,
    CliNotFound,
    CliNotStarted,
    CliRefused,
    CliSilent,
    EnvironmentTrouble,
    QuestionClosed,
    SessionBusy,
    TurnFailed,
    UsageError,
)
from claude_kernel.protocol.events import Outcome, RetryNoticed, TurnEnded

DETAILS_LIMIT = 2000


class Trouble(msgspec.Struct, frozen=True):
    title: str
    """One plain sentence."""
    remedy: str
    """Markdown: what to do, and at the end whether anything was lost."""
    kind: str
    """A stable name, for programs: the `ename` of a Jupyter error."""
    details: str = ""
    """The CLI's own words, cut, without keys."""


class _Advice(msgspec.Struct, frozen=True):
    kind: str
    title: str
    remedy: str
    again: str = ""
    """How the remedy ends; where empty, by whether Claude had done anything yet."""


# --- how a remedy ends ----------------------------------------------------------------------------------------------

# A prompt that failed stays in the CLI's history, and so does all that was done for it.
_AGAIN = "Then run this cell again: nothing was lost."
_GO_ON = "Then ask Claude to go on: what it did before this is kept."
_KEPT = "The conversation is kept: nothing said before was lost."
_NOT_SENT = "The prompt was not sent: nothing was lost."
_RESUMES = "The next cell starts it again and the conversation goes on; only the end of this answer was lost."


# --- advice ---------------------------------------------------------------------------------------------------------

# A login made in a terminal is seen by the running CLI; an environment variable is not.
_NOT_LOGGED_IN = _Advice(
    "NotLoggedIn",
    "Claude is not logged in.",
    "Run `claude` in a terminal and choose `/login`, or set `ANTHROPIC_API_KEY` before Jupyter starts.",
)
_LOGIN_REFUSED = _Advice(
    "LoginRefused",
    "The login or API key was refused.",
    "Run `claude` in a terminal and choose `/login`, or correct `ANTHROPIC_API_KEY` before Jupyter starts.",
)
_ACCOUNT = _Advice(
    "AccountTrouble",
    "This account may not use Claude Code at the moment.",
    "The details say what the account lacks: settle it, or run `claude` in a terminal and `/login` with another.",
)
_CLOUD = _Advice(
    "CloudCredentials",
    "The cloud provider's credentials are missing or expired.",
    "Renew them in a terminal, the way you did for Claude Code there.",
)
_BILLING = _Advice(
    "Billing",
    "The account has no credit left.",
    "Add credit at [console.anthropic.com](https://console.anthropic.com/settings/billing), "
    "or run `claude` in a terminal and `/login` with another account.",
)
_BAD_MODEL = _Advice(
    "BadModel",
    "This model does not exist, or is not open to you.",
    "Choose another with `%claude model NAME`, for example `%claude model sonnet`.",
)
_RATE_LIMITED = _Advice(
    "RateLimited",
    "The usage limit is reached.",
    "Wait until it resets (the details may say when), or choose a smaller model with `%claude model NAME`.",
)
_OVERLOADED = _Advice(
    "Overloaded",
    "Claude is overloaded.",
    "This passes: wait a minute, or choose another model with `%claude model NAME`.",
)
_SERVER_ERROR = _Advice(
    "ServerError",
    "Claude's service had an error.",
    "This usually passes: wait a minute; [status.anthropic.com](https://status.anthropic.com) says if it does not.",
)
_NO_CONNECTION = _Advice(
    "NoConnection",
    "Claude cannot be reached.",
    "Check the network, and `HTTPS_PROXY` and `ANTHROPIC_BASE_URL` if you set them.",
)
_NO_PROPER_ANSWER = _Advice(
    "NoConnection",
    "Something between here and Claude answered in its place.",
    "Log in to the network if it asks for that (hotels, guests), or check `HTTPS_PROXY` and `ANTHROPIC_BASE_URL`.",
)
_PROMPT_TOO_LONG = _Advice(
    "PromptTooLong",
    "The conversation is too long for the model.",
    "Run `/compact` in a cell to shorten it, mention fewer files, or begin anew with `%claude new`.",
)
_REQUEST_TOO_LARGE = _Advice(
    "RequestTooLarge",
    "The images and files are too large together.",
    "Send fewer or smaller ones: run `/compact` in a cell first, or begin anew with `%claude new`.",
)
_ANSWER_TOO_LONG = _Advice(
    "AnswerTooLong",
    "The answer was longer than the model may write.",
    "Ask for it in parts, or for a file instead of an answer.",
    _KEPT,
)
_SAFEGUARDS = _Advice(
    "Safeguards",
    "The model's safeguards stopped this answer.",
    "Ask in other words after `%claude new`, or choose another model with `%claude model NAME`.",
    "Until then the conversation is kept.",
)
_API_ERROR = _Advice(
    "ApiError",
    "Claude's service refused the request.",
    "The details say why; if they name nothing that you can change, begin anew with `%claude new`.",
)
_MAX_TURNS = _Advice(
    "MaxTurns",
    "Claude stopped at the number of steps it may take.",
    "Ask it to go on in the next cell, or allow more steps.",
    "What it did is kept: nothing was lost.",
)
_MAX_BUDGET = _Advice(
    "MaxBudget",
    "Claude stopped at the amount it may spend.",
    "Allow a larger amount and ask it to go on.",
    "What it did is kept: nothing was lost.",
)
_NO_STRUCTURE = _Advice(
    "NoStructuredAnswer",
    "Claude did not answer by the schema.",
    "Ask again, or make the schema simpler.",
    _KEPT,
)
_TURN_FAILED = _Advice("TurnFailed", "The turn failed.", "The details say why.")
_INTERRUPTED = _Advice("Interrupted", "You stopped Claude.", "Ask it to go on when you like.", _KEPT)
_CLI_KILLED = _Advice(
    "CliDied",
    "Claude Code was killed while it worked.",
    "If nobody did that, the machine may be short of memory: close what you do not need.",
    _RESUMES,
)
_CLI_DIED = _Advice(
    "CliDied",
    "Claude Code ended while it worked.",
    "Run the cell again; if it happens again, run `claude` in a terminal to see why.",
    _RESUMES,
)

_NOT_FOUND = _Advice(
    "CliNotFound",
    "Claude Code was not found.",
    "Install it with `pip install claude-agent-sdk` or `npm install -g @anthropic-ai/claude-code`, "
    "or set `CLAUDE_CODE_PATH` to where it is before Jupyter starts.",
    _AGAIN,
)
_NOT_STARTED = _Advice(
    "CliNotStarted",
    "Claude Code was found but cannot be run.",
    "Run `claude --version` in a terminal to see why, or install it anew with `pip install claude-agent-sdk`.",
    _AGAIN,
)
_FOLDER = _Advice(
    "FolderTrouble",
    "The working folder cannot be used.",
    "Create it or mend its permissions, or move the notebook to another folder.",
    _AGAIN,
)
_DISK = _Advice(
    "FolderTrouble",
    "Claude Code cannot write its own files.",
    "Make the folder in the details writable, or free some space on its disk.",
    _AGAIN,
)
_TOO_OLD = _Advice(
    "CliTooOld",
    "Claude Code is too old for this kernel.",
    "Run `claude update` in a terminal, or install a newer one with `pip install -U claude-agent-sdk`.",
    _AGAIN,
)
_CONFIG = _Advice(
    "ConfigBroken",
    "Claude Code cannot read its settings.",
    "Mend the file in the details, or move it aside.",
    _AGAIN,
)
_NO_CONVERSATION = _Advice(
    "ConversationNotFound",
    "That conversation is not on this machine.",
    "Begin anew with `%claude new`, or resume another.",
    _NOT_SENT,
)
_NOT_READY = _Advice(
    "CliDied",
    "Claude Code ended instead of answering.",
    "Run `claude` in a terminal to see why.",
    _AGAIN,
)
_SILENT = _Advice(
    "CliSilent",
    "Claude Code does not answer.",
    "Run `%claude restart`; if that does not help, run `claude` in a terminal to see why.",
    _KEPT,
)
_REFUSED = _Advice("CliRefused", "Claude Code refused this.", "The details give its reason.", "Nothing was changed.")
_BUSY = _Advice(
    "SessionBusy",
    "Claude is still at work.",
    "Wait for the running cell, or stop it.",
    _NOT_SENT,
)
_CLOSED = _Advice(
    "QuestionClosed",
    "That question is no longer open.",
    "It was answered or withdrawn; ask Claude to try again if you wanted something else.",
    _KEPT,
)
_BUDGET = _Advice(
    "BudgetReached",
    "The budget of this notebook is spent.",
    "`%claude cost` shows on what; `%claude budget AMOUNT` sets a higher one.",
    _NOT_SENT,
)
_USAGE = _Advice("UsageError", "This cannot be done as asked.", "", _NOT_SENT)
_CLI_ERROR = _Advice(
    "CliError", "Claude Code did not do its part.", "Run `%claude restart` and then this cell again.", _KEPT
)
_ENVIRONMENT = _Advice("EnvironmentTrouble", "This machine lacks something.", "The details say what.", _AGAIN)
_OWN_ERROR = _Advice(
    "ClaudeKernelError", "Something went wrong.", "The details say what; `%claude restart` begins afresh.", _KEPT
)
_FAULT = _Advice(
    "KernelFault",
    "This is a fault of claude-kernel.",
    "Run `%claude restart` to go on, and please report the details.",
    _KEPT,
)


# --- turns ----------------------------------------------------------------------------------------------------------


class _Turn(msgspec.Struct, frozen=True):
    """A row: the advice for turns that match all it names. What it leaves empty matches anything."""

    advice: _Advice
    outcome: Outcome
    words: tuple[str, ...] = ()
    """The CLI's own words for an API error."""
    statuses: Container[int | None] | None = None
    text: str = ""

    def matches(self, ended: TurnEnded) -> bool:
        return (
            ended.outcome is self.outcome
            and (not self.words or ended.error_kind in self.words)
            and (self.statuses is None or ended.api_status in self.statuses)
            and self.text in ended.error
        )


_NEVER_REACHED = (None,)
_ACCOUNT_WORDS = ("oauth_org_not_allowed", "account_on_hold", "verification_required")
_5XX: Container[int | None] = frozenset(range(500, 600))

# The first row that matches decides. Known words are all those that 2.1.326 may put beside an API error; it calls 529
# `server_error` in the end and `overloaded` only while it retries.
_TURNS = (
    _Turn(_NOT_LOGGED_IN, Outcome.API_ERROR, ("authentication_failed",), _NEVER_REACHED),
    _Turn(_LOGIN_REFUSED, Outcome.API_ERROR, ("authentication_failed",)),
    _Turn(_ACCOUNT, Outcome.API_ERROR, _ACCOUNT_WORDS),
    _Turn(_CLOUD, Outcome.API_ERROR, ("cloud_credential_error",)),
    _Turn(_BILLING, Outcome.API_ERROR, ("billing_error",)),
    _Turn(_BAD_MODEL, Outcome.API_ERROR, ("model_not_found",)),
    _Turn(_RATE_LIMITED, Outcome.API_ERROR, ("rate_limit",)),
    _Turn(_ANSWER_TOO_LONG, Outcome.API_ERROR, ("max_output_tokens",)),
    _Turn(_OVERLOADED, Outcome.API_ERROR, ("overloaded",)),
    _Turn(_OVERLOADED, Outcome.API_ERROR, statuses=(529,)),
    # Refused, unknown host, proxy gone, timed out, lost, not TLS: all are a server's error without a server's status.
    _Turn(_NO_CONNECTION, Outcome.API_ERROR, ("server_error",), _NEVER_REACHED),
    # Scene "a captive portal": HTTP 200 with a page in it is `unknown`, without a status.
    _Turn(_NO_PROPER_ANSWER, Outcome.API_ERROR, ("unknown",), _NEVER_REACHED, "empty or malformed response"),
    # Scene "too long": `invalid_request` with 400, as for any other bad request. (`terminal_reason` would say it.)
    _Turn(_PROMPT_TOO_LONG, Outcome.API_ERROR, ("invalid_request",), (400,), "Prompt is too long"),
    # Scene "a refusal": only a row before it, and these words, say that it was one.
    _Turn(_SAFEGUARDS, Outcome.API_ERROR, ("invalid_request",), _NEVER_REACHED, "safeguards flagged"),
    # What the word leaves open, the status decides: other CLIs give no word.
    _Turn(_LOGIN_REFUSED, Outcome.API_ERROR, statuses=(401, 403)),
    _Turn(_BILLING, Outcome.API_ERROR, statuses=(402,)),
    _Turn(_REQUEST_TOO_LARGE, Outcome.API_ERROR, statuses=(413,)),
    _Turn(_RATE_LIMITED, Outcome.API_ERROR, statuses=(429,)),
    _Turn(_SERVER_ERROR, Outcome.API_ERROR, statuses=_5XX),
    _Turn(_API_ERROR, Outcome.API_ERROR),
    _Turn(_MAX_TURNS, Outcome.MAX_TURNS),
    _Turn(_MAX_BUDGET, Outcome.MAX_BUDGET),
    # Its subtype says so (`error_max_structured_output_retries`), the event only in words.
    _Turn(_NO_STRUCTURE, Outcome.FAILED, text="Failed to provide valid structured output"),
    _Turn(_TURN_FAILED, Outcome.FAILED),
)
_NO_TROUBLE = (Outcome.FINISHED, Outcome.INTERRUPTED)


def find_trouble(ended: TurnEnded) -> Trouble | None:
    """Nothing for a turn that finished, or that the person stopped."""
    if ended.outcome in _NO_TROUBLE:
        return None
    if ended.exit_code is not None or ended.stderr_tail:
        # Where there is a stderr, `error` quotes it, cut before it got here: half a key is not known for one.
        advice = _CLI_KILLED if (ended.exit_code or 0) < 0 else _CLI_DIED
        return _advise(advice, ended.stderr_tail.strip() or ended.error, cut_from_start=True)
    advice = next(row.advice for row in _TURNS if row.matches(ended))
    # A first request that failed is step 1; after that Claude may have changed things, and must not begin again.
    return _advise(advice, ended.error, _GO_ON if (ended.steps or 0) > 1 else _AGAIN)


def trouble_of_retry(retry: RetryNoticed) -> Trouble | None:
    """The CLI tries ten times, for minutes, whatever the reason. A key that was refused twice will be refused again."""
    if retry.api_status == 401 and retry.attempt >= 2:
        return _advise(_LOGIN_REFUSED, retry.error, _AGAIN)
    return None


# --- errors ---------------------------------------------------------------------------------------------------------

_ERRORS: dict[type[Exception], _Advice] = {
    QuestionClosed: _CLOSED,
    SessionBusy: _BUSY,
    BudgetReached: _BUDGET,
    UsageError: _USAGE,
    CliDied: _NOT_READY,
    TurnFailed: _TURN_FAILED,
    CliSilent: _SILENT,
    CliRefused: _REFUSED,
    CliError: _CLI_ERROR,
    CliNotFound: _NOT_FOUND,
    CliNotStarted: _NOT_STARTED,
    EnvironmentTrouble: _ENVIRONMENT,
    ClaudeKernelError: _OWN_ERROR,
    Exception: _FAULT,
}

# A CLI that would not start says why in a sentence, and with exit code 1 whatever it was.
_LAST_WORDS: tuple[tuple[re.Pattern[str], _Advice], ...] = (
    (re.compile(r"unknown option", re.I), _TOO_OLD),  # scene "an old CLI"
    (re.compile(r"No conversation found"), _NO_CONVERSATION),  # scene `resume_unknown`
    (re.compile(r"Configuration error in"), _CONFIG),  # scene "settings that are not JSON"
    # Scene "no room".
    (re.compile(r"(EACCES|EROFS|ENOSPC|EDQUOT|EPERM|ENOENT|ENOTDIR): .{,80}\b(mkdir|open|write)\b"), _DISK),
)
_SHELL_COULD_NOT_RUN_IT = (126, 127)  # `claude` is a script whose interpreter (node) is missing

_OUTCOMES = {
    Outcome.INTERRUPTED.value: _INTERRUPTED,
    Outcome.MAX_TURNS.value: _MAX_TURNS,
    Outcome.MAX_BUDGET.value: _MAX_BUDGET,
    Outcome.API_ERROR.value: _API_ERROR,
    Outcome.FINISHED.value: _NO_STRUCTURE,  # the one way in which a finished turn fails its caller
}


def trouble_of(error: Exception) -> Trouble:
    """For any error: one of ours, or an honest word that this package is at fault."""
    advice = next(_ERRORS[kind] for kind in type(error).__mro__ if kind in _ERRORS)
    if advice is _FAULT:
        return _advise(advice, "".join(traceback.format_exception(error)), cut_from_start=True)
    if isinstance(error, CliDied):
        return _trouble_of_death(error)
    if advice is _USAGE:  # our own words, and they say what to do
        return Trouble(_USAGE.title, _without_secrets(str(error)), _USAGE.kind)
    if advice is _BUDGET:  # its figures are what one wants to know
        return Trouble(_BUDGET.title, f"{error} {_BUDGET.remedy} {_BUDGET.again}", _BUDGET.kind)
    if isinstance(error, TurnFailed):
        advice = _OUTCOMES.get(error.outcome, advice)
    # `CliNotStarted` stands for both; the words are our own (`transport`).
    if isinstance(error, CliNotStarted) and str(error).startswith("The folder "):
        advice = _FOLDER
    return _advise(advice, str(error))


def _trouble_of_death(died: CliDied) -> Trouble:
    # Its message quotes stderr, cut before it got here: half a key is not known for one.
    said = died.start_error or died.stderr_tail
    advice = next((advice for pattern, advice in _LAST_WORDS if pattern.search(said)), _NOT_READY)
    if advice is _NOT_READY and died.exit_code in _SHELL_COULD_NOT_RUN_IT:
        advice = _NOT_STARTED
    return _advise(advice, said or f"It ended with exit code {died.exit_code} and gave no reason.", cut_from_start=True)


# --- what may be shown ----------------------------------------------------------------------------------------------

_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"sk-ant-[\w-]+"), "sk-ant-…"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), r"\1 …"),
    (re.compile(r"(?i)((?:api[_-]?key|token|secret|password)\"?\s*[=:]\s*\"?)[^\s\"',;]+"), r"\1…"),
    (re.compile(r"(://)[^/\s@]+@"), r"\1…@"),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), "…"),
)


def _advise(advice: _Advice, details: str, again: str = _AGAIN, *, cut_from_start: bool = False) -> Trouble:
    return Trouble(
        title=advice.title,
        remedy=f"{advice.remedy} {advice.again or again}".replace("`claude`", f"`{_claude()}`"),
        kind=advice.kind,
        details=_cut(_without_secrets(details), cut_from_start),
    )


@functools.cache
def _claude() -> str:
    """What a person types in a terminal: the CLI inside a wheel has no short name."""
    try:
        return spoken(find_cli())
    except ClaudeKernelError:
        return "claude"


def _without_secrets(text: str) -> str:
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text.strip()


def _cut(text: str, from_start: bool) -> str:
    """A log says the most at its end, a sentence at its beginning."""
    if len(text) <= DETAILS_LIMIT:
        return text
    return f"…{text[1 - DETAILS_LIMIT :]}" if from_start else f"{text[: DETAILS_LIMIT - 1]}…"
