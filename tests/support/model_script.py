"""The script language in which a prompt tells the stand-in model what to answer, and the events of that answer.

It must not know HTTP, the CLI's own protocol, the kernel, or any test: it sees requests as the model would, and answers
each from its own messages, so that no conversation is kept.

The last human prompt of a request decides the answer. Its first line that opens with a script word counts; what stands
before that line is ignored, and so are `<system-reminder>` blocks and the notes that the CLI writes itself.

| prompt                      | answer                                                                                |
|-----------------------------|---------------------------------------------------------------------------------------|
| `say:TEXT`                  | TEXT, streamed in several pieces (TEXT may span lines)                                |
| `think:TEXT`                | a thinking block, then TEXT                                                           |
| `tool:NAME:{json}`          | `I will use NAME.`, then that tool call; once it has run: `done: RESULT`              |
| `tools:[[NAME,{json}],…]`   | the same with several calls in one message                                            |
| `steps:[ROUND,…,"TEXT"]`    | one ROUND per request, each `["text", [NAME,{json}],…]`; then TEXT, or `done: RESULT` |
| `loop:[[NAME,{json}],…]`    | the same calls again after every result, for ever                                     |
| `slow:N`                    | N deltas `tick i`, 0.2 s apart; ends when the client hangs up                         |
| `big:N`                     | N characters of Markdown in deltas of 25, as fast as the socket takes them            |
| `fail:STATUS`               | an API error with that HTTP status, marked as not worth a retry                       |
| `hang:`                     | nothing at all until the client hangs up or the server closes                         |
| a `<task-notification>`     | `Noted: SUMMARY`                                                                      |
| anything else               | `You said: …`                                                                         |

A request that offers no tools is one the CLI makes for itself (a title, a summary): it gets no calls, errors, delays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

Json = dict[str, Any]

PIECE_CHARACTERS = 12
BIG_PIECE_CHARACTERS = 25

_WORDS = ("say", "think", "tool", "tools", "steps", "loop", "slow", "big", "fail", "hang")
_WORD = re.compile(rf"^[ \t]*({'|'.join(_WORDS)}):", re.MULTILINE)
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_INTERRUPTED = "[Request interrupted by user"
# Text the CLI puts into user messages on its own: none of it is what a person asked.
_NOTES = (_INTERRUPTED, "[Image: ", "<command-", "<local-command-")
_NOTIFICATION = re.compile(r"<task-notification>.*?</task-notification>", re.DOTALL)

_PAGE = """## Part {n}: what the numbers say

