"""Which turn is ours. It knows prompt ids and the rows that name them, and nothing of their content.

A `result` is not always the end, nor always ours: a background agent that comes home starts a turn of its own (scene
`subagent`), and an interrupted turn's result may come late. Where the CLI sends `command_lifecycle` rows they name the
prompt (scene `two_messages_one_turn`); older ones are answered in order, and a foreign `origin` is never ours.
"""

from __future__ import annotations

import msgspec

OUR_ORIGINS = frozenset({"human", "user", "sdk"})


class _Prompt(msgspec.Struct):
    started: bool = False
    interrupted: bool = False


class TurnTracker:
    def __init__(self) -> None:
        self._waiting: dict[str, _Prompt] = {}  # in the order sent
        self._names_turns = False  # this CLI sends command_lifecycle rows
        self.current: str | None = None
        """The prompt whose turn is running."""
        self.unasked = False
        """A turn that no prompt of ours began is running."""

    @property
    def running(self) -> bool:
        return self.current is not None or self.unasked

    def prompt_sent(self, prompt_id: str) -> None:
        self._waiting[prompt_id] = _Prompt()

    def interrupt_sent(self) -> None:
        for prompt in self._waiting.values():
            prompt.interrupted = True

    def was_interrupted(self, prompt_id: str) -> bool:
        prompt = self._waiting.get(prompt_id)
        return prompt is not None and prompt.interrupted

    def named(self, prompt_id: str, state: str) -> bool:
        """A `command_lifecycle` row. True where it starts a turn of ours."""
        self._names_turns = True
        prompt = self._waiting.get(prompt_id)
        if prompt is None or state != "started" or prompt.started:
            return False
        self._start(prompt_id)
        self.unasked = False
        return True

    def content_came(self) -> str | None:
        """Something of a turn came. Returns the prompt that it starts, where only order can tell."""
        if self.running:
            return None
        if self._waiting and not self._names_turns:
            prompt_id = next(iter(self._waiting))
            self._start(prompt_id)
            return prompt_id
        self.unasked = True
        return None

    def result_came(self, prompt_ids: list[str], origin: str) -> list[str]:
        """The prompts that a `result` row ends, none where it is not ours."""
        ended = [prompt_id for prompt_id in prompt_ids if prompt_id in self._waiting]
        if not ended and not prompt_ids and (not origin or origin in OUR_ORIGINS):
            oldest = self.current or next(iter(self._waiting), None)
            ended = [oldest] if oldest and (self.current or not self.unasked) else []
        return ended

    def is_waiting(self, prompt_id: str) -> bool:
        return prompt_id in self._waiting

    def close(self, prompt_id: str) -> None:
        self._waiting.pop(prompt_id, None)
        self._find_current()

    def _start(self, prompt_id: str) -> None:
        self._waiting[prompt_id].started = True
        self._find_current()

    def _find_current(self) -> None:
        started = (prompt_id for prompt_id, prompt in self._waiting.items() if prompt.started)
        self.current = next(started, None)
