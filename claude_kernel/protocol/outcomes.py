"""How things ended and what they cost: `result`, `system` and error rows to events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from claude_kernel.protocol import events as ev
from claude_kernel.protocol.wire import RateLimitRow, ResultRow, SystemRow

_OUTCOMES = {
    "error_max_turns": ev.Outcome.MAX_TURNS,
    "error_max_budget_usd": ev.Outcome.MAX_BUDGET,
}
_NOT_FAILED = (ev.Outcome.FINISHED, ev.Outcome.INTERRUPTED)


def outcome_of(row: ResultRow, *, interrupted: bool) -> ev.Outcome:
    """Success is `is_error: false`, not `subtype`: an API error says "success" (scene `api_error`)."""
    reason = row.terminal_reason or ""
    if reason.startswith("aborted") or (interrupted and row.subtype == "error_during_execution"):
        return ev.Outcome.INTERRUPTED
    if row.subtype in _OUTCOMES:
        return _OUTCOMES[row.subtype]
    if reason == "api_error" or row.api_error_status is not None:
        return ev.Outcome.API_ERROR
    failed = row.subtype.startswith("error") if row.is_error is None else row.is_error
    return ev.Outcome.FAILED if failed else ev.Outcome.FINISHED


class Ledger:
    """What one process has spent so far, and the last error it named."""

    def __init__(self) -> None:
        self._total = 0.0
        self.error_kind = ""

    def reset(self) -> None:
        self._total = 0.0  # `/clear` starts the CLI's own count again (scene `slash`)

    def usage(self, row: ResultRow, context_tokens: int | None) -> ev.Usage:
        """`total_cost_usd` is the session's; the turn's is the usage since the last result, or the difference."""
        by_model = {
            model: _number(spent.get("costUSD")) or 0.0
            for model, spent in (row.model_usage_since_last_result or {}).items()
        }
        cost: float | None = None
        if row.model_usage_since_last_result is not None:
            cost = sum(by_model.values())
        elif row.total_cost_usd is not None:
            cost = max(0.0, row.total_cost_usd - self._total)
        if row.total_cost_usd is not None:
            self._total = row.total_cost_usd
        windows = [spent.get("contextWindow") for spent in (row.model_usage or {}).values()]
        usage = row.usage or {}
        return ev.Usage(
            input_tokens=_count(usage, "input_tokens"),
            output_tokens=_count(usage, "output_tokens"),
            cache_read_tokens=_count(usage, "cache_read_input_tokens"),
            cache_write_tokens=_count(usage, "cache_creation_input_tokens"),
            cost_usd=cost,
            session_cost_usd=row.total_cost_usd,
            by_model=by_model,
            context_tokens=context_tokens,
            context_window=max((size for size in windows if isinstance(size, int)), default=None),
        )

    def turn_ended(
        self,
        row: ResultRow,
        prompt_id: str,
        usage: ev.Usage,
        *,
        interrupted: bool,
        session_id: str,
        place: str = "",
    ) -> ev.TurnEnded:
        outcome = outcome_of(row, interrupted=interrupted)
        said = text_of(row, outcome)
        seconds = row.duration_seconds if row.duration_ms is None else row.duration_ms / 1000
        failed = outcome not in _NOT_FAILED
        kind = self.error_kind or row.api_error_type or ""
        return ev.TurnEnded(
            prompt_id=prompt_id,
            outcome=outcome,
            text="" if failed else said,
            structured=row.structured_output,
            error=said if failed else "",
            error_kind=kind if failed else "",
            api_status=row.api_error_status,
            session_id=session_id,
            place=place,
            seconds=seconds,
            steps=row.num_turns if row.num_turns is not None else row.turn_count,
            usage=usage,
            refused_tools=tuple(str(entry.get("tool_name") or "") for entry in row.permission_denials or ()),
            local_command=row.local_command,
        )


def text_of(row: ResultRow, outcome: ev.Outcome) -> str:
    """What a result says: the answer, or what went wrong."""
    text = row.result if isinstance(row.result, str) else ""
    if outcome in _NOT_FAILED:
        return text
    if row.errors:
        return "\n".join(map(str, row.errors))
    if row.error is not None:
        return decode_error(row.error)[0]
    return text or row.subtype


def decode_error(error: Any) -> tuple[str, str]:
    """Message and code of an `error` field: a word, or an object with `code` (bridge) or `type` (indexed)."""
    if isinstance(error, dict):
        return str(error.get("message") or error), str(error.get("code") or error.get("type") or "")
    return str(error or "unknown error"), ""


def decode_rate_limit(row: RateLimitRow) -> ev.RateLimited:
    details = row.rate_limit_info
    return ev.RateLimited(
        status=str(details.get("status") or ""),
        resets_at=_number(details.get("resetsAt")),
        kind=str(details.get("rateLimitType") or ""),
        details=details,
    )


def _init(row: SystemRow) -> ev.Event:
    return ev.SessionStarted(
        session_id=row.session_id,
        model=row.model,
        mode=row.permission_mode or "",
        cwd=row.cwd,
        version=row.claude_code_version,
        tools=tuple(_name(tool) for tool in row.tools),
        mcp_servers=tuple(server for server in row.mcp_servers if isinstance(server, dict)),
        commands=tuple(_name(command).lstrip("/") for command in row.slash_commands),
    )


def _name(entry: Any) -> str:
    """Tools and commands are names in the real CLI and objects with a name in bridge."""
    return str(entry.get("name") or "") if isinstance(entry, dict) else str(entry)


def _compacted(row: SystemRow) -> ev.Event:
    return ev.ConversationCompacted(
        trigger=str(row.compact_metadata.get("trigger") or ""),
        tokens_before=row.compact_metadata.get("pre_tokens"),
        tokens_after=row.compact_metadata.get("post_tokens"),
    )


SYSTEM: dict[str, Callable[[SystemRow], ev.Event]] = {
    "init": _init,
    "status": lambda row: ev.StatusChanged(status=row.status, mode=row.permission_mode),
    "thinking_tokens": lambda row: ev.ThinkingCounted(tokens=row.estimated_tokens),
    "task_started": lambda row: ev.TaskStarted(
        task_id=row.task_id,
        tool_use_id=row.tool_use_id,
        description=row.description,
        kind=row.task_type,
        agent=row.subagent_type,
        background=row.is_backgrounded,
    ),
    "task_updated": lambda row: ev.TaskUpdated(
        task_id=row.task_id, status=str(row.patch.get("status") or ""), changes=row.patch
    ),
    "task_progress": lambda row: ev.TaskUpdated(
        task_id=row.task_id,
        status="running",
        changes={"description": row.description, "tool": row.last_tool_name, "usage": row.usage},
    ),
    "task_notification": lambda row: ev.TaskFinished(
        task_id=row.task_id,
        tool_use_id=row.tool_use_id,
        status=row.status or "",
        summary=row.summary,
        output_file=row.output_file,
    ),
    "background_tasks_changed": lambda row: ev.BackgroundTasksChanged(tasks=tuple(row.tasks)),
    "compact_boundary": _compacted,
    "api_retry": lambda row: ev.RetryNoticed(
        attempt=row.attempt,
        attempts=row.max_retries,
        delay_seconds=None if row.retry_delay_ms is None else row.retry_delay_ms / 1000,
        error=decode_error(row.error)[0],
        api_status=row.error_status,
    ),
}


def _number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:  # JSON's integers have no limit
        return None


def _count(usage: dict[str, Any], key: str) -> int:
    value = usage.get(key)
    return value if isinstance(value, int) else 0
