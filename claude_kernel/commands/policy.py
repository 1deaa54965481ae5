"""`claude-kernel policy`: which permission settings apply in a folder, where each comes from, which are not used."""

from __future__ import annotations

import argparse
from pathlib import Path

from claude_kernel.commands.printing import DIM, RED, YELLOW, paint, plain, say, say_json
from claude_kernel.commands.rulebooks import Policy, Rulebook, read_policy
from claude_kernel.errors import UsageError

_NOT_SEEN = (
    "Settings that a server or device management delivers cannot be seen here; `/status` in `claude` names them."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help="the working folder (default: this)")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def run(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.folder).expanduser().resolve()
    if not folder.is_dir():
        raise UsageError(f"{plain(folder)} is not a folder.")
    policy = read_policy(folder)
    if arguments.json:
        say_json(_as_json(policy))
    else:
        _show(policy)
    return 1 if policy.broken else 0


def _show(policy: Policy) -> None:
    say(f"Permission settings in {plain(policy.folder)}, the strongest first:")
    for book in policy.rulebooks:
        _show_book(book)
    say()
    source = policy.mode_from
    if policy.mode_refused and source is not None:
        say(paint(f"Mode: {policy.mode}; {source.path} names {source.mode}, but {policy.mode_refused}.", YELLOW))
    else:
        say(f"Mode: {policy.mode}" + (f", from {plain(source.path)}." if source else ", as nothing names another."))
    forbidding = policy.bypass_forbidden_by
    say(
        f"Bypassing permissions is disabled by {plain(forbidding.path)}."
        if forbidding
        else "Bypassing is not disabled."
    )
    if not policy.trust.trusted:
        say(
            paint(
                "This folder is not trusted: only your own settings are used. Run `claude` in it once to trust it.",
                YELLOW,
            )
        )
    say(paint("Deny goes before ask, and ask before allow, whichever file a rule is in.", DIM))
    say(paint(_NOT_SEEN, DIM))


def _show_book(book: Rulebook) -> None:
    head = f"  {book.scope:<8} {plain(book.path)}"
    if not book.found:
        say(paint(f"{head}: none", DIM))
        return
    if book.broken:
        say(paint(f"{head}: cannot be read: {plain(book.broken)}", RED))
        return
    say(head + (paint(f": not used, as {book.unused}", YELLOW) if book.unused else ""))
    if book.rules_unused and (book.allow or book.ask or book.deny):
        say(paint(f"           its rules are not used, as {book.rules_unused}", YELLOW))
    for word, rules in (("deny", book.deny), ("ask", book.ask), ("allow", book.allow)):
        for rule in rules:
            say(f"           {word:<5}  {plain(rule)}")
    if book.mode:
        say(f"           mode   {book.mode}")


def _as_json(policy: Policy) -> dict[str, object]:
    forbidding = policy.bypass_forbidden_by
    return {
        "folder": policy.folder,
        "trusted": policy.trust.trusted,
        "mode": policy.mode,
        "mode_from": policy.mode_from.path if policy.mode_from else None,
        "mode_refused": policy.mode_refused or None,
        "bypass_disabled_by": forbidding.path if forbidding else None,
        "sources": [
            {
                "scope": book.scope,
                "path": book.path,
                "found": book.found,
                "broken": book.broken or None,
                "unused": book.unused or None,
                "rules_unused": book.rules_unused or None,
                "deny": book.deny,
                "ask": book.ask,
                "allow": book.allow,
                "mode": book.mode or None,
            }
            for book in policy.rulebooks
        ],
    }
