"""Whose settings may run in a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from claude_kernel.trust import Trust, read_trust, remember_rules

HOOKS = json.dumps({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "evil"}]}]}})
RULES = json.dumps({"permissions": {"allow": ["Bash(ls:*)"], "deny": ["WebFetch"]}})


def put(path: Path, content: str = HOOKS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def folder(home: Path) -> Path:
    (home / "work" / "cloned").mkdir(parents=True)
    return home / "work" / "cloned"


def trust(folder: Path, home: Path, **environ: str) -> Trust:
    return read_trust(str(folder), {"HOME": str(home), **environ})


def accept(config: Path, *folders: Path, **entry: Any) -> None:
    entry = entry or {"hasTrustDialogAccepted": True}
    put(config / ".claude.json", json.dumps({"projects": {str(folder): entry for folder in folders}}))


@pytest.mark.parametrize(
    ("file", "content", "trusted"),
    [
        (".claude/settings.json", HOOKS, False),
        (".claude/settings.local.json", HOOKS, False),
        (".mcp.json", '{"mcpServers": {}}', False),
        (".mcp.json", RULES, False),
        (".claude/settings.json", RULES, False),
        (".claude/settings.local.json", RULES, False),
        (".claude/settings.local.json", '{"permissions": {"deny": ["WebFetch"], "ask": ["Bash"]}}', True),
        (".claude/settings.json", "{}", True),
        (".claude/settings.json", '{"permissions": {"defaultMode": "bypassPermissions"}}', False),
        (".claude/settings.json", '{"permissions": {"allow": []}, "env": {"PATH": "."}}', False),
        (".claude/settings.json", '{"permissions": "all"}', False),
        (".claude/settings.json", "not json", False),
        (".claude/settings.json", "[]", False),
        (".claude/settings.json", "\udcff", False),
        (".claude/commands/deploy.md", "x", True),
        ("CLAUDE.md", "x", True),
        ("README.md", "x", True),
    ],
)
def test_a_folder_needs_trust_where_it_brings_what_would_run(
    folder: Path, home: Path, file: str, content: str, trusted: bool
) -> None:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_bytes(content.encode("utf-8", "surrogateescape"))
    found = trust(folder, home)
    assert found.trusted is trusted
    assert found.brings == (() if trusted else (file,))
    assert found.setting_sources == (None if trusted else ("user",))


def test_rules_that_the_person_put_there_are_theirs_until_the_file_changes(folder: Path, home: Path) -> None:
    path = folder / ".claude" / "settings.local.json"
    put(path, RULES)
    assert not trust(folder, home).trusted
    remember_rules(str(folder), {"HOME": str(home)})
    assert trust(folder, home).trusted
    assert (home / ".claude" / "claude-kernel" / "rules.json").stat().st_mode & 0o777 == 0o600
    path.write_text(RULES.replace("ls", "rm"))
    assert not trust(folder, home).trusted


def test_what_cannot_be_remembered_stays_a_strangers(folder: Path, home: Path) -> None:
    remember_rules(str(folder), {"HOME": str(home)})  # there is no such file
    put(home / ".claude" / "claude-kernel", "a file where a folder should be")
    put(folder / ".claude" / "settings.local.json", RULES)
    remember_rules(str(folder), {"HOME": str(home)})
    assert not trust(folder, home).trusted


def test_an_empty_folder_and_one_that_is_not_there_need_none(folder: Path, home: Path) -> None:
    assert trust(folder, home) == Trust(True)
    assert trust(folder / "missing", home) == Trust(True)


def test_the_settings_of_the_repository_above_count(folder: Path, home: Path) -> None:
    (folder / ".git").mkdir()
    put(folder / ".mcp.json")
    below = folder / "deep" / "er"
    below.mkdir(parents=True)
    found = trust(below, home)
    assert not found.trusted
    assert found.brings == (str(folder / ".mcp.json"),)


def test_what_lies_above_the_repository_does_not_count(folder: Path, home: Path) -> None:
    put(folder.parent / ".claude" / "settings.json")
    assert trust(folder, home).trusted
    (folder / ".git").mkdir()
    (folder / "deep").mkdir()
    assert trust(folder / "deep", home).trusted


def test_a_folder_that_was_trusted_is(folder: Path, home: Path) -> None:
    put(folder / ".mcp.json")
    accept(home, folder)
    found = trust(folder, home)
    assert found.trusted
    assert found.setting_sources is None


def test_a_folder_below_one_that_was_trusted_is(folder: Path, home: Path) -> None:
    put(folder / ".mcp.json")
    accept(home, folder.parent)
    assert trust(folder, home).trusted


def test_a_folder_beside_or_above_one_that_was_trusted_is_not(folder: Path, home: Path) -> None:
    put(folder / ".mcp.json")
    accept(home, folder / "sub", folder.with_name("cloned-2"))
    assert not trust(folder, home).trusted


def test_a_link_to_a_folder_is_that_folder(folder: Path, home: Path) -> None:
    put(folder / ".mcp.json")
    (home / "link").symlink_to(folder)
    assert not trust(home / "link", home).trusted
    accept(home, folder)
    assert trust(home / "link", home).trusted


def test_the_persons_other_configuration_folder_is_asked_too(folder: Path, home: Path, tmp_path: Path) -> None:
    put(folder / ".mcp.json")
    config = tmp_path / "config"
    accept(config, folder)
    assert not trust(folder, home).trusted
    assert trust(folder, home, CLAUDE_CONFIG_DIR=str(config)).trusted


def test_the_persons_own_settings_are_none_of_the_folder(home: Path, tmp_path: Path) -> None:
    put(home / ".claude" / "settings.json")
    assert trust(home, home).trusted
    assert not trust(home, home, CLAUDE_CONFIG_DIR=str(tmp_path / "config")).trusted
    assert not trust(home, tmp_path).trusted


@pytest.mark.parametrize(
    "config",
    [
        "not json",
        "[]",
        "null",
        '{"projects": []}',
        '{"projects": null}',
        '{"projects": {"FOLDER": true}}',
        '{"projects": {"FOLDER": {"hasTrustDialogAccepted": "yes"}}}',
        '{"projects": {"FOLDER": {"hasTrustDialogAccepted": false}}}',
    ],
)
def test_anything_but_a_clear_yes_is_a_no(folder: Path, home: Path, config: str) -> None:
    put(folder / ".mcp.json")
    put(home / ".claude.json", config.replace("FOLDER", str(folder)))
    assert not trust(folder, home).trusted


def test_the_notice_names_what_was_found_and_the_remedy(folder: Path, home: Path) -> None:
    put(folder / ".mcp.json")
    put(folder / ".claude" / "settings.json")
    notice = trust(folder, home).notice()
    assert "(.claude/settings.json, .mcp.json)" in notice
    assert "run claude once in this folder" in notice
    assert "%claude restart" in notice
