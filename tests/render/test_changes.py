"""What an undo would take back: each file with its difference, and never more than there is to know."""

from __future__ import annotations

from claude_kernel.render.changes import render_changes


def test_each_file_has_its_row_and_its_difference() -> None:
    shown = render_changes(
        [
            ("/work/a.py", True, "x = 1\n", "x = 2\n"),
            ("/work/new.py", True, None, "made\n"),
            ("/work/gone.py", True, "was\n", None),
            ("/work/unknown.bin", False, None, "?"),
        ],
        project="/work",
    )
    for words in ("a.py", "It did not exist before: it would be removed.", "Deleted", "cannot be shown"):
        assert words in shown.text
        assert words in shown.html
    assert "/work/a.py" not in shown.text
    assert "+1" in shown.html
    assert "−1" in shown.html


def test_many_files_are_closed_and_few_are_open() -> None:
    def opened(count: int) -> int:
        files = [(f"/w/{number}", True, "a\n", "b\n") for number in range(count)]
        return render_changes(files, project="/w").html.count("<details open")

    assert opened(2) == 2
    assert opened(10) == 0


def test_a_hostile_name_and_text_are_shown_as_they_are() -> None:
    shown = render_changes([("/w/<script>\n.py", True, "<img src=x>", "</details><script>")], project="/w")
    assert "<script" not in shown.html
    assert "<img" not in shown.html
