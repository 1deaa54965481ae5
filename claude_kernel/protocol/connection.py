"""One process's side of the conversation: bytes in, events out; decisions in, bytes out. No I/O, no clock.

State has one home here: the open questions, our unanswered requests, the turns, the half-streamed blocks. One
`Connection` serves one process; a new process gets a new one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from claude_kernel.errors import QuestionClosed, UsageError
from claude_kernel.protocol import asking, outcomes, wire
from claude_kernel.protocol import events as ev
from claude_kernel.protocol.blocks import BlockJoiner, decode_tool_results, join_text
from claude_kernel.protocol.decisions import Allow, Decision, Prompt, new_id
from claude_kernel.protocol.dialects import DIRECT, Dialect, encode_tool_result
from claude_kernel.protocol.framing import DEFAULT_LIMIT, LineFramer, LineTooLong
from claude_kernel.protocol.turns import TurnTracker

_LOCAL_OUTPUT = re.compile(r"<local-command-std(?:out|err)>(.*?)</local-command-std(?:out|err)>", re.DOTALL)


def encode_line(message: dict[str, Any]) -> bytes:
    """Always exactly one whole line: the CLI exits at a broken one (scene `bad_input_line`)."""
    try:
        return msgspec.json.encode(message) + b"\n"
    except UnicodeEncodeError:
        return msgspec.json.encode(wire.mend(message)) + b"\n"


class Connection:
    def __init__(self, dialect: Dialect = DIRECT, *, line_limit: int = DEFAULT_LIMIT) -> None:
        self.dialect = dialect
        self.session_id = ""
        self._framer = LineFramer(line_limit)
        self._blocks = BlockJoiner()
        self._turns = TurnTracker()
        self._ledger = outcomes.Ledger()
        self._questions: dict[str, ev.Question] = {}
        self._calls: set[str] = set()  # mcp_message and hook_callback not yet replied to
        self._requests: dict[str, str] = {}
        self._outgoing: list[bytes] = []
        self._results_sent: set[str] = set()  # tools that this side ran
        self._prompts_sent = 0
        self._place = ""
        self._ended = False

    # --- bytes in -------------------------------------------------------------------------------------------------

    def receive_data(self, data: bytes) -> list[ev.Event]:
        """Bytes from the CLI's stdout, in any chunking; `b""` is the end of the stream."""
        events: list[ev.Event] = []
        if not data:
            events.extend(self._end())
            return events
        blocks, turns = self._blocks, self._turns
        for line in self._framer.feed(data):
            row = self._decode(line)
            if type(row) is wire.StreamRow and (turns.current is not None or row.parent_tool_use_id is not None):
                more = blocks.more_text(row)  # by far the most frequent row, by the shortest way
                if more is not None:
                    events.append(more)
                    continue
            if row is not None:
                events.extend(_RECEIVE[type(row)](self, row))
        return events

    def bytes_to_send(self) -> bytes:
        """Replies that this side owes without anyone deciding: to requests it does not know."""
        pending, self._outgoing = b"".join(self._outgoing), []
        return pending

    @property
    def open_questions(self) -> tuple[ev.Question, ...]:
        return tuple(self._questions.values())

    def _decode(self, line: bytes | LineTooLong) -> wire.AnyRow | ev.LineDropped | None:
        """Nothing for a blank line."""
        if isinstance(line, LineTooLong):
            excerpt = line.head.decode("utf-8", "replace")
            return ev.LineDropped(reason="longer than the line limit", size=line.size, excerpt=excerpt)
        try:
            row = wire.decode_row(line)
            if type(row) is wire.SystemRow and row.subtype not in outcomes.SYSTEM:
                return wire.decode_unknown(line)
        except wire.NotARow as error:
            if not line.strip():
                return None
            excerpt = line[:200].decode("utf-8", "replace")
            return ev.LineDropped(reason=f"not a JSON object: {error}", size=len(line), excerpt=excerpt)
        return row

    def _end(self) -> Iterator[ev.Event]:
        if self._ended:
            return
        self._ended = True
        rest = self._framer.end()
        row = self._decode(rest) if rest is not None else None
        if isinstance(row, ev.LineDropped):  # a whole object may lack only its newline; what is not one was cut off
            yield msgspec.structs.replace(row, reason="cut off at the end")
        elif row is not None:
            yield from _RECEIVE[type(row)](self, row)
        yield from self._blocks.flush()
        for question_id in list(self._questions):
            del self._questions[question_id]
            yield ev.QuestionWithdrawn(question_id=question_id, reason="Claude Code ended")
        for request_id, subtype in list(self._requests.items()):
            del self._requests[request_id]
            yield ev.RequestAnswered(request_id=request_id, subtype=subtype, error="Claude Code ended")
        self._calls.clear()
        yield ev.StreamEnded()

    # --- decisions in ---------------------------------------------------------------------------------------------

    def send_prompt(self, prompt: Prompt) -> bytes:
        first = self._prompts_sent == 0
        self._prompts_sent += 1
        self._turns.prompt_sent(prompt.id)
        return encode_line(self.dialect.prompt(prompt, first))

    def request(self, subtype: str, **fields: Any) -> tuple[str, bytes]:
        """A control request; its answer comes as `RequestAnswered` with the id returned here."""
        request_id = new_id()
        line = encode_line(self.dialect.request(request_id, subtype, fields))
        self._requests[request_id] = subtype
        return request_id, line

    def interrupt(self) -> tuple[str, bytes]:
        request = self.request("interrupt")  # may raise: the dialect may have none
        self._turns.interrupt_sent()
        return request

    def answer(self, question_id: str, decision: Decision) -> bytes:
        """Answers a question, once. An allowed tool of the host-tools dialect puts nothing on the wire yet."""
        question = self._questions.get(question_id)
        if question is None:
            raise QuestionClosed(f"question {question_id} is not open: answered, withdrawn, or never asked")
        if self.dialect.host_runs_tools and isinstance(decision, Allow):
            line = b""
        else:
            line = encode_line(self.dialect.answer(question, decision))
        del self._questions[question_id]
        return line

    def send_tool_result(
        self, tool_use_id: str, text: str, images: tuple[ev.Image, ...] = (), is_error: bool = False
    ) -> bytes:
        if not self.dialect.host_runs_tools:
            raise UsageError(f"in the {self.dialect.name} dialect the CLI runs its tools itself")
        self._results_sent.add(tool_use_id)
        return encode_line(encode_tool_result(tool_use_id, text, images, is_error))

    def reply(self, request_id: str, response: dict[str, Any]) -> bytes:
        """Answers an `McpCalled` or a `HookCalled`, once."""
        self._take_call(request_id)
        return encode_line(self.dialect.reply(request_id, response))

    def refuse(self, request_id: str, error: str) -> bytes:
        self._take_call(request_id)
        return encode_line(self.dialect.refuse(request_id, error))

    def _take_call(self, request_id: str) -> None:
        if request_id not in self._calls:
            raise QuestionClosed(f"request {request_id} is not open: answered, withdrawn, or never made")
        self._calls.remove(request_id)

    # --- rows -----------------------------------------------------------------------------------------------------

    def _dropped(self, dropped: ev.LineDropped) -> Iterator[ev.Event]:
        yield dropped

    def _stream(self, row: wire.StreamRow) -> Iterator[ev.Event]:
        if row.parent_tool_use_id is None:
            yield from self._content_came()
        yield from self._blocks.stream(row.event, row.parent_tool_use_id)

    def _assistant(self, row: wire.AssistantRow) -> Iterator[ev.Event]:
        if row.parent_tool_use_id is None:
            yield from self._content_came()
        if row.delta is not None:
            yield from self._blocks.stream(row.delta, row.parent_tool_use_id)
        error = row.error or (row.message.error if row.message else None) or ""
        if error or row.is_api_error_message:
            # An API error is written as if Claude had said it (scenes `api_error`, `not_logged_in`).
            self._ledger.error_kind = error
            yield ev.ErrorReported(message=join_text(row.message.content if row.message else None), code=error)
            return
        self._note_place(row)
        for event in self._blocks.whole(row):
            yield event
            if isinstance(event, ev.ToolStarted) and self.dialect.host_runs_tools:
                question = asking.question_of_host_tool(event)
                self._questions[question.id] = question
                yield ev.QuestionAsked(question=question)

    def _note_place(self, row: wire.AssistantRow | wire.UserRow) -> None:
        """The turn's last row: the CLI can go back to just after any of its own (scene `resume_at`)."""
        if row.parent_tool_use_id is None and row.uuid:
            self._place = row.uuid

    def _user(self, row: wire.UserRow) -> Iterator[ev.Event]:
        if not row.is_replay:
            self._note_place(row)
        finished = list(decode_tool_results(row))
        if finished:
            yield from (event for event in finished if event.tool_use_id not in self._results_sent)
            return
        text = join_text(row.message.content if row.message else None)
        printed = _LOCAL_OUTPUT.findall(text)
        for output in printed:
            yield ev.LocalCommandPrinted(text=output)
        if not printed:
            yield ev.PromptReplayed(
                text=text, uuid=row.uuid, parent=row.parent_tool_use_id, synthetic=bool(row.is_synthetic)
            )

    def _system(self, row: wire.SystemRow) -> Iterator[ev.Event]:
        if row.session_id and row.subtype == "init":
            self.session_id = row.session_id
        yield outcomes.SYSTEM[row.subtype](row)

    def _result(self, row: wire.ResultRow) -> Iterator[ev.Event]:
        origin = str((row.origin or {}).get("kind") or "")
        prompt_ids = row.user_message_uuids or ([row.user_message_uuid] if row.user_message_uuid else [])
        ended = self._turns.result_came(prompt_ids, origin)
        if row.session_id:
            self.session_id = row.session_id
        yield from self._blocks.flush()
        usage = self._ledger.usage(row, self._blocks.context_tokens)
        self._turns.unasked = False
        if not ended:
            outcome = outcomes.outcome_of(row, interrupted=False)
            text = outcomes.text_of(row, outcome)
            yield ev.UnaskedTurnEnded(
                origin=origin, outcome=outcome, text=text, session_id=self.session_id, usage=usage
            )
        for prompt_id in ended:
            interrupted = self._turns.was_interrupted(prompt_id)
            self._turns.close(prompt_id)
            spent = usage if prompt_id == ended[-1] else ev.Usage()  # prompts that shared a turn are paid for once
            ids = {"session_id": self.session_id, "place": self._place}
            yield self._ledger.turn_ended(row, prompt_id, spent, interrupted=interrupted, **ids)
        self._place = ""
        self._ledger.error_kind = ""

    def _lifecycle(self, row: wire.LifecycleRow) -> Iterator[ev.Event]:
        if self._turns.named(row.command_uuid, row.state):
            yield ev.TurnStarted(prompt_id=row.command_uuid)

    def _content_came(self) -> Iterator[ev.Event]:
        if self._turns.running:
            return
        started = self._turns.content_came()
        yield ev.TurnStarted(prompt_id=started) if started else ev.UnaskedTurnStarted()

    def _control_request(self, row: wire.ControlRequestRow | wire.CallbackRow) -> Iterator[ev.Event]:
        request_id, request = row.request_id, row.request
        nested = row.message if isinstance(row, wire.ControlRequestRow) else None
        if request is None and nested is not None:  # indexed wraps the whole request once more
            request_id, request = str(nested.get("request_id") or request_id), nested.get("request")
        request = request if isinstance(request, dict) else {}
        subtype = str(request.get("subtype") or "")
        # In host-tools only this side asks, and an answer would go out as a tool's result: all are refused.
        decode = None if self.dialect.host_runs_tools else asking.REQUESTS.get(subtype)
        event = decode(request_id, request) if decode and request_id else None
        if event is None:
            if request_id:
                error = f"Unsupported control request subtype: {subtype}"
                self._outgoing.append(encode_line(self.dialect.refuse(request_id, error)))
            yield ev.RequestRefused(request_id=request_id, subtype=subtype)
        elif isinstance(event, ev.QuestionAsked):
            if request_id not in self._questions:  # the CLI lists open ones again after a reconnect
                self._questions[request_id] = event.question
                yield event
        else:
            self._calls.add(request_id)
            yield event

    def _cancel(self, row: wire.CancelRow) -> Iterator[ev.Event]:
        self._calls.discard(row.request_id)
        if self._questions.pop(row.request_id, None) is not None:
            yield ev.QuestionWithdrawn(question_id=row.request_id, reason="Claude Code withdrew it")

    def _control_response(self, row: wire.ControlResponseRow) -> Iterator[ev.Event]:
        body = row.response
        request_id = str(row.request_id or body.get("request_id") or "")
        failed = body.get("subtype") == "error"
        bare = bool(row.request_id)  # bridge: the answer itself, with no success wrapper
        response = body if bare and "subtype" not in body else body.get("response")
        error = str(body.get("error") or "refused") if failed else None
        code = body.get("error_code")
        yield from self._answered(request_id, response, error, str(code) if code else None)

    def _rpc_reply(self, row: wire.RpcReplyRow) -> Iterator[ev.Event]:
        error = None
        if row.error is not None:
            error = str(row.error.get("message") or row.error) if isinstance(row.error, dict) else str(row.error)
        if self._turns.is_waiting(row.request_id):  # the reply to `run`, where no `result` came before it
            yield from self._blocks.flush()
            stopped = self._turns.was_interrupted(row.request_id)
            self._turns.close(row.request_id)
            outcome, why = ev.Outcome.FINISHED, ""
            if error is not None:
                outcome, why = (ev.Outcome.INTERRUPTED, "") if stopped else (ev.Outcome.FAILED, error)
            yield ev.TurnEnded(prompt_id=row.request_id, outcome=outcome, error=why, session_id=self.session_id)
        elif row.request_id in self._requests:
            yield from self._answered(row.request_id, row.result, error, None)

    def _answered(self, request_id: str, response: Any, error: str | None, code: str | None) -> Iterator[ev.Event]:
        subtype = self._requests.pop(request_id, None)
        if subtype is None:
            yield ev.Unrecognized(raw={"type": "control_response", "request_id": request_id})
            return
        answer = response if isinstance(response, dict) else {}
        if subtype == "initialize" and error is None:
            yield asking.decode_initialised(answer)
        yield ev.RequestAnswered(request_id=request_id, subtype=subtype, response=answer, error=error, error_code=code)

    def _reset(self, row: wire.ResetRow) -> Iterator[ev.Event]:
        self.session_id = row.new_conversation_id or row.session_id or self.session_id
        self._ledger.reset()
        yield ev.ConversationReset(session_id=self.session_id)

    def _rate_limit(self, row: wire.RateLimitRow) -> Iterator[ev.Event]:
        yield outcomes.decode_rate_limit(row)

    def _suggestion(self, row: wire.SuggestionRow) -> Iterator[ev.Event]:
        yield ev.PromptSuggested(text=row.suggestion)

    def _session_created(self, row: wire.SessionCreatedRow) -> Iterator[ev.Event]:
        self.session_id = row.session_id
        yield ev.SessionStarted(session_id=row.session_id)

    def _error(self, row: wire.ErrorRow) -> Iterator[ev.Event]:
        message, code = outcomes.decode_error(row.error)
        if row.request_id in self._requests:
            yield from self._answered(row.request_id, None, message, code or None)
            return
        self._ledger.error_kind = code
        yield ev.ErrorReported(message=message, code=code)

    def _unknown(self, row: wire.UnknownRow) -> Iterator[ev.Event]:
        yield ev.Unrecognized(raw=row.raw)


_RECEIVE: dict[type, Callable[[Connection, Any], Iterator[ev.Event]]] = {
    ev.LineDropped: Connection._dropped,
    wire.StreamRow: Connection._stream,
    wire.AssistantRow: Connection._assistant,
    wire.UserRow: Connection._user,
    wire.SystemRow: Connection._system,
    wire.ResultRow: Connection._result,
    wire.LifecycleRow: Connection._lifecycle,
    wire.ControlRequestRow: Connection._control_request,
    wire.CallbackRow: Connection._control_request,
    wire.CancelRow: Connection._cancel,
    wire.ControlResponseRow: Connection._control_response,
    wire.RpcReplyRow: Connection._rpc_reply,
    wire.ResetRow: Connection._reset,
    wire.RateLimitRow: Connection._rate_limit,
    wire.SuggestionRow: Connection._suggestion,
    wire.SessionCreatedRow: Connection._session_created,
    wire.ErrorRow: Connection._error,
    wire.UnknownRow: Connection._unknown,
}
