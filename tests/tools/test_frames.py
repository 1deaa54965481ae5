"""Arrays and tables: a head and a summary, no copy, and none of the code of what they hold."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tools import evil

from claude_kernel.tools.privacy import Privacy
from claude_kernel.tools.variables import inspect_variable, list_variables


@pytest.fixture(autouse=True)
def _nothing_was_asked() -> Iterator[None]:
    evil.asked.clear()
    yield
    assert evil.asked == []


def listed(value: object) -> str:
    return list_variables({"it": value}, (), Privacy())


def inspected(value: object) -> list[str]:
    return inspect_variable({"it": value}, "it", Privacy()).splitlines()


LINES = [
    (np.arange(12.0).reshape(3, 4), "numpy.ndarray, shape (3, 4), float64: 0.0, 1.0, 2.0, 3.0, 4.0, …"),
    (np.array(3), "numpy.ndarray, shape (), int64: 3"),
    (np.array([]), "numpy.ndarray, shape (0), float64: "),
    (np.array(["a", "b"]), "numpy.ndarray, shape (2), str32: 'a', 'b'"),
    (np.zeros(2, dtype=[("a", "i4")]), "numpy.ndarray, shape (2), structured ('a'): <numpy.void>, <numpy.void>"),
    (np.float32(1.1), "numpy.float32, 1.1"),
    (np.int64(5), "numpy.int64, 5"),
    (np.datetime64("2020-01-02"), "numpy.datetime64, 2020-01-02"),
    ([np.float64(2.5)], "list, length 1, [2.5]"),
    ([np.arange(2)], "list, length 1, [<numpy.ndarray, shape (2), int64: 0, 1>]"),
    (pd.DataFrame({"a": [1, 2], "b": [0.5, None]}), "pandas.DataFrame, 2 rows × 2 columns: 'a' int64, 'b' float64"),
    (pd.DataFrame(), "pandas.DataFrame, 0 rows × 0 columns: "),
    (pd.Series([1.5, 2], name="n"), "pandas.Series, 2 values, float64, name 'n'"),
    (pd.Index([1, 2]), "pandas.Index, 2 labels, int64: 1, 2"),
    (pd.RangeIndex(9), "pandas.RangeIndex, 9 labels, int64: 0, 1, 2, 3, 4, …"),
    (pd.MultiIndex.from_tuples([(1, "a")]), "pandas.MultiIndex, 1 labels, object: (1, 'a')"),
    (pd.Timestamp("2020-01-02"), "pandas.Timestamp, 2020-01-02T00:00:00"),
    (pd.Timedelta("1 day"), "pandas.Timedelta, 1 days 00:00:00"),
    (pd.Interval(0, 1), "pandas.Interval, (0, 1]"),
    ([pd.NaT, pd.NA], "list, length 2, [NaT, <NA>]"),
    (pl.DataFrame({"a": [1]}), "polars.DataFrame, 1 rows × 1 columns: 'a' Int64"),
    (pl.Series("n", [1, None]), "polars.Series, 2 values, Int64, name 'n'"),
]


@pytest.mark.parametrize(("value", "line"), LINES, ids=[line[:25] for _, line in LINES])
def test_each_is_summarised_in_one_line(value: object, line: str) -> None:
    assert listed(value) == f"it: {line}"


def test_a_frame_is_shown_by_its_columns_and_its_first_rows() -> None:
    frame = pd.DataFrame(
        {
            "n": np.arange(7),
            "name": pd.array(["x", None, "y", "z", "z", "z", "z"], dtype="str"),
            "when": pd.date_range("2020-01-01", periods=7, tz="UTC", unit="ns"),
            "kind": pd.Categorical(list("abababa")),
            "mixed": np.array([None, "u", float("nan"), pd.NaT, 5, 6, 7], dtype=object),
            "password": list("abcdefg"),
        },
        index=pd.Index(list("tuvwxyz"), dtype=object),
    )
    said = inspected(frame)
    assert said[0] == "it: pandas.DataFrame"
    assert said[1].startswith("7 rows × 6 columns, ")
    assert said[2] == "index: Index, 7 labels, object: 't', 'u', 'v', 'w', 'x', …"
    assert said[3:10] == [
        "columns:",
        "  'n': int64",
        "  'name': str, 1 null",
        "  'when': datetime64[ns, UTC]",
        "  'kind': category",
        "  'mixed': object, 3 null",
        "  'password': str",
    ]
    assert [line.split() for line in said[10:13]] == [
        ["first", "rows:"],
        ["'n'", "'name'", "'when'", "'kind'", "'mixed'", "'password'"],
        ["'t'", "0", "'x'", "2020-01-01T00:00:00+00:00", "'a'", "None", "private"],
    ]
    assert len(said) == 17


def test_a_series_an_array_and_polars_are_shown_by_their_head() -> None:
    assert inspected(pd.Series([1, None], name="n"))[1:] == [
        "2 values, float64, 1 null, name 'n'",
        "index: RangeIndex, 2 labels, int64: 0, 1",
        "first rows:",
        "   'n'",
        "0  1.0",
        "1  nan",
    ]
    assert inspected(np.arange(30).reshape(15, 2))[1:] == [
        "shape (15, 2), int64, 240 bytes",
        "first rows (12 values of each at most):",
        *(f"{row}, {row + 1}" for row in range(0, 10, 2)),
    ]
    frame = pl.DataFrame({"a": [1, None], "deep": [[1], [2]], "token": ["x", "y"]})
    assert inspected(frame)[1:] == [
        "2 rows × 3 columns",
        "columns:",
        "  'a': Int64, 1 null",
        "  'deep': List(Int64)",
        "  'token': String",
        "first rows:",
        "'a'   'deep'       'token'",
        "1     List(Int64)  private",
        "None  List(Int64)  private",
    ]
    assert inspected(pl.Series("n", [1, None]))[1:] == [
        "2 values, Int64, 1 null, name 'n'",
        "first rows:",
        "'n'",
        "1",
        "None",
    ]


def test_many_columns_are_counted() -> None:
    said = inspected(pd.DataFrame(np.zeros((2, 70))))
    assert "  … 20 more columns" in said
    assert "first rows (… 58 more columns):" in said
    assert "  … 20 more columns" in inspected(pl.DataFrame({f"c{number}": [0] for number in range(70)}))


def test_a_frame_of_ten_million_rows_costs_a_head_and_a_summary() -> None:
    rows = 10_000_000
    frame = pd.DataFrame({"a": np.zeros(rows), "b": np.zeros(rows, dtype=np.int8)}, copy=False)
    strings = pd.Series(np.broadcast_to(np.array(["x"], dtype=object), (rows,)), dtype=object, copy=False)
    several = {"frame": frame, "column": frame["a"], "strings": strings, "array": frame["b"].to_numpy()}
    inspect_variable(several, "frame", Privacy())  # what is made once, for whichever frame
    tracemalloc.start()
    try:
        listing = list_variables(several, (), Privacy())
        text = {name: inspect_variable(several, name, Privacy()) for name in several}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000
    assert "10,000,000 rows × 2 columns" in listing
    assert "90.0 MB" in text["frame"]


def test_no_code_of_a_cell_a_label_or_an_attribute_is_run() -> None:
    cells = np.empty(3, dtype=object)
    labels = np.empty(2, dtype=object)
    for array in (cells, labels):
        for place in range(len(array)):
            array[place] = evil.Plain()
    frame = pd.DataFrame({"a": cells, "b": [1, 2, 3]}, index=pd.Index([evil.Plain() for _ in range(3)], dtype=object))
    frame.columns = pd.Index(labels, dtype=object)
    frame.attrs["about"] = evil.Plain()
    several: list[Any] = [frame, frame.index, cells, pl.Series("o", list(cells), dtype=pl.Object)]
    series = pd.Series(cells, name="s")
    series.attrs["about"] = evil.Plain()
    several += [series, pd.Series([1], index=frame.index[:1])]
    # They turn only now: to build a frame, pandas itself asks them.
    evil.turn(evil.Plain)
    try:
        for value in several:
            text = listed(value) + "\n".join(inspected(value))
            assert "not readable" not in text
            assert "Plain" in text
    finally:
        evil.turn_back(evil.Plain)


def test_a_time_zone_of_somebodys_own_is_not_asked() -> None:
    class Zone(evil.HonestZone):
        pass

    moments = pd.Series(pd.date_range("2020-01-01", periods=2, tz="UTC")).dt.tz_convert(Zone())
    several = [moments, moments.to_frame("a"), pd.Index(moments), moments.iloc[0], moments.astype("category")]
    evil.turn(Zone)
    for value in several:
        text = listed(value) + "\n".join(inspected(value))
        assert "not readable" not in text


def test_subclasses_are_not_taken_for_the_librarys_own() -> None:
    class Frame(pd.DataFrame):  # type: ignore[misc]  # pandas has no types
        pass

    class Array(np.ndarray):
        pass

    frame, array = Frame({"a": [1]}), np.zeros(3).view(Array)
    evil.turn(Frame)
    evil.turn(Array)
    for value, name in [(frame, "Frame"), (array, "Array")]:
        assert f".{name}, <" in listed(value)
        assert inspected(value)[0].endswith(f".{name}")


def test_an_index_of_an_unknown_class_is_not_asked() -> None:
    class Labels(pd.Index):  # type: ignore[misc]  # pandas has no types
        pass

    frame = pd.DataFrame({"a": [1]})
    frame.index = Labels._simple_new(np.array(["x"], dtype=object))  # its constructor would give a plain one
    assert type(frame.index) is Labels
    column = frame["a"]
    evil.turn(Labels)
    assert "unknown class" in listed(frame)
    assert "unknown class" in inspected(frame)[1]
    assert "unknown class" in inspected(column)[1]


def test_what_the_person_set_for_printing_is_not_called() -> None:
    with pd.option_context("display.float_format", evil._trap("float_format")):
        assert inspected(pd.DataFrame({"a": [1.25]}))[-1].split() == ["0", "1.25"]
    with np.printoptions(formatter={"all": evil._trap("formatter")}):
        assert inspected(np.array([1.25]))[-1] == "first: 1.25"


def test_what_cannot_be_read_now_is_said_and_the_others_are_shown() -> None:
    broken = pd.DataFrame({"a": [1]})
    del broken._mgr
    text = list_variables({"broken": broken, "x": 1}, (), Privacy())
    assert text == "broken: pandas.DataFrame, not readable now (AttributeError)\nx: int, 1"


def test_a_tensor_is_told_by_shape_type_and_device(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tensor:
        shape, dtype, device = (2, 3), "torch.float32", "cuda:0"

    Tensor.__module__ = "torch"
    assert "shape" not in listed(Tensor())  # the name alone makes none
    torch = ModuleType("torch")
    torch.__dict__["Tensor"] = Tensor
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert listed(Tensor()) == "it: torch.Tensor, shape (2, 3), torch.float32, on cuda:0"


def test_no_library_is_imported_for_this() -> None:
    code = (
        "import sys\n"
        "from claude_kernel.tools.privacy import Privacy\n"
        "from claude_kernel.tools.variables import inspect_variable, list_variables\n"
        "Frame = type('DataFrame', (), {'__module__': 'pandas'})\n"
        "print(list_variables({'it': Frame()}, (), Privacy()), inspect_variable({'it': Frame()}, 'it', Privacy()))\n"
        "print(sorted({'numpy', 'pandas', 'polars', 'torch'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "it: pandas.DataFrame, <pandas.DataFrame> it: pandas.DataFrame\n[]\n"
