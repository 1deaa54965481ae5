"""What kind of cell it is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_kernel.cells import Cell, is_complete, read_cell

CELLS: dict[str, Cell] = {
    "hello": Cell(prompt="hello"),
    "  hello\n\nthere  \n": Cell(prompt="hello\n\nthere"),
    "\n\n\thello": Cell(prompt="hello"),
    "hello\r\nthere\r\n": Cell(prompt="hello\r\nthere"),
    "": Cell(),
    " \n\t\r\n ": Cell(),
    # steering
    "%claude": Cell(steering=("",)),
    "%claude status": Cell(steering=("status",)),
    "%claude   model  opus ": Cell(steering=("model  opus",)),
    "  %claude\tstatus": Cell(steering=("status",)),
    "%claude model opus\n%claude mode plan\n\nFix it.": Cell(steering=("model opus", "mode plan"), prompt="Fix it."),
    "%claude model opus\r\nFix it.\r\n": Cell(steering=("model opus",), prompt="Fix it."),
    "%claude status\n\n": Cell(steering=("status",)),
    "Fix it.\n%claude status": Cell(prompt="Fix it.\n%claude status"),
    "%claudette status": Cell(code="%claudette status"),
    # IPython's
    "%%python\nprint(1)\n": Cell(code="print(1)\n", code_offset=9),
    "%%py\nx": Cell(code="x", code_offset=5),
    "%%python3  \nx": Cell(code="x", code_offset=12),
    "%%python\r\nx": Cell(code="x", code_offset=10),
    "%%python": Cell(code="", code_offset=8),
    "\n\n%%python\n  x": Cell(code="  x", code_offset=11),
    "%claude status\n\n%%python\nx": Cell(steering=("status",), code="x", code_offset=25),
    "%%bash\nls": Cell(code="%%bash\nls"),
    "%%python --bg\nx": Cell(code="%%python --bg\nx"),
    "%%pythonic\nx": Cell(code="%%pythonic\nx"),
    " %time x": Cell(code="%time x", code_offset=1),
    "!ls -l": Cell(code="!ls -l"),
    "%claude mode plan\n!ls": Cell(steering=("mode plan",), code="!ls", code_offset=18),
    # sent as it is
    "\\%claude status": Cell(prompt="%claude status"),
    "\\!ls is what I typed": Cell(prompt="!ls is what I typed"),
    "\\%%python\nprint(1)": Cell(prompt="%%python\nprint(1)"),
    "\\/compact is a command": Cell(prompt="\\/compact is a command"),
    "\\\\n is a line break": Cell(prompt="\\n is a line break"),
    "\\alpha is Greek": Cell(prompt="\\alpha is Greek"),
    "%claude mode plan\n\\!important": Cell(steering=("mode plan",), prompt="!important"),
    # the CLI's own
    "/compact keep the plan": Cell(prompt="/compact keep the plan"),
    " /context": Cell(prompt="/context"),
    "@figure.png what is this?": Cell(prompt="@figure.png what is this?"),
    "100% sure!": Cell(prompt="100% sure!"),
}


@pytest.mark.parametrize("text", CELLS)
def test_a_cell_is_read_as_what_it_is(text: str) -> None:
    assert read_cell(text) == CELLS[text]


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["%claude", "%%python", "!", "\\", " x", "\n", "\r\n", "é", " ", "%"])).map("".join))
def test_code_stands_in_the_cell_where_it_is_said_to_and_nothing_is_two_things(text: str) -> None:
    cell = read_cell(text)
    assert cell.code is None or cell.prompt is None
    if cell.code is not None:
        assert text[cell.code_offset :] == cell.code
    if cell.prompt is not None:
        assert cell.prompt
        assert cell.prompt in text


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("hello", True),
        ("", True),
        ("hello \\", False),
        ("look:\n```python\nx = 1", False),
        ("look:\n```python\nx = 1\n```", True),
        ("```\na\n```\n```\nb", False),
        ("~~~\n```\n~~~", True),
        ("````\n```\n", False),
        ("````\n```\n`````", True),
        ("```\nnot the end ```\n", False),
        ("    ```\nindented, so no fence", True),
        ("```ls``` is a command", True),
        ("```\r\nx\r\n```\r\n", True),
    ],
)
def test_a_prompt_asks_for_more_where_it_is_not_complete(text: str, complete: bool) -> None:
    assert is_complete(text) == ("complete" if complete else "incomplete", "")
