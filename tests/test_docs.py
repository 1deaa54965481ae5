"""The documentation is true as far as a program can tell: links lead somewhere, and what it names exists and is all."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from claude_kernel import trouble
from claude_kernel.cli import MODES, Options
from claude_kernel.commands import COMMANDS as COMMAND_LINE
from claude_kernel.magic import _PARSER
from claude_kernel.prompts import WAYS
from claude_kernel.protocol import DIALECTS, Connection
from claude_kernel.protocol.events import LineDropped, Unrecognized
from claude_kernel.settings import NAMES, variable_of
from claude_kernel.steering import COMMANDS
from claude_kernel.tools.toolbox import TOOLS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]
KINDS = {advice.kind for advice in vars(trouble).values() if isinstance(advice, trouble._Advice)} | {"PermissionNeeded"}
TITLES = {advice.title for advice in vars(trouble).values() if isinstance(advice, trouble._Advice)}
NOT_FOR_PERSONS = frozenset({"CliError", "EnvironmentTrouble", "ClaudeKernelError"})
"""Roots of the error tree: their titles say nothing that could be looked up."""

_LINK = re.compile(r"(?<!\\)\]\((?P<link>[^)\s]+)\)|(?:src|srcset)=\"(?P<picture>[^\"]+)\"")
_FENCED = re.compile(r"^( *)```.*?^\1```", re.M | re.S)


def page(name: str) -> str:
    return (ROOT / name).read_text()


def anchors(path: Path) -> set[str]:
    """As code hosts make them of headings."""
    headings = re.findall(r"^#{1,6} +(.+)$", _FENCED.sub("", path.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(path: Path) -> list[str]:
    text = re.sub(r"`[^`\n]*`", "", _FENCED.sub("", path.read_text()))
    found = [match["link"] or match["picture"] for match in _LINK.finditer(text)]
    return [link for link in found if not re.match(r"https?:|mailto:", link)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_link_leads_somewhere(path: Path) -> None:
    for link in links(path):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_index_names_every_page() -> None:
    linked = {link.partition("#")[0] for link in links(DOCS / "README.md")}
    assert {path.name for path in DOCS.glob("*.md")} - {"README.md"} <= linked


def test_every_picture_is_shown_in_both_themes() -> None:
    shown = {Path(link).name for path in PAGES for link in links(path) if link.endswith(".png")}
    assert shown == {path.name for path in (DOCS / "images").iterdir()}
    light, dark = ({name for name in shown if name.endswith(f"-{theme}.png")} for theme in ("light", "dark"))
    assert {name.replace("-light", "-dark") for name in light} == dark
    assert light | dark == shown


# --- names ----------------------------------------------------------------------------------------------------------


def test_every_word_of_the_conversation_is_in_the_guide_and_no_other_anywhere() -> None:
    guide = page("docs/user-guide.md")
    for name, command in COMMANDS.items():
        assert f"| `%claude {name}{command.usage}` |" in guide
    for path in PAGES:
        for word in re.findall(r"(?<!%)%claude ([a-z]+)\b", path.read_text()):
            assert word in COMMANDS, f"{path.name}: %claude {word}"


def test_every_option_of_the_magic_is_in_the_guide() -> None:
    guide = page("docs/user-guide.md")
    for action in _PARSER._actions:
        usage = f"{action.option_strings[0]} {action.metavar}" if action.metavar else action.option_strings[0]
        assert f"`{usage}`" in guide


def test_every_command_is_on_its_page_and_no_other_anywhere() -> None:
    command_line = page("docs/command-line.md")
    for name, summary in COMMAND_LINE.items():
        row = next(
            line for line in command_line.splitlines() if line.startswith(("| [`", "| `")) and f" {name}`" in line
        )
        assert summary.replace("`", "") in row.replace("`", "")
    for path in PAGES:
        for word in re.findall(r"(?:`|\$ |^)claude-kernel ([a-z]+)\b", path.read_text(), re.M):
            assert word in COMMAND_LINE, f"{path.name}: claude-kernel {word}"


def test_every_script_that_is_named_is_there() -> None:
    for path in PAGES:
        for name in re.findall(r"\bscripts/([a-z]+)\b", path.read_text()):
            assert (ROOT / "scripts" / name).is_file(), f"{path.name}: scripts/{name}"


def test_every_file_of_the_project_that_is_named_is_there() -> None:
    for path in PAGES:
        for name in re.findall(r"`((?:claude_kernel|tests|docs|notebooks|\.ci)/[\w./]+)`", path.read_text()):
            assert (ROOT / name).exists() or name == "tests/transcripts/SCENE.jsonl", f"{path.name}: {name}"


def test_every_variable_of_the_environment_that_is_named_is_read() -> None:
    known = {variable_of(name) for name in NAMES}
    for path in PAGES:
        assert set(re.findall(r"\bCLAUDE_KERNEL_[A-Z_]+", path.read_text())) <= known, path.name


def test_every_setting_that_is_named_exists() -> None:
    for path in PAGES:
        assert set(re.findall(r"\bClaudeSettings\.(\w+)", path.read_text())) <= set(NAMES), path.name


def test_every_option_mode_way_and_tool_is_on_its_page() -> None:
    for name, words in {
        "docs/python-api.md": Options.__struct_fields__,
        "docs/permissions.md": (*MODES, *WAYS),
        "docs/live-namespace.md": tuple(TOOLS),
        "docs/protocol.md": tuple(DIALECTS),
    }.items():
        for word in words:
            assert f"`{word}`" in page(name) or f"`%claude prompts {word}`" in page(name), f"{name}: {word}"


def test_every_trouble_can_be_looked_up_by_its_name_and_by_its_sentence() -> None:
    help_page = page("docs/troubleshooting.md")
    for kind in KINDS:
        assert f"`{kind}`" in help_page
    vague = {advice.title for advice in vars(trouble).values() if getattr(advice, "kind", "") in NOT_FOR_PERSONS}
    for title in TITLES - vague:
        assert f"*{title}*" in help_page
    for said in re.findall(r"^\| \*(Clau[^*…]*\.)\*", help_page, re.M):
        assert said in TITLES, said


# --- rows -----------------------------------------------------------------------------------------------------------


def test_every_row_of_the_protocol_page_is_understood() -> None:
    blocks = re.findall(r"```\n([><].*?)```", page("docs/protocol.md"), re.S)
    assert blocks
    for block in blocks:
        connection = Connection()
        happened: list[object] = []
        for line in block.splitlines():
            direction, row = line[:2], json.loads(line[2:])
            if direction == "< ":
                happened += connection.receive_data(json.dumps(row).encode() + b"\n")
            elif row["type"] == "control_request":  # whose id is then ours to wait for
                connection._requests[row["request_id"]] = row["request"]["subtype"]
        assert happened
        assert [event for event in happened if isinstance(event, Unrecognized | LineDropped)] == []
