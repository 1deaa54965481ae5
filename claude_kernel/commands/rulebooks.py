"""Claude Code's settings files as far as they decide about permissions: where they are, what they say, which count.

What is said here of the CLI was seen with 2.1.326, by its own `get_settings`. It reads files and starts nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from claude_kernel.cli import MODES
from claude_kernel.trust import Trust, own_folder, read_trust

_MANAGED_FOLDERS = {"darwin": "/Library/Application Support/ClaudeCode", "win32": r"C:\Program Files\ClaudeCode"}
_OF_THE_FOLDER = ("local", "project")
_NOT_FROM_A_FOLDER = ("bypassPermissions", "auto")
"""Modes that the CLI does not take from a folder's settings: it starts in `default` then."""


class Rulebook(msgspec.Struct, frozen=True, kw_only=True):
    """One settings file, or the kernel's own settings, which reach the CLI on its command line."""

    scope: str
    path: str
    found: bool = False
    broken: str = ""
    """Why it cannot be read; the CLI then passes over the whole file."""
    unused: str = ""
    """Why nothing that it says counts."""
    rules_unused: str = ""
    """Why its rules do not count, while its mode does."""
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    mode: str = ""
    forbids_bypass: bool = False
    managed_rules_only: bool = False

    @property
    def counts(self) -> bool:
        return self.found and not self.broken and not self.unused


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """All that applies in a folder, the strongest file first."""

    folder: str
    trust: Trust
    rulebooks: tuple[Rulebook, ...]

    @property
    def broken(self) -> tuple[Rulebook, ...]:
        return tuple(book for book in self.rulebooks if book.broken)

    @property
    def bypass_forbidden_by(self) -> Rulebook | None:
        return next((book for book in self.rulebooks if book.counts and book.forbids_bypass), None)

    @property
    def mode_from(self) -> Rulebook | None:
        """The strongest file that names a mode."""
        return next((book for book in self.rulebooks if book.counts and book.mode), None)

    @property
    def mode(self) -> str:
        """The mode that a conversation starts in."""
        book = self.mode_from
        return "default" if book is None or self.mode_refused else book.mode

    @property
    def mode_refused(self) -> str:
        """Why the mode that the strongest file names is not taken."""
        book = self.mode_from
        if book is None:
            return ""
        if book.scope in _OF_THE_FOLDER and book.mode in _NOT_FROM_A_FOLDER:
            return f"Claude Code does not take {book.mode} from the settings of a folder"
        if book.mode == "bypassPermissions" and self.bypass_forbidden_by is not None:
            return f"{self.bypass_forbidden_by.path} disables it"
        return ""


def managed_folder(platform: str = sys.platform) -> Path:
    return Path(_MANAGED_FOLDERS.get(platform, "/etc/claude-code"))


def read_policy(folder: Path, managed: Path | None = None) -> Policy:
    trust = read_trust(str(folder))
    books = [
        *(_read("managed", path) for path in _managed_files(managed or managed_folder())),
        *_kernel_settings(),
        *(_read("local", path) for path in _local_files(folder)),
        _read("project", folder / ".claude" / "settings.json"),
        _read("user", own_folder() / "settings.json"),
    ]
    if not trust.trusted:
        books = [_unused(book) if book.scope in _OF_THE_FOLDER else book for book in books]
    if any(book.managed_rules_only for book in books):
        books = [book if book.scope == "managed" else _without_rules(book) for book in books]
    return Policy(folder=str(folder), trust=trust, rulebooks=tuple(books))


def _unused(book: Rulebook) -> Rulebook:
    return msgspec.structs.replace(book, unused="the folder is not trusted")


def _without_rules(book: Rulebook) -> Rulebook:
    return msgspec.structs.replace(book, rules_unused="managed settings allow no rules but their own")


def _kernel_settings() -> list[Rulebook]:
    from claude_kernel.settings import load_settings

    rows = load_settings().rows
    return [
        Rulebook(scope="kernel", path=row.source, found=True, mode=row.value)
        for row in rows
        if row.name == "mode" and row.value
    ]


def _managed_files(folder: Path) -> list[Path]:
    """Files beside the first one are merged over it in the order of their names, so the last is the strongest."""
    try:
        more = sorted(path for path in (folder / "managed-settings.d").glob("*.json") if not path.name.startswith("."))
    except OSError:
        more = []
    return [*reversed(more), folder / "managed-settings.json"]


def _local_files(folder: Path) -> list[Path]:
    """The local settings of a folder inside a repository are those of the repository's root as well."""
    name = Path(".claude", "settings.local.json")
    root = next((base for base in (folder, *folder.parents) if (base / ".git").exists()), folder)
    return [folder / name] if root == folder else [root / name, folder / name]


def _read(scope: str, path: Path) -> Rulebook:
    book = Rulebook(scope=scope, path=str(path), found=True)
    try:
        settings = json.loads(path.read_text("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return msgspec.structs.replace(book, found=False)
    except json.JSONDecodeError as error:
        return _broken(book, f"line {error.lineno}, column {error.colno}: {error.msg}")
    except UnicodeDecodeError:
        return _broken(book, "it is not UTF-8 text")
    except OSError as error:
        return _broken(book, error.strerror or str(error))
    if not isinstance(settings, dict):
        return _broken(book, "it holds no JSON object")
    permissions = settings.get("permissions", {})
    if not isinstance(permissions, dict):
        return _broken(book, "`permissions` is no JSON object")
    mode = permissions.get("defaultMode") or ""
    mode = "default" if mode == "manual" else mode
    if mode and mode not in MODES:
        return _broken(book, f"there is no mode {mode!r}; there are {', '.join(MODES)}")
    return msgspec.structs.replace(
        book,
        allow=_rules(permissions.get("allow")),
        ask=_rules(permissions.get("ask")),
        deny=_rules(permissions.get("deny")),
        mode=mode,
        forbids_bypass=permissions.get("disableBypassPermissionsMode") == "disable",
        managed_rules_only=scope == "managed" and settings.get("allowManagedPermissionRulesOnly") is True,
    )


def _broken(book: Rulebook, why: str) -> Rulebook:
    return msgspec.structs.replace(book, broken=why)


def _rules(value: Any) -> tuple[str, ...]:
    return tuple(rule for rule in value if isinstance(rule, str)) if isinstance(value, list) else ()
