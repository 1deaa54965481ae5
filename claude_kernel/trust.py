"""Whether a folder's own settings may run. It reads files, asks nobody and starts nothing.

In pipe mode the CLI skips its workspace-trust dialog, so the hooks and MCP servers of a folder that was just cloned
would run as soon as it starts. Until the person has trusted the folder in the CLI itself, only their own settings are
used there.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

_BRINGS = (".claude/settings.json", ".claude/settings.local.json", ".mcp.json")


class Trust(msgspec.Struct, frozen=True):
    trusted: bool
    brings: tuple[str, ...] = ()
    """What of the folder would run, where it is not trusted."""

    @property
    def setting_sources(self) -> tuple[str, ...] | None:
        return None if self.trusted else ("user",)

    def notice(self) -> str:
        found = ", ".join(self.brings)
        return (
            f"This folder brings settings of its own ({found}) and is not trusted yet, so only your own settings are "
            "used here. To trust it, run claude once in this folder in a terminal, then begin anew "
            "(in a notebook: `%claude restart`)."
        )


def read_trust(folder: str, environ: Mapping[str, str] | None = None) -> Trust:
    """A folder that brings nothing needs no trust; one above which the person trusted counts as trusted."""
    environ = os.environ if environ is None else environ
    here = Path(folder).resolve()
    brings = tuple(
        str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
        for base in (here, *_up_to_repository(here))
        for name in _BRINGS
        if (path := base / name).is_file() and path.parent != own_folder(environ)
        if not _only_narrows(path) and not _is_known(path, environ)
    )
    return Trust(not brings or _is_trusted(here, environ), brings)


def _only_narrows(path: Path) -> bool:
    """Rules that deny or ask widen nothing. Those that allow may: the CLI obeys them in a `settings.local.json` that
    git does not know, also in a folder that nobody has trusted (2.1.326)."""
    try:
        settings = json.loads(path.read_text())
    except (OSError, ValueError):
        return False
    if path.name == ".mcp.json" or not isinstance(settings, dict) or settings.keys() - {"permissions"}:
        return False
    rules = settings.get("permissions", {})
    return isinstance(rules, dict) and not rules.keys() - {"deny", "ask"}


# --- files that the person's own decisions wrote --------------------------------------------------------------------


def remember_rules(folder: str, environ: Mapping[str, str] | None = None) -> None:
    """The person has just put a rule into this folder's local settings: the file, as it is now, is theirs.

    Call it only where the folder was trusted before: else what a stranger had put there would be made theirs too.
    """
    environ = os.environ if environ is None else environ
    path = Path(folder).resolve() / ".claude" / "settings.local.json"
    known = _read_known(environ)
    try:
        known[str(path)] = _hash(path)
        store = _store(environ)
        store.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(store, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(known, file)
    except OSError:
        return  # it is asked about again, which is the safe side


def _is_known(path: Path, environ: Mapping[str, str]) -> bool:
    try:
        return _read_known(environ).get(str(path)) == _hash(path)
    except OSError:
        return False


def _read_known(environ: Mapping[str, str]) -> dict[str, str]:
    try:
        known = json.loads(_store(environ).read_text())
    except (OSError, ValueError):
        return {}
    return {str(path): str(told) for path, told in known.items()} if isinstance(known, dict) else {}


def _store(environ: Mapping[str, str]) -> Path:
    return own_folder(environ) / "claude-kernel" / "rules.json"


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _up_to_repository(folder: Path) -> list[Path]:
    """The CLI also reads the settings of the repository that a folder is in."""
    for parent in folder.parents:
        if (parent / ".git").exists():
            return [base for base in folder.parents if base.is_relative_to(parent)]
    return []


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home())


def own_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where the person's own settings are. In a notebook in their home they are no settings of the folder."""
    environ = os.environ if environ is None else environ
    return Path(environ.get("CLAUDE_CONFIG_DIR") or _home(environ) / ".claude").resolve()


def _is_trusted(folder: Path, environ: Mapping[str, str]) -> bool:
    home = _home(environ)
    config = environ.get("CLAUDE_CONFIG_DIR")
    for path in ([Path(config) / ".claude.json"] if config else []) + [home / ".claude.json"]:
        try:
            projects = json.loads(path.read_text()).get("projects", {})
        except (OSError, ValueError, AttributeError):
            continue
        for base in (folder, *folder.parents):
            entry = projects.get(str(base)) if isinstance(projects, dict) else None
            if isinstance(entry, dict) and entry.get("hasTrustDialogAccepted") is True:
                return True
    return False
