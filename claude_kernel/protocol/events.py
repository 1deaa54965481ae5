"""What happened, as the rest of the package sees it: past-tense facts, one class each.

Events hold no wire spellings and no behaviour. Every event of a sub-agent carries the `parent` tool call that
started it; `None` is the conversation itself.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeAlias

import msgspec

Json: TypeAlias = Any  # whatever a JSON document can hold; tools define their own shapes


class Event(msgspec.Struct, frozen=True):
    """The base of all events."""


# --- the process and the conversation -------------------------------------------------------------------------------


class SlashCommand(msgspec.Struct, frozen=True):
    name: str
    description: str = ""
    argument_hint: str = ""


class Model(msgspec.Struct, frozen=True):
    value: str
    display_name: str = ""
    description: str = ""
    resolved: str = ""
    effort_levels: tuple[str, ...] = ()


class AgentKind(msgspec.Struct, frozen=True):
    name: str
    description: str = ""


class Initialised(Event, frozen=True):
    """The CLI answered `initialize`: it can be prompted."""

    version: str = ""
    mode: str = ""
    commands: tuple[SlashCommand, ...] = ()
    models: tuple[Model, ...] = ()
    agents: tuple[AgentKind, ...] = ()
    output_style: str = ""
    output_styles: tuple[str, ...] = ()
    account: dict[str, Json] = {}
    logged_in: bool | None = None
    """`None` where the CLI does not say."""


class SessionStarted(Event, frozen=True):
    """The CLI says which session, model and tools the coming turn has (again at each turn)."""

    session_id: str
    model: str = ""
    mode: str = ""
    cwd: str = ""
    version: str = ""
    tools: tuple[str, ...] = ()
    mcp_servers: tuple[dict[str, Json], ...] = ()
    commands: tuple[str, ...] = ()


class ConversationCompacted(Event, frozen=True):
    trigger: str = ""
    tokens_before: int | None = None
    tokens_after: int | None = None


class ConversationReset(Event, frozen=True):
    """The context was emptied (`/clear`); the conversation goes on under a new id."""

    session_id: str = ""


class ConversationLost(Event, frozen=True):
    """The conversation could not be resumed; a new one took its place. Made by the session."""

    session_id: str
    reason: str = ""


class StreamEnded(Event, frozen=True):
    """The CLI closed its stdout. Questions still open have been withdrawn before this."""


# --- what Claude says -----------------------------------------------------------------------------------------------


class TextStreamed(Event, frozen=True, gc=False):
    """More text. The increments of a block, joined, are its text; nothing is sent twice."""

    text: str
    parent: str | None = None


class TextFinished(Event, frozen=True):
    """A text block is complete; `text` is the whole of it."""

    text: str
    parent: str | None = None


class ThinkingStreamed(Event, frozen=True):
    text: str
    parent: str | None = None


class ThinkingFinished(Event, frozen=True):
    text: str
    seconds: float | None = None
    parent: str | None = None


class ThinkingCounted(Event, frozen=True):
    """An estimate of the tokens thought so far, also where the thinking itself is not shown."""

    tokens: int


class MessageStarted(Event, frozen=True):
    model: str = ""
    input_tokens: int = 0
    """All of the context sent with this request: fresh, cached and newly cached."""
    parent: str | None = None


class MessageFinished(Event, frozen=True):
    """A request's final output count, as streamed by the API."""

    output_tokens: int = 0
    stop_reason: str | None = None
    parent: str | None = None


# --- tools ----------------------------------------------------------------------------------------------------------


class ToolInputStreamed(Event, frozen=True):
    """A tool call is being written; `fragment` is more of its input's JSON (empty at the start)."""

    tool_use_id: str
    name: str
    fragment: str
    parent: str | None = None


class ToolStarted(Event, frozen=True):
    """Claude called a tool; its input is complete. It may still have to be allowed."""

    tool_use_id: str
    name: str
    input: dict[str, Json]
    parent: str | None = None
    display_name: str = ""


class Image(msgspec.Struct, frozen=True):
    """An image in a tool result or a prompt, base64 as it came."""

    media_type: str
    data: str


class ToolFinished(Event, frozen=True):
    """A tool call ended. `result` is the CLI's structured result (its shape is the tool's own)."""

    tool_use_id: str
    text: str = ""
    images: tuple[Image, ...] = ()
    is_error: bool = False
    result: Json = None
    refused: str | None = None
    """Why it never ran (`permission-rule`, `user-rejected`), where it did not."""
    parent: str | None = None


class TaskStarted(Event, frozen=True):
    """A sub-agent or background command began."""

    task_id: str
    tool_use_id: str | None = None
    description: str = ""
    kind: str = ""
    agent: str = ""
    background: bool = False


class TaskUpdated(Event, frozen=True):
    task_id: str
    status: str = ""
    changes: dict[str, Json] = {}


class TaskFinished(Event, frozen=True):
    """A background task came home (`completed`, `failed`, `stopped`)."""

    task_id: str
    tool_use_id: str | None = None
    status: str = ""
    summary: str = ""
    output_file: str = ""


class BackgroundTasksChanged(Event, frozen=True):
    tasks: tuple[dict[str, Json], ...] = ()


# --- what the CLI asks of us ----------------------------------------------------------------------------------------


class Choice(msgspec.Struct, frozen=True):
    label: str
    description: str = ""
    preview: str = ""


