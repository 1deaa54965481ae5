"""Which permission settings count, and why the others do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands.keyboard import Typed

from claude_kernel.commands.rulebooks import managed_folder, read_policy


def put(path: Path, settings: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(settings if isinstance(settings, str) else json.dumps(settings))
    return path


def rules(**permissions: Any) -> dict[str, Any]:
    return {"permissions": permissions}


def trust(home: Path, folder: Path) -> None:
    put(home / ".claude.json", {"projects": {str(folder): {"hasTrustDialogAccepted": True}}})


def test_every_rule_stands_below_the_file_it_comes_from(typed: Typed, home: Path, folder: Path) -> None:
    trust(home, folder)
    put(folder / ".claude/settings.local.json", rules(allow=["Bash(ls:*)"]))
    put(folder / ".claude/settings.json", rules(deny=["WebFetch"], defaultMode="plan"))
    put(home / ".claude/settings.json", rules(ask=["Bash(git push:*)"], defaultMode="acceptEdits"))
    said = typed("policy")
    assert said.code == 0
    assert said.out.splitlines()[:12] == [
        f"Permission settings in {folder}, the strongest first:",
        f"  managed  {managed_folder()}/managed-settings.json: none",
        f"  local    {folder}/.claude/settings.local.json",
        "           allow  Bash(ls:*)",
        f"  project  {folder}/.claude/settings.json",
        "           deny   WebFetch",
        "           mode   plan",
        f"  user     {home}/.claude/settings.json",
        "           ask    Bash(git push:*)",
        "           mode   acceptEdits",
        "",
        f"Mode: plan, from {folder}/.claude/settings.json.",
    ]


def test_a_folder_that_is_not_trusted_brings_nothing(typed: Typed, home: Path, folder: Path) -> None:
    put(folder / ".claude/settings.json", rules(allow=["Bash"], defaultMode="dontAsk"))
    put(home / ".claude/settings.json", rules(deny=["WebFetch"]))
    found = typed("policy", "--json").json
    assert (found["trusted"], found["mode"]) == (False, "default")
    assert {source["scope"]: source["unused"] for source in found["sources"]} == {
        "managed": None,
        "local": "the folder is not trusted",
        "project": "the folder is not trusted",
        "user": None,
    }
    out = typed("policy").out
    assert f"{folder}/.claude/settings.json: not used, as the folder is not trusted" in out
    assert "Run `claude` in it once to trust it." in out


@pytest.mark.parametrize(
    ("scope", "permissions", "mode", "refused"),
    [
        ("user", {"defaultMode": "bypassPermissions"}, "bypassPermissions", ""),
        ("user", {"defaultMode": "manual"}, "default", ""),
        (
            "user",
            {"defaultMode": "bypassPermissions", "disableBypassPermissionsMode": "disable"},
            "default",
            "disables it",
        ),
        ("project", {"defaultMode": "bypassPermissions"}, "default", "does not take bypassPermissions"),
        ("local", {"defaultMode": "auto"}, "default", "does not take auto"),
        ("local", {"defaultMode": "acceptEdits"}, "acceptEdits", ""),
    ],
)
def test_the_mode_is_that_of_the_strongest_file_if_it_may_name_it(
    home: Path, folder: Path, scope: str, permissions: dict[str, str], mode: str, refused: str
) -> None:
    trust(home, folder)
    places = {"user": home / ".claude/settings.json", "project": folder / ".claude/settings.json"}
    put(places.get(scope, folder / ".claude/settings.local.json"), rules(**permissions))
    policy = read_policy(folder, home / "managed")
    assert policy.mode == mode
    assert refused in policy.mode_refused
    assert bool(refused) == bool(policy.mode_refused)


def test_the_kernels_own_setting_goes_before_the_files(
    typed: Typed, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(home / ".claude/settings.json", rules(defaultMode="acceptEdits"))
    monkeypatch.setenv("CLAUDE_KERNEL_MODE", "plan")
    found = typed("policy", "--json").json
    assert found["mode"] == "plan"
    assert "CLAUDE_KERNEL_MODE" in found["mode_from"]


def test_managed_settings_are_merged_and_may_stand_alone(home: Path, folder: Path) -> None:
    managed = home / "managed"
    put(managed / "managed-settings.json", rules(deny=["WebFetch"], defaultMode="plan"))
    put(managed / "managed-settings.d/10-first.json", rules(defaultMode="acceptEdits"))
    last = put(
        managed / "managed-settings.d/20-last.json",
        {"allowManagedPermissionRulesOnly": True, **rules(disableBypassPermissionsMode="disable")},
    )
    put(managed / "managed-settings.d/.hidden.json", "not json")
    put(home / ".claude/settings.json", rules(allow=["Bash"], defaultMode="bypassPermissions"))
    policy = read_policy(folder, managed)
    assert [Path(book.path).name for book in policy.rulebooks[:3]] == [
        "20-last.json",
        "10-first.json",
        "managed-settings.json",
    ]
    assert (policy.mode, policy.broken) == ("acceptEdits", ())
    assert policy.bypass_forbidden_by is not None
    assert policy.bypass_forbidden_by.path == str(last)
    assert "no rules but their own" in policy.rulebooks[-1].rules_unused


def test_a_folder_in_a_repository_has_the_local_settings_of_its_root_too(home: Path, folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / "sub").mkdir()
    trust(home, folder)
    put(folder / ".claude/settings.local.json", rules(allow=["Bash(root:*)"]))
    put(folder / ".claude/settings.json", rules(allow=["Bash(never:*)"]))
    put(folder / "sub/.claude/settings.local.json", rules(allow=["Bash(sub:*)"]))
    policy = read_policy(folder / "sub", home / "managed")
    allowed = [rule for book in policy.rulebooks if book.counts for rule in book.allow]
    assert allowed == ["Bash(root:*)", "Bash(sub:*)"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{\n  "permissions": {"allow": ["Bash"],}\n}', "line 2, column 37"),
        ("", "line 1, column 1"),
        ("[]", "it holds no JSON object"),
        ('{"permissions": []}', "`permissions` is no JSON object"),
        ('{"permissions": {"defaultMode": "yolo"}}', "there is no mode 'yolo'"),
    ],
)
def test_a_broken_file_is_named_with_the_place(typed: Typed, home: Path, content: str, why: str) -> None:
    path = put(home / ".claude/settings.json", content)
    said = typed("policy")
    assert said.code == 1
    assert f"{path}: cannot be read: {why}" in said.out


def test_bytes_that_are_no_text_and_files_that_are_no_files_are_broken_too(home: Path, folder: Path) -> None:
    user = home / ".claude/settings.json"
    put(user, "")
    user.write_bytes(b"\xff\xfe{}")
    (folder / ".claude/settings.json").mkdir(parents=True)
    broken = {book.scope: book.broken for book in read_policy(folder, home / "managed").broken}
    assert broken == {"project": "Is a directory", "user": "it is not UTF-8 text"}


def test_a_byte_order_mark_is_no_fault(home: Path, folder: Path) -> None:
    put(home / ".claude/settings.json", '\ufeff{"permissions": {"allow": ["Bash", 7]}}')
    assert read_policy(folder, home / "managed").rulebooks[-1].allow == ("Bash",)


def test_no_rule_can_steer_the_terminal(typed: Typed, home: Path) -> None:
    put(home / ".claude/settings.json", rules(allow=["Bash(\x1b[8m:*)"]))
    out = typed("policy").out
    assert "\x1b" not in out
    assert "Bash(‹U+001B›[8m:*)" in out


def test_a_folder_that_is_not_there_is_said_to_be_none(typed: Typed) -> None:
    said = typed("policy", "nowhere")
    assert said.code == 1
    assert "nowhere is not a folder." in said.err


@pytest.mark.parametrize(
    ("platform", "folder"),
    [("linux", "/etc/claude-code"), ("darwin", "/Library/Application Support/ClaudeCode")],
)
def test_managed_settings_are_looked_for_where_the_cli_does(platform: str, folder: str) -> None:
    assert managed_folder(platform) == Path(folder)
