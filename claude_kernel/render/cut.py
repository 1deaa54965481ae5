"""How much of a long text is shown: its head and its tail, and how much was left out. It knows no markup."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Room:
    """What one text may take up. The defaults keep a 5 MB result under 50 KB in the notebook."""

    lines: int = 120
    chars: int = 12_000

    def shrunk(self, factor: float) -> Room:
        return Room(max(4, int(self.lines * factor)), max(200, int(self.chars * factor)))

    def at_most(self, lines: int, chars: int) -> Room:
        return Room(min(self.lines, lines), min(self.chars, chars))


DEFAULT_ROOM = Room()


@dataclass(frozen=True)
class Excerpt:
    head: str
    tail: str = ""
    left_out: str = ""
    """`4,312 lines`, or empty where nothing is missing."""

    def note(self, kept_at: str = "") -> str:
        where = f"; all of it is in {kept_at}" if kept_at else ""
        return f"… {self.left_out} left out{where} …"

    def joined(self, kept_at: str = "") -> str:
        return f"{self.head}\n{self.note(kept_at)}\n{self.tail}" if self.left_out else self.head


def cut_text(text: str, room: Room) -> Excerpt:
    """The cost is that of counting line breaks; only the ends are copied."""
    total_lines = text.count("\n") + 1
    if total_lines <= room.lines and len(text) <= room.chars:
        return Excerpt(text)
    head_chars, head_lines = room.chars * 2 // 3, max(1, room.lines * 2 // 3)
    tail_chars, tail_lines = room.chars - head_chars, max(1, room.lines - head_lines)
    head = _first_lines(text[:head_chars], head_lines)
    tail = _last_lines(text[max(len(head), len(text) - tail_chars) :], tail_lines)
    missing_chars = len(text) - len(head) - len(tail)
    missing_lines = total_lines - head.count("\n") - tail.count("\n") - 2
    left_out = count_of(missing_lines, "line") if missing_lines > 0 else count_of(missing_chars, "character")
    return Excerpt(head, tail, left_out)


def _first_lines(text: str, lines: int) -> str:
    whole = text.split("\n", lines)[:lines]
    # The last line may have been cut by the character limit: better no line than half of one, if there are others.
    return "\n".join(whole[:-1] if len(whole) > 1 and len(whole) < lines else whole)


def _last_lines(text: str, lines: int) -> str:
    whole = text.rsplit("\n", lines)[-lines:]
    return "\n".join(whole[1:] if len(whole) > 1 and len(whole) < lines else whole)


def count_of(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
