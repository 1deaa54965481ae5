"""Permission rules: the CLI's suggestions in words, and a rule made up where it suggests none. Pure.

A suggestion is a set: for a command that writes files the rule alone changes nothing, and only together with the mode
and the folder is the next one not asked for (tried with CLI 2.1.326). So an offer takes all that may be kept, or none.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec

from claude_kernel.prompts.scene import Scene
from claude_kernel.protocol import events
from claude_kernel.render.visible import exact_text, one_line

Suggestion = dict[str, Any]

SESSION, PROJECT, USER = "session", "localSettings", "userSettings"

# Never offered: a mode in which nobody is asked any more, whatever the CLI suggests.
_OFFERED_MODES = {"acceptEdits": "accept edits", "default": "ask for each edit", "plan": "plan first"}
_EDITING_TOOLS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
_EVERY = {"Bash": "every command", "mcp__notebook__run_python": "every piece of Python"}
_LABEL_CHARS = 52
_SHORT_COMMAND_CHARS = 24


class Kept(msgspec.Struct, frozen=True):
    """What an answer keeps beyond this once."""

    permissions: tuple[Suggestion, ...] = ()
    rules: tuple[str, ...] = ()
    """In words, each what it allows."""
    mode: str = ""
    folders: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """All of it, in full: nothing is kept that is not said."""
        allowed = [" and ".join(f"“{rule}”" for rule in self.rules)] if self.rules else []
        return ", ".join([*allowed, *self._besides])

    @property
    def _besides(self) -> list[str]:
        lasting = any(entry["destination"] != SESSION for entry in self.permissions)
        mode = [_OFFERED_MODES[self.mode] + " this session" * lasting] if self.mode else []
        return mode + [f"add folder {folder}" for folder in self.folders]

    label: str = ""
    """The rules for a button; empty where they are just what the card shows."""

    @property
    def besides(self) -> str:
        return one_line(" and ".join(self._besides), _LABEL_CHARS + 20)


def find_kept(question: events.Question, scene: Scene, destination: str) -> Kept:
    """What to keep at this place; empty where nothing may be kept there."""
    suggested = [entry for entry in question.suggestions if isinstance(entry, dict)]
    rules = [rule for entry in suggested for rule in _rules_in(entry)]
    mode = next((found for entry in suggested if (found := _mode_in(entry))), "")
    folders = [folder for entry in suggested for folder in _folders_in(entry) if scene.is_outside(folder)]
    if not rules and (destination != SESSION or not (mode or folders)):
        made_up = _made_up(question, scene)
        rules, mode, folders = ([made_up] if made_up else []), "", []
    label = one_line(" and ".join(_short(rule, question) for rule in rules), _LABEL_CHARS)
    return msgspec.structs.replace(_to_kept(rules, mode, folders, destination), label=label)


def _short(rule: Suggestion, question: events.Question) -> str:
    """A rule for exactly the long command shown needs no words; a file is known by its name."""
    content, words = rule.get("ruleContent"), rule_words(rule)
    same = rule["toolName"] == "Bash" and content is not None and content == question.input.get("command")
    if same and len(words) > _SHORT_COMMAND_CHARS:
        return ""
    if rule["toolName"] == "Edit" and content == f"/{question.input.get('file_path')}":
        return f"edits to {content.rsplit('/', 1)[-1]}"
    return f"“{one_line(words, _LABEL_CHARS - 2)}”" if rule["toolName"] == "Bash" and content is not None else words


def _to_kept(rules: list[Suggestion], mode: str, folders: list[str], destination: str) -> Kept:
    permissions: list[Suggestion] = []
    if rules:
        permissions.append({"type": "addRules", "rules": rules, "behavior": "allow", "destination": destination})
    if folders:
        permissions.append({"type": "addDirectories", "directories": folders, "destination": destination})
    if mode:  # a mode is never written to a settings file
        permissions.append({"type": "setMode", "mode": mode, "destination": SESSION})
    return Kept(tuple(permissions), tuple(map(rule_words, rules)), mode, tuple(map(exact_text, folders)))


def _rules_in(entry: Suggestion) -> list[Suggestion]:
    if entry.get("type") != "addRules" or entry.get("behavior", "allow") != "allow":
        return []
    rules = entry.get("rules")
    found = []
    for rule in rules if isinstance(rules, list) else []:
        name, content = (rule.get("toolName"), rule.get("ruleContent")) if isinstance(rule, dict) else (None, None)
        if isinstance(name, str) and name and (content is None or isinstance(content, str)):
            found.append({"toolName": name} if content is None else {"toolName": name, "ruleContent": content})
    return found


def _mode_in(entry: Suggestion) -> str:
    mode = entry.get("mode") if entry.get("type") == "setMode" else None
    return mode if isinstance(mode, str) and mode in _OFFERED_MODES else ""


def _folders_in(entry: Suggestion) -> list[str]:
    folders = entry.get("directories") if entry.get("type") == "addDirectories" else None
    return [folder for folder in folders if isinstance(folder, str)] if isinstance(folders, list) else []


def _made_up(question: events.Question, scene: Scene) -> Suggestion | None:
    """As narrow as the request: this command, this file, this site; else the tool itself."""
    if question.needs_person:
        return None
    command, path = question.input.get("command"), question.input.get("file_path")
    if question.tool_name == "Bash":
        return {"toolName": "Bash", "ruleContent": command} if isinstance(command, str) and command else None
    if question.tool_name in _EDITING_TOOLS:
        path = path or question.input.get("notebook_path")
        # `//` is an absolute path; `Edit` is the rule for every tool that changes files
        return {"toolName": "Edit", "ruleContent": f"/{scene.path(path)}"} if isinstance(path, str) and path else None
    if question.tool_name == "WebFetch":
        host = _host(question.input.get("url"))
        return {"toolName": "WebFetch", "ruleContent": f"domain:{host}"} if host else None
    return {"toolName": question.tool_name}


def _host(url: Any) -> str:
    try:
        return urlsplit(url).hostname or "" if isinstance(url, str) else ""
    except ValueError:
        return ""


def rule_words(rule: Suggestion) -> str:
    name, content = exact_text(rule["toolName"]), rule.get("ruleContent")
    if content is None:
        return _EVERY.get(name) or f"every use of {name}"
    content = exact_text(content)
    place = content[1:] if content.startswith("//") else content
    if name == "Bash":
        return content
    if name == "WebFetch":
        return f"pages of {content.removeprefix('domain:')}"
    return {"Read": f"reading {place}", "Edit": f"edits to {place}"}.get(name, f"{name}({content})")
