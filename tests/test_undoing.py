"""What a file held before an edit, taken back from what the edit told; never a guess."""

from __future__ import annotations

import difflib
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from claude_kernel.errors import UsageError
from claude_kernel.journal import Turn
from claude_kernel.protocol import events as ev
from claude_kernel.recording import pack
from claude_kernel.undoing import _commands, _find_befores, _keep_aside

LONG = [f"line {number}" for number in range(2_000)]


def hunks(before: list[str], after: list[str]) -> list[dict[str, Any]]:
    """As the CLI tells them."""
    found: list[dict[str, Any]] = []
    for line in list(difflib.unified_diff(before, after, lineterm=""))[2:]:
        if line.startswith("@@"):
            _, old, new, _ = line.split()
            found.append({"oldStart": _start(old), "newStart": _start(new), "lines": []})
        else:
            found[-1]["lines"].append(line)
    return found


def _start(told: str) -> int:
    return int(told[1:].split(",")[0])


def turn(*results: dict[str, Any], path: str = "/w/f", parent: str | None = None) -> Turn:
    happened: list[tuple[float, Any]] = []
    for number, result in enumerate(results):
        call = ev.ToolStarted(tool_use_id=str(number), name="Edit", input={"file_path": path}, parent=parent)
        happened += [(0.0, call), (0.0, ev.ToolFinished(tool_use_id=str(number), result=result, parent=parent))]
    return Turn(prompt_id="p", events=msgspec.Raw(msgspec.json.encode(pack(happened))))


def edited(before: list[str], after: list[str]) -> dict[str, Any]:
    return {"originalFile": "\n".join(before), "structuredPatch": hunks(before, after)}


def test_a_long_file_is_taken_back_edit_by_edit_over_several_turns() -> None:
    second = [*LONG[:10], "new", "newer", *LONG[10:1_000], *LONG[1_003:]]
    third = ["top", *second[:1_500], "SEVEN", *second[1_501:], "end"]
    turns = [turn(edited(LONG, second)), turn(edited(second, third))]
    assert _find_befores(turns, {"/w/f": "\n".join(third)}) == {"/w/f": "\n".join(LONG)}
    assert _find_befores(turns[1:], {"/w/f": "\n".join(third)}) == {"/w/f": "\n".join(second)}


def test_a_file_that_a_person_changed_since_is_not_guessed_at() -> None:
    after = [*LONG[:10], "new", *LONG[11:]]
    changed = "\n".join([*after[:9], "mine", *after[10:]])
    assert _find_befores([turn(edited(LONG, after))], {"/w/f": changed}) == {}
    assert _find_befores([turn(edited(LONG, after))], {"/w/f": None}) == {}


@pytest.mark.parametrize(
    "patch", [None, 7, [7], [{}], [{"lines": 7, "newStart": 1}], [{"lines": ["+a"], "newStart": "x"}]]
)
def test_a_patch_that_is_none_tells_nothing(patch: Any) -> None:
    assert _find_befores([turn({"structuredPatch": patch})], {"/w/f": "a"}) == {}


def test_a_short_file_is_known_whole_and_a_created_one_did_not_exist() -> None:
    assert _find_befores([turn({"originalFile": "old"})], {"/w/f": None}) == {"/w/f": "old"}
    assert _find_befores([turn({"type": "create"}, {"originalFile": "x"})], {"/w/f": "y"}) == {"/w/f": None}
    assert _find_befores([turn({"originalFile": "old"}, parent="agent")], {"/w/f": "y"}) == {}


def test_what_is_not_undone_is_named_also_where_only_figures_were_kept() -> None:
    ran = [
        (0.0, ev.ToolStarted(tool_use_id="a", name="Bash", input={"command": "rm x"})),
        (0.0, ev.ToolFinished(tool_use_id="a")),
        (0.0, ev.ToolStarted(tool_use_id="b", name="Bash", input={"command": "refused"})),
        (0.0, ev.ToolFinished(tool_use_id="b", refused="user-rejected")),
    ]
    assert _commands(Turn(prompt_id="p", events=msgspec.Raw(msgspec.json.encode(pack(ran))))) == ["rm x"]
    assert _commands(Turn(prompt_id="p", tools=("Bash", "Read"))) == ["Bash"]


def test_what_is_kept_aside_is_the_owners_and_never_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    work, outside = tmp_path / "work", tmp_path / "outside.txt"
    (work / "deep").mkdir(parents=True)
    for path in (work / "deep" / "a.txt", outside):
        path.write_text("one")
        path.chmod(0o755)
    files = [str(work / "deep" / "a.txt"), str(outside), str(work / "missing")]
    places = []
    for text in ("one", "two"):
        (work / "deep" / "a.txt").write_text(text)
        place = _keep_aside(files, work)
        assert place is not None
        places.append(place)
    assert [(place / "deep" / "a.txt").read_text() for place in places] == ["one", "two"]
    kept = [path for path in places[0].rglob("*") if path.is_file()]
    assert len(kept) == 2
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in kept)
    assert all(stat.S_IMODE(place.stat().st_mode) == 0o700 for place in places)
    assert _keep_aside([str(work / "missing")], work) is None


def test_where_nothing_can_be_kept_aside_nothing_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text("in the way")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "a.txt").write_text("one")
    with pytest.raises(UsageError, match="Nothing was put back"):
        _keep_aside([str(tmp_path / "a.txt")], tmp_path)
