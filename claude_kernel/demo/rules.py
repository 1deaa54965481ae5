"""What needs permission: the modes and rules of the real CLI, as far as the demo's own tools need them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Json = dict[str, Any]

MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions")
PERSON_ONLY = frozenset({"AskUserQuestion", "ExitPlanMode"})
EDITS = frozenset({"Write", "Edit"})
_LOOKS = frozenset({"Read", "Glob", "Grep", "TodoWrite", "Task"})


class Rules:
    """`allow` and `deny` hold rules as people write them: `Read`, `Bash(git status)`, `Bash(git:*)`."""

    def __init__(self, folder: Path, mode: str = "default", allow: list[str] | None = None) -> None:
        self.folder = folder
        self.mode = mode
        self.allow = allow or []
        self.deny: list[str] = []

    def decide(self, tool: str, given: Json) -> str:
        """`allow`, `ask`, or why not."""
        if tool in PERSON_ONLY:
            return "ask"
        if any(_matches(rule, tool, given) for rule in self.deny):
            return f"A rule forbids {tool} here."
        if self.mode == "bypassPermissions" or any(_matches(rule, tool, given) for rule in self.allow):
            return "allow"
        inside = self.is_inside(given)
        if tool in _LOOKS and inside:
            return "allow"
        if tool in EDITS and inside and self.mode == "acceptEdits":
            return "allow"
        return f"The mode is dontAsk, and no rule allows {tool}." if self.mode == "dontAsk" else "ask"

    def is_inside(self, given: Json) -> bool:
        path = given.get("file_path") or given.get("path")
        return path is None or (self.folder / str(path)).resolve().is_relative_to(self.folder)

    def suggest(self, tool: str, given: Json) -> list[Json]:
        if tool in PERSON_ONLY:
            return []
        if tool in EDITS:
            return [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]
        rule = {"toolName": tool} | ({"ruleContent": given["command"]} if tool == "Bash" else {})
        return [{"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "localSettings"}]

    def learn(self, updates: list[Json]) -> None:
        """For as long as this process lives: a demo writes nobody's settings."""
        for update in updates:
            if update.get("type") == "setMode" and update.get("mode") in MODES:
                self.mode = update["mode"]
            elif update.get("type") == "addRules" and update.get("behavior") == "allow":
                self.allow += [_written(rule) for rule in update.get("rules", [])]


def _written(rule: Json) -> str:
    content = rule.get("ruleContent")
    return str(rule["toolName"]) if content is None else f"{rule['toolName']}({content})"


def _matches(rule: str, tool: str, given: Json) -> bool:
    name, _, content = rule.removesuffix(")").partition("(")
    if name != tool and not (name == "Edit" and tool in EDITS):
        return False
    if not content:
        return True
    if tool == "Bash":
        command = str(given.get("command", ""))
        if content.endswith(":*"):
            # A prefix rule speaks of one command: joined ones are another.
            return command.startswith(content[:-2]) and not any(sign in command for sign in ";&|`$<>\n(")
        return command == content
    return content == f"/{given.get('file_path')}"
