"""Replays recorded conversations through a `Connection`. It knows the recordings' form and no scene's content.

What the CLI wrote is fed in as bytes, cut at any size. What the recorder sent goes through the connection's own
commands, so that its state is that of a live one. Request ids, which the connection draws itself, are put into the
CLI's answers on the way in, and the recorded ones back into the events, so that two replays can be compared.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from claude_kernel.protocol import Allow, Answers, Connection, Decision, Deny, Prompt
from claude_kernel.protocol import events as ev

Json = dict[str, Any]

FOLDER = Path(__file__).parent.parent / "transcripts"
SCENES = sorted(path.stem for path in FOLDER.glob("*.jsonl"))
WHOLE = 1 << 30
CHUNK_SIZES = (1, 7, 64, 4096)


class Row(NamedTuple):
    direction: str
    message: Json


class Replayed(NamedTuple):
    events: list[ev.Event]
    sent: list[tuple[Json, bytes]]
    """Each recorded message of ours, and the bytes that the connection made in its place."""
    connection: Connection


@functools.cache
def load(scene: str) -> tuple[tuple[Row, ...], ...]:
    """The scene's processes, each as its rows in order."""
    processes: list[list[Row]] = []
    for line in (FOLDER / f"{scene}.jsonl").read_text("utf-8").splitlines():
        recorded = json.loads(line)
        if recorded["dir"] == "=" and "argv" in recorded["m"]:
            processes.append([])
        elif recorded["dir"] in "<>":
            processes[-1].append(Row(recorded["dir"], recorded["m"]))
    return tuple(map(tuple, processes))


def to_line(message: Json) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


def cli_rows(scene: str) -> list[Json]:
    return [row.message for process in load(scene) for row in process if row.direction == "<"]


def replay(process: tuple[Row, ...], *sizes: int, junk: Mapping[int, bytes] = MappingProxyType({})) -> Replayed:
    """Replays one process, its stdout cut into chunks of these sizes in turn, with junk lines before rows of it."""
    connection = Connection()
    driver = _Driver(connection, sizes or (WHOLE,))
    pending: list[bytes] = []
    for position, row in enumerate(process):
        pending.append(junk.get(position, b""))
        if row.direction == "<":
            pending.append(to_line(driver.with_our_ids(row.message)))
            continue
        driver.feed(b"".join(pending))
        pending.clear()
        driver.send(row.message)
    driver.feed(b"".join(pending))
    driver.events += connection.receive_data(b"")
    return Replayed([driver.with_recorded_ids(event) for event in driver.events], driver.sent, connection)


@functools.cache
def replays_of(scene: str) -> tuple[Replayed, ...]:
    """Each process of a scene, replayed whole."""
    return tuple(map(replay, load(scene)))


@functools.cache
def events_of(scene: str) -> tuple[ev.Event, ...]:
    """All events of a scene, its processes one after another."""
    return tuple(event for replayed in replays_of(scene) for event in replayed.events)


class _Driver:
    def __init__(self, connection: Connection, sizes: tuple[int, ...]) -> None:
        self.connection = connection
        self._sizes = itertools.cycle(sizes)
        self.events: list[ev.Event] = []
        self.sent: list[tuple[Json, bytes]] = []
        self._our_ids: dict[str, str] = {}
        self._recorded_ids: dict[str, str] = {}

    def feed(self, data: bytes) -> None:
        start, size, receive, add = 0, len(data), self.connection.receive_data, self.events.extend
        while start < size:
            end = start + next(self._sizes)
            add(receive(data[start:end]))
            start = end

    def send(self, message: Json) -> None:
        send = {"user": self._prompt, "control_request": self._request, "control_response": self._answer}
        self.sent.append((message, send[message["type"]](message)))

    def with_our_ids(self, message: Json) -> Json:
        if message["type"] != "control_response":
            return message
        response = message["response"]
        return {**message, "response": {**response, "request_id": self._our_ids[response["request_id"]]}}

    def with_recorded_ids(self, event: ev.Event) -> ev.Event:
        if not isinstance(event, ev.RequestAnswered):
            return event
        return msgspec.structs.replace(event, request_id=self._recorded_ids[event.request_id])

    def _prompt(self, message: Json) -> bytes:
        content = message["message"]["content"]
        blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        prompt = Prompt(
            text="".join(block["text"] for block in blocks if block["type"] == "text"),
            images=tuple(
                ev.Image(block["source"]["media_type"], block["source"]["data"])
                for block in blocks
                if block["type"] == "image"
            ),
            id=message.get("uuid") or f"prompt {len(self.sent)}",
        )
        return self.connection.send_prompt(prompt)

    def _request(self, message: Json) -> bytes:
        fields = dict(message["request"])
        subtype = fields.pop("subtype")
        ours, line = (
            self.connection.interrupt() if subtype == "interrupt" else self.connection.request(subtype, **fields)
        )
        self._our_ids[message["request_id"]] = ours
        self._recorded_ids[ours] = message["request_id"]
        return line

    def _answer(self, message: Json) -> bytes:
        response = message["response"]
        request_id = response["request_id"]
        question = next((asked for asked in self.connection.open_questions if asked.id == request_id), None)
        if question is None:
            return self.connection.reply(request_id, response["response"])
        return self.connection.answer(request_id, decide_as_recorded(question, response))


def decide_as_recorded(question: ev.Question, response: Json) -> Decision:
    if response["subtype"] == "error":
        return Deny(reason=response["error"])
    recorded = response["response"]
    if recorded["behavior"] == "deny":
        return Deny(reason=recorded["message"])
    given, answers = recorded["updatedInput"], recorded["updatedInput"].get("answers", {})
    if (
        answers
        and answers.keys() <= {asked.text for asked in question.form}
        and given.keys() == {*question.input, "answers"}
    ):
        return Answers(answers)
    return Allow(input=given, permissions=tuple(recorded.get("updatedPermissions", ())))


def feed(connection: Connection, *messages: Json) -> list[ev.Event]:
    """What the connection makes of these rows."""
    return connection.receive_data(b"".join(map(to_line, messages)))
