"""Every error this package raises on purpose. It knows nothing but names.

The type says who can mend it; no caller matches on a message.

    ClaudeKernelError
    ├── UsageError            the caller (a person or a program) asked for something that cannot be
    │   ├── QuestionClosed    the question was answered, withdrawn or never asked
    │   ├── SessionBusy       a turn is running; a second one was begun
    │   └── BudgetReached     the notebook has cost what it may cost
    ├── CliError              the CLI broke its side, or said no
    │   ├── CliDied           its process ended; holds exit code and the tail of stderr
    │   ├── TurnFailed        a turn ended without an answer; holds how
    │   ├── CliSilent         it did not answer in time
    │   └── CliRefused        it answered a control request with an error
    └── EnvironmentTrouble    this machine lacks something; the message says how to get it
        ├── CliNotFound       no claude executable
        └── CliNotStarted     found, but it could not be run
"""

from __future__ import annotations


class ClaudeKernelError(Exception):
    """The root. Its message names the cause and the remedy."""


class UsageError(ClaudeKernelError):
    """The request cannot be carried out as made."""


class QuestionClosed(UsageError):
    """A question is answered once; this one no longer waits for an answer."""


class SessionBusy(UsageError):
    """One turn at a time: the running one has not ended."""


class BudgetReached(UsageError):
    """No further turn: the person's own limit is reached."""


class CliError(ClaudeKernelError):
    """The CLI did not keep its side of the protocol."""


class CliDied(CliError):
    """The CLI's process ended where it should have answered."""

    def __init__(self, message: str, *, exit_code: int | None, stderr_tail: str, start_error: str = "") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail
        self.start_error = start_error
        """What it gave itself as the reason for not starting, where it did."""


class TurnFailed(CliError):
    """A turn did not come to its end; `outcome` says how: an API error, a limit, a crash, an interrupt."""

    def __init__(self, message: str, *, outcome: str, session_id: str) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.session_id = session_id


class CliSilent(CliError):
    """The CLI did not answer a control request in time."""


class CliRefused(CliError):
    """The CLI answered a control request with an error of its own words."""

    def __init__(self, message: str, *, subtype: str, code: str | None = None) -> None:
        super().__init__(message)
        self.subtype = subtype
        self.code = code


class EnvironmentTrouble(ClaudeKernelError):
    """Something outside this package is missing or unusable."""


class CliNotFound(EnvironmentTrouble):
    """No claude executable was found in any of the usual places."""


class CliNotStarted(EnvironmentTrouble):
    """An executable was found but the system would not run it."""