class FormQuestion(msgspec.Struct, frozen=True):
    """One question of an AskUserQuestion form."""

    text: str
    header: str = ""
    choices: tuple[Choice, ...] = ()
    multiple: bool = False


class Dialog(msgspec.Struct, frozen=True):
    """A form that an MCP server asks the person to fill in, or a page it asks them to visit."""

    server: str
    message: str
    schema: dict[str, Json] = {}
    url: str = ""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Something only a person (or a policy in their name) may answer. Answered once, by its id."""

    id: str
    tool_name: str
    input: dict[str, Json]
    tool_use_id: str | None = None
    display_name: str = ""
    description: str = ""
    reason: str = ""
    blocked_path: str | None = None
    suggestions: tuple[dict[str, Json], ...] = ()
    needs_person: bool = False
    """No rule, mode or policy may allow this in a person's place."""
    agent_id: str | None = None
    form: tuple[FormQuestion, ...] = ()
    """The questions, where `tool_name` is AskUserQuestion."""
    dialog: Dialog | None = None
    """The form, where an MCP server asks (`tool_name` is then `elicitation`)."""


class QuestionAsked(Event, frozen=True):
    question: Question


class QuestionWithdrawn(Event, frozen=True):
    """The CLI no longer wants an answer; none can be sent."""

    question_id: str
    reason: str = ""


class McpCalled(Event, frozen=True):
    """A JSON-RPC message for an MCP server that lives in this process."""

    request_id: str
    server: str
    message: dict[str, Json]


class HookCalled(Event, frozen=True):
    request_id: str
    callback_id: str
    input: dict[str, Json]
    tool_use_id: str | None = None


class RequestAnswered(Event, frozen=True):
    """The CLI answered one of our control requests."""

    request_id: str
    subtype: str
    response: dict[str, Json] = {}
    error: str | None = None
    error_code: str | None = None


class RequestRefused(Event, frozen=True):
    """The CLI asked for something we do not know; it was told so."""

    request_id: str
    subtype: str


# --- turns ----------------------------------------------------------------------------------------------------------


class Outcome(Enum):
    """How a turn ended."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    MAX_TURNS = "max turns"
    MAX_BUDGET = "max budget"
    API_ERROR = "api error"
    FAILED = "failed"


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens and cost of one turn. `cost_usd` is `None` where the CLI does not say."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    session_cost_usd: float | None = None
    by_model: dict[str, float] = {}
    """Cost of this turn by model."""
    context_tokens: int | None = None
    """What the last request of the conversation itself held, its answer included."""
    context_window: int | None = None


class TurnStarted(Event, frozen=True):
    """The CLI took up our prompt."""

    prompt_id: str


class TurnEnded(Event, frozen=True):
    """Our turn is over; nothing of it will follow."""

    prompt_id: str | None
    outcome: Outcome
    text: str = ""
    structured: Json = None
    error: str = ""
    error_kind: str = ""
    """The CLI's own word for an API error: `authentication_failed`, `rate_limit`, `api_error`, …"""
    api_status: int | None = None
    session_id: str = ""
    place: str = ""
    """The last row of the turn, by which the conversation can be taken back to here."""
    seconds: float | None = None
    steps: int | None = None
    usage: Usage = Usage()
    refused_tools: tuple[str, ...] = ()
    local_command: str = ""
    exit_code: int | None = None
    stderr_tail: str = ""


class UnaskedTurnStarted(Event, frozen=True):
    """The CLI began a turn that no prompt of ours asked for (a background agent came home)."""

    origin: str = ""


class UnaskedTurnEnded(Event, frozen=True):
    origin: str
    outcome: Outcome
    text: str = ""
    session_id: str = ""
    usage: Usage = Usage()


# --- notices --------------------------------------------------------------------------------------------------------


class StatusChanged(Event, frozen=True):
    """`requesting`, `compacting`, …; `mode` where the permission mode changed."""

    status: str | None = None
    mode: str | None = None


class RateLimited(Event, frozen=True):
    status: str = ""
    resets_at: float | None = None
    kind: str = ""
    details: dict[str, Json] = {}


class RetryNoticed(Event, frozen=True):
    """The API did not answer; the CLI tries again."""

    attempt: int
    attempts: int = 0
    delay_seconds: float | None = None
    error: str = ""
    api_status: int | None = None


class LocalCommandPrinted(Event, frozen=True):
    """What a slash command that runs inside the CLI printed."""

    text: str


class PromptReplayed(Event, frozen=True):
    """The CLI echoed a user message."""

    text: str
    uuid: str | None = None
    parent: str | None = None
    synthetic: bool = False


class PromptSuggested(Event, frozen=True):
    text: str


class ErrorReported(Event, frozen=True):
    """An `error` row: the CLI says that something went wrong, without ending the turn."""

    message: str
    code: str = ""


class SilenceNoticed(Event, frozen=True):
    """The CLI should be working and has sent nothing for this long. Made by the session, which has the clock."""

    seconds: float


class LineDropped(Event, frozen=True):
    """A line could not be used (too long, not JSON, cut off at the end); the stream goes on."""

    reason: str
    size: int
    excerpt: str = ""


class Unrecognized(Event, frozen=True):
    """A message of a type this version does not know. Kept, never fatal."""

    raw: dict[str, Json]