The *median* latency fell from **{n}.4 ms** to `{n}.1 ms`, see [the report](https://example.com/report/{n}).

| quantile | before | after |
|---------:|-------:|------:|
| 50 %     | {n}.40 | {n}.10 |
| 99 %     | {n}.90 | {n}.35 |

```python
def measure(samples: list[float]) -> float:
    return sorted(samples)[len(samples) // 2] * {n}
```

- first, warm the cache;
- then count only what $\\sqrt{{x^2 + {n}}}$ leaves over.

"""


@dataclass(frozen=True)
class Prompt:
    """The last human prompt of a request, and what the tools have answered since."""

    text: str
    rounds: int
    results: tuple[str, ...]

    @property
    def result(self) -> str:
        return " ".join(self.results)


@dataclass(frozen=True)
class Answer:
    """`blocks` as content of an API message; or, with `status`, an API error; or, with `hangs`, silence."""

    blocks: list[Json] = field(default_factory=list)
    piece: int = PIECE_CHARACTERS
    ticks: int = 0
    status: int = 0
    hangs: bool = False


def text_block(text: str) -> Json:
    return {"type": "text", "text": text}


def thinking_block(thinking: str) -> Json:
    return {"type": "thinking", "thinking": thinking, "signature": "c2lnbmVkIGJ5IHRoZSBzdGFuZC1pbg=="}


def tool_block(name: str, tool_input: Json) -> Json:
    return {"type": "tool_use", "id": f"toolu_{uuid4().hex[:20]}", "name": name, "input": tool_input}


def _content_blocks(message: Json) -> list[Json]:
    content = message.get("content", "")
    return [text_block(content)] if isinstance(content, str) else content


def _result_text(block: Json) -> str:
    content = block.get("content", "")
    if isinstance(content, str):
        return _REMINDER.sub("", content).strip()
    parts = (part.get("text", "") if part.get("type") == "text" else f"[{part.get('type')}]" for part in content)
    return _REMINDER.sub("", " ".join(parts)).strip()


def _human_text(message: Json) -> str:
    """What a person said in a user message, or ''. A script word in any of its blocks wins over the other blocks."""
    said: list[str] = []
    notification = ""
    blocks = _content_blocks(message)
    for block in blocks:
        if block.get("type") != "text":
            continue
        # It comes wrapped in a reminder, and its result may quote any script.
        if noted := _NOTIFICATION.search(block["text"]):
            notification = noted[0]
        text = _REMINDER.sub("", _NOTIFICATION.sub("", block["text"])).strip()
        # The CLI joins an unanswered prompt, its interruption and the next prompt into one message.
        if text.startswith(_INTERRUPTED):
            said.clear()
        elif text and not text.startswith(_NOTES):
            said.append(text)
    for text in reversed(said):
        if word := _WORD.search(text):
            return text[word.start() :].strip()
    # Beside a tool's result it only informs: the turn under way goes on.
    if not said and not any(block.get("type") == "tool_result" for block in blocks):
        return notification
    return "\n".join(said)


def find_prompt(request: Json) -> Prompt:
    messages: list[Json] = request.get("messages", [])
    rounds: list[tuple[str, ...]] = []
    for message in reversed(messages):
        if message.get("role") != "user":
            continue
        if text := _human_text(message):
            return Prompt(text, len(rounds), rounds[0] if rounds else ())
        results = tuple(_result_text(b) for b in _content_blocks(message) if b.get("type") == "tool_result")
        if results:
            rounds.append(results)
    return Prompt("", len(rounds), rounds[0] if rounds else ())


def big_text(characters: int) -> str:
    pages: list[str] = []
    length = 0
    while length < characters:
        pages.append(_PAGE.format(n=len(pages) + 1))
        length += len(pages[-1])
    return "".join(pages)[:characters]


def _decode_argument(text: str) -> Any:
    """The JSON value that `text` opens with; whatever follows it is the CLI's or the kernel's addition."""
    return json.JSONDecoder().raw_decode(text.lstrip())[0]


def _call_blocks(calls: list[Any]) -> list[Json]:
    blocks = [text_block(call) if isinstance(call, str) else tool_block(call[0], call[1]) for call in calls]
    if blocks and blocks[0]["type"] == "tool_use":
        names = ", ".join(block["name"] for block in blocks if block["type"] == "tool_use")
        blocks.insert(0, text_block(f"I will use {names}."))
    return blocks


def _answer_steps(steps: list[Any], prompt: Prompt) -> Answer:
    final = steps[-1] if steps and isinstance(steps[-1], str) else None
    rounds = steps[:-1] if final is not None else steps
    if prompt.rounds < len(rounds):
        return Answer(_call_blocks(rounds[prompt.rounds]))
    return Answer([text_block(f"done: {prompt.result}" if final is None else final)])


def _answer_tool(rest: str, prompt: Prompt) -> Answer:
    name, _, tool_input = rest.partition(":")
    return _answer_steps([[[name.strip(), _decode_argument(tool_input)]]], prompt)


def _answer_slow(rest: str, _prompt: Prompt) -> Answer:
    ticks = int(rest.split()[0])
    return Answer([text_block("".join(f"tick {i}\n\n" for i in range(ticks)))], ticks=ticks)


def _answer_big(rest: str, _prompt: Prompt) -> Answer:
    return Answer([text_block(big_text(int(rest.split()[0])))], piece=BIG_PIECE_CHARACTERS)


_ANSWERS: dict[str, Callable[[str, Prompt], Answer]] = {
    "say": lambda rest, _: Answer([text_block(rest)]),
    "think": lambda rest, _: Answer([thinking_block(f"Let me think about that: {rest}"), text_block(rest)]),
    "tool": _answer_tool,
    "tools": lambda rest, prompt: _answer_steps([_decode_argument(rest)], prompt),
    "steps": lambda rest, prompt: _answer_steps(_decode_argument(rest), prompt),
    "loop": lambda rest, _: Answer(_call_blocks(_decode_argument(rest))),
    "slow": _answer_slow,
    "big": _answer_big,
    "fail": lambda rest, _: Answer(status=int(rest.split()[0])),
    "hang": lambda _, __: Answer(hangs=True),
}
_HARMLESS = ("say", "think", "big")


def choose_answer(request: Json) -> Answer:
    prompt = find_prompt(request)
    if _NOTIFICATION.match(prompt.text):
        summary = re.search(r"<summary>(.*?)</summary>", prompt.text, re.DOTALL)
        return Answer([text_block(f"Noted: {summary[1].strip() if summary else 'a task ended'}")])
    word = _WORD.match(prompt.text)
    if word and (request.get("tools") or word[1] in _HARMLESS):
        return _ANSWERS[word[1]](prompt.text[word.end() :].lstrip(" "), prompt)
    return Answer([text_block(f"You said: {prompt.text[:500]}")])


def _cut(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)] or [""]


def _deltas(block: Json, answer: Answer) -> list[Json]:
    match block["type"]:
        case "text" if answer.ticks:
            return [{"type": "text_delta", "text": f"tick {i}\n\n"} for i in range(answer.ticks)]
        case "text":
            return [{"type": "text_delta", "text": piece} for piece in _cut(block["text"], answer.piece)]
        case "thinking":
            pieces = [{"type": "thinking_delta", "thinking": p} for p in _cut(block["thinking"], answer.piece)]
            return [*pieces, {"type": "signature_delta", "signature": block["signature"]}]
        case _:
            encoded = json.dumps(block["input"])
            return [{"type": "input_json_delta", "partial_json": piece} for piece in _cut(encoded, answer.piece)]


_EMPTY: dict[str, Json] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}


def whole_message(request: Json, answer: Answer) -> Json:
    words = sum(len(json.dumps(block).split()) for block in answer.blocks)
    calls = any(block["type"] == "tool_use" for block in answer.blocks)
    return {
        "id": f"msg_{uuid4().hex[:20]}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "stand-in"),
        "content": answer.blocks,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 100,
            "output_tokens": max(10, words),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 50,
        },
    }


def stream_events(request: Json, answer: Answer) -> Iterator[Json]:
    whole = whole_message(request, answer)
    usage = whole["usage"]
    opening = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": opening}
    for index, block in enumerate(answer.blocks):
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **_EMPTY[block["type"]]}}
        for delta in _deltas(block, answer):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    closing = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": closing, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}
