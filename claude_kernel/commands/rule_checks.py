"""Checks of what Claude may do here: the permission settings, the kernel's own settings, the trust in the folder."""

from __future__ import annotations

from pathlib import Path

from claude_kernel.commands.findings import Case, Finding, ok, problem, warning
from claude_kernel.commands.printing import count_of
from claude_kernel.commands.rulebooks import Policy, read_policy
from claude_kernel.trust import Trust, read_trust


def check_policy(case: Case) -> Finding:
    return judge_policy(read_policy(Path(case.folder)))


def judge_policy(policy: Policy) -> Finding:
    if policy.broken:
        broken = [f"{book.path}: {book.broken}" for book in policy.broken]
        return problem("; ".join(broken), "Mend that file or move it aside: until then all of it is passed over.")
    source = policy.mode_from
    if policy.mode == "bypassPermissions" and source is not None:
        return warning(
            f"mode bypassPermissions, from {source.path}: Claude does everything without asking",
            "Take it out of there to be asked, or choose another with `%claude mode default`.",
        )
    managed = [book.path for book in policy.rulebooks if book.scope == "managed" and book.counts]
    rules = sum(len(book.deny + book.ask + book.allow) for book in policy.rulebooks if book.counts)
    files = f"managed settings in {', '.join(managed)}" if managed else "no managed settings file"
    return ok(f"mode {policy.mode}, {count_of(rules, 'rule')}, {files}")


def check_trust(case: Case) -> Finding:
    return judge_trust(read_trust(case.folder), case.folder)


def judge_trust(trust: Trust, folder: str) -> Finding:
    brings = ", ".join(trust.brings)
    if not trust.trusted:
        return warning(
            f"{folder} brings {brings} and is not trusted: only your own settings are used here",
            "Run `claude` once in this folder in a terminal to trust it.",
        )
    return ok(f"{folder} brings {brings} and is trusted" if brings else f"{folder} brings nothing that needs trust")


def check_settings(_case: Case) -> Finding:
    from claude_kernel.settings import load_settings

    loaded = load_settings()
    if loaded.problems:
        return warning(" ".join(loaded.problems), "Correct it; until then the default is used.")
    chosen = [f"{row.name}={row.value} ({row.source})" for row in loaded.rows if row.source != "default"]
    return ok(", ".join(chosen) or "all are the defaults")
