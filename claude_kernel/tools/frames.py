"""Arrays and tables of libraries that are loaded already: numpy, pandas, polars, torch. None of them is imported.

A head and a summary, never a copy. Cells, labels and defaults can be anybody's objects, so nothing here is printed by
the library: each is written by the `line` it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from claude_kernel.tools.statics import Line, find_loaded, package_of, type_name

Hides = Callable[[str], bool]

HEAD = 5
MOST_COLUMNS = 50
_WIDE = 12
_LONGEST_CELL = 80
_MOST_CELLS_FOR_NULLS = 1_000_000
_MOST_COLUMNS_FOR_MEMORY = 1_000
_ZONES = frozenset({"datetime", "zoneinfo", "pytz", "dateutil"})
_INDEXES = (
    *("Index", "RangeIndex", "MultiIndex", "DatetimeIndex", "TimedeltaIndex"),
    *("PeriodIndex", "IntervalIndex", "CategoricalIndex"),
)
_NUMPY_SCALARS = (
    *("bool_", "int8", "int16", "int32", "int64", "longlong"),
    *("uint8", "uint16", "uint32", "uint64", "ulonglong"),
    *("float16", "float32", "float64", "longdouble", "complex64", "complex128", "clongdouble"),
    *("datetime64", "timedelta64", "str_", "bytes_"),
)


@dataclass(frozen=True)
class Known:
    """A library's type: its one line, and all there is to say about it."""

    _short: Callable[[Any, Line], str]
    _full: Callable[[Any, Line, Hides], str] | None = None

    @property
    def scalar(self) -> bool:
        return self._full is None

    def short(self, value: object, line: Line) -> str:
        try:
            return self._short(value, line)
        except Exception as error:
            # It may be half built, or another thread may be at it: the others are still to be shown.
            return f"not readable now ({type_name(type(error))})"

    def full(self, value: object, line: Line, hides: Hides) -> str:
        try:
            return self._full(value, line, hides) if self._full else self._short(value, line)
        except Exception as error:
            return f"not readable now ({type_name(type(error))})"


def find_known(value: object) -> Known | None:
    cls = type(value)
    package = package_of(cls)
    for module, name, known in _TYPES.get(package, ()):
        if find_loaded(module, name) is cls:
            return known
    if package == "pandas" and any(value is find_loaded("pandas", name) for name in ("NaT", "NA")):
        return _MISSING
    return None


def _array_short(array: Any, line: Line) -> str:
    shown = [line(each) for each in array.flat[:HEAD]]
    more = ", …" if array.size > len(shown) else ""
    return f"shape {_shape(array)}, {_dtype(array.dtype, line)}: {', '.join(shown)}{more}"


def _array_full(array: Any, line: Line, _hides: Hides) -> str:
    said = [f"shape {_shape(array)}, {_dtype(array.dtype, line)}, {_size(array.nbytes)}"]
    if array.ndim < 2:
        shown = [line(each) for each in array.flat[: 4 * HEAD]]
        said.append(f"first: {', '.join(shown)}" if shown else "empty")
    else:
        said.append(f"first rows ({_WIDE} values of each at most):")
        said += [", ".join(line(each) for each in row.flat[:_WIDE]) for row in array[:HEAD]]
    return "\n".join(said)


def _shape(array: Any) -> str:
    return "(" + ", ".join(f"{int(each)}" for each in array.shape) + ")"


def _numpy_scalar(value: Any, line: Line) -> str:
    plain = value.item()
    return line(plain) if type(plain) is str or type(plain) is bytes else str(value)


def _dtype(dtype: Any, line: Line) -> str:
    package, kind = package_of(type(dtype)), type_name(type(dtype)).rpartition(".")[2]
    if package == "numpy":
        if dtype.names is not None:
            fields = ", ".join(line(name) for name in dtype.names[:_WIDE])
            return f"structured ({fields}{', …' if len(dtype.names) > _WIDE else ''})"
        return str(dtype.name)
    if package not in {"pandas", "polars"} or not _readable(dtype):
        return f"<{type_name(type(dtype))}>"
    # Their text would write out what they hold: categories, a fill value.
    brief = {"CategoricalDtype": "category", "SparseDtype": "Sparse"}.get(kind)
    return brief or str(dtype)[:_LONGEST_CELL]


def _readable(dtype: Any) -> bool:
    """Whether reading a cell asks nobody's own class: an extension's array, a time zone."""
    package, kind = package_of(type(dtype)), type_name(type(dtype)).rpartition(".")[2]
    if package == "pandas":
        if kind == "DatetimeTZDtype":
            return package_of(type(dtype.tz)) in _ZONES
        if kind == "CategoricalDtype":
            return dtype.categories is None or _index_readable(dtype.categories)
        return kind != "IntervalDtype" or dtype.subtype is None or _readable(dtype.subtype)
    return package == "numpy"


def _index_readable(index: Any) -> bool:
    if not any(find_loaded("pandas", name) is type(index) for name in _INDEXES):
        return False
    if type(index) is find_loaded("pandas", "MultiIndex"):
        return all(_index_readable(level) for level in index.levels)
    return _readable(index.dtype)


def _frame_short(frame: Any, line: Line) -> str:
    if not (_index_readable(frame.index) and _index_readable(frame.columns)):
        return "with an index of an unknown class"
    labels = frame.columns[:_WIDE]
    columns = [f"{line(label)} {_dtype(_column(frame, i).dtype, line)}" for i, label in enumerate(labels)]
    more = len(frame.columns) - len(columns)
    shown = ", ".join(columns) + (f", … {more:,} more" if more > 0 else "")
    return f"{len(frame.index):,} rows × {len(frame.columns):,} columns: {shown}"


def _frame_full(frame: Any, line: Line, hides: Hides) -> str:
    if not (_index_readable(frame.index) and _index_readable(frame.columns)):
        return "Its index or its columns are of an unknown class, which is not asked for anything."
    rows, count = len(frame.index), len(frame.columns)
    arrays = [(label, _column(frame, i)) for i, label in enumerate(frame.columns[:MOST_COLUMNS])]
    memory = ""
    if count <= _MOST_COLUMNS_FOR_MEMORY:
        memory = f", {_size(sum(int(_column(frame, i).nbytes) for i in range(count)))} without what objects hold"
    said = [f"{rows:,} rows × {count:,} columns{memory}", f"index: {_index(frame.index, line)}", "columns:"]
    with_nulls = rows * count <= _MOST_CELLS_FOR_NULLS
    said += [f"  {line(label)}: {_column_line(array, line, with_nulls=with_nulls)}" for label, array in arrays]
    if count > len(arrays):
        said.append(f"  … {count - len(arrays):,} more columns")
    said.append(_head(frame.index, arrays[:_WIDE], line, hides, more=count - _WIDE))
    return "\n".join(said)


def _series_short(series: Any, line: Line) -> str:
    array = series.array
    return f"{len(array):,} values, {_dtype(array.dtype, line)}, name {line(series.name)}"


def _series_full(series: Any, line: Line, hides: Hides) -> str:
    array, index = series.array, series.index
    if not _index_readable(index):
        return "Its index is of an unknown class, which is not asked for anything."
    about = _column_line(array, line, with_nulls=len(array) <= _MOST_CELLS_FOR_NULLS)
    said = [f"{len(array):,} values, {about}, name {line(series.name)}", f"index: {_index(index, line)}"]
    return "\n".join([*said, _head(index, [(series.name, array)], line, hides, more=0)])


def _index_short(index: Any, line: Line) -> str:
    if not _index_readable(index):
        return "of labels that are not read"
    shown = [line(label) for label in list(index[:HEAD])]
    more = ", …" if len(index) > len(shown) else ""
    return f"{len(index):,} labels, {_dtype(index.dtype, line)}: {', '.join(shown)}{more}"


def _index_full(index: Any, line: Line, _hides: Hides) -> str:
    return _index_short(index, line)


def _index(index: Any, line: Line) -> str:
    return f"{type_name(type(index)).rpartition('.')[2]}, {_index_short(index, line)}"


def _column(frame: Any, position: int) -> Any:
    # By `frame.iloc` or a label, pandas would copy `frame.attrs` deeply, and compare labels: anybody's objects.
    return frame._get_column_array(position)


def _column_line(array: Any, line: Line, *, with_nulls: bool) -> str:
    nulls = _nulls(array) if with_nulls else None
    return _dtype(array.dtype, line) + (f", {nulls:,} null" if nulls else "")


def _nulls(array: Any) -> int | None:
    if package_of(type(array)) not in {"numpy", "pandas"} or not _readable(array.dtype):
        return None
    if array.dtype.kind in "biu" and package_of(type(array.dtype)) == "numpy":
        return 0
    if array.dtype == "object":  # pandas would compare each with itself
        missing = [find_loaded("pandas", name) for name in ("NaT", "NA")]
        return sum(
            each is None or (type(each) is float and each != each) or any(each is one for one in missing)
            for each in array
        )
    isna: Any = find_loaded("pandas", "isna")
    return int(isna(array).sum())


def _cells(array: Any, line: Line) -> list[str]:
    rows = min(HEAD, len(array))
    if package_of(type(array)) not in {"numpy", "pandas"} or not _readable(array.dtype):
        return [f"<{type_name(type(array))}>"] * rows
    return [_cut(line(array[row])) for row in range(rows)]


def _head(index: Any, arrays: Sequence[tuple[Any, Any]], line: Line, hides: Hides, *, more: int) -> str:
    rows = min(HEAD, len(index))
    columns = [["", *(_cut(line(label)) for label in list(index[:HEAD]))]]
    for label, array in arrays:
        private = type(label) is str and hides(label)
        columns.append([_cut(line(label)), *(["private"] * rows if private else _cells(array, line))])
    return _grid(columns, more)


def _polars_frame_short(frame: Any, line: Line) -> str:
    columns = [
        f"{line(name)} {_polars_dtype(dtype)}" for name, dtype in zip(frame.columns, frame.dtypes[:_WIDE], strict=False)
    ]
    more = frame.width - len(columns)
    shown = ", ".join(columns) + (f", … {more:,} more" if more > 0 else "")
    return f"{frame.height:,} rows × {frame.width:,} columns: {shown}"


def _polars_frame_full(frame: Any, line: Line, hides: Hides) -> str:
    several = [frame.to_series(i) for i in range(min(frame.width, MOST_COLUMNS))]
    said = [f"{frame.height:,} rows × {frame.width:,} columns", "columns:"]
    said += [f"  {line(each.name)}: {_polars_about(each)}" for each in several]
    if frame.width > len(several):
        said.append(f"  … {frame.width - len(several):,} more columns")
    said.append(_grid([_polars_column(each, line, hides) for each in several[:_WIDE]], frame.width - _WIDE))
    return "\n".join(said)


def _polars_series_short(series: Any, line: Line) -> str:
    return f"{series.len():,} values, {_polars_dtype(series.dtype)}, name {line(series.name)}"


def _polars_series_full(series: Any, line: Line, hides: Hides) -> str:
    said = f"{series.len():,} values, {_polars_about(series)}, name {line(series.name)}"
    return f"{said}\n{_grid([_polars_column(series, line, hides)], 0)}"


def _polars_about(series: Any) -> str:
    nulls = series.null_count()
    return _polars_dtype(series.dtype) + (f", {nulls:,} null" if nulls else "")


def _polars_dtype(dtype: Any) -> str:
    if package_of(dtype if issubclass(type(dtype), type) else type(dtype)) != "polars":
        return f"<{type_name(type(dtype))}>"
    return "Enum" if type(dtype) is find_loaded("polars", "Enum") else str(dtype)[:_LONGEST_CELL]


def _polars_column(series: Any, line: Line, hides: Hides) -> list[str]:
    rows = min(HEAD, series.len())
    if hides(series.name):
        cells = ["private"] * rows
    elif _polars_dtype(series.dtype).startswith("<") or series.dtype.is_nested():
        cells = [_polars_dtype(series.dtype)] * rows  # to read one is to copy all that it holds
    else:
        cells = [_cut(line(each)) for each in series.head(HEAD).to_list()]
    return [_cut(line(series.name)), *cells]


def _tensor(tensor: Any, _line: Line) -> str:
    return f"shape {_shape(tensor)}, {tensor.dtype}, on {tensor.device}"


def _tensor_full(tensor: Any, line: Line, _hides: Hides) -> str:
    return _tensor(tensor, line)


def _timestamp(value: Any, _line: Line) -> str:
    zone = value.tzinfo
    if zone is not None and package_of(type(zone)) not in _ZONES:
        return f"<Timestamp in {type_name(type(zone))}>"
    return str(value.isoformat())


def _interval(value: Any, line: Line) -> str:
    opening, closing = "[("[value.closed in {"right", "neither"}], "])"[value.closed in {"left", "neither"}]
    return f"{opening}{line(value.left)}, {line(value.right)}{closing}"


def _text(value: Any, _line: Line) -> str:
    return str(value)


def _grid(columns: list[list[str]], more: int) -> str:
    widths = [max(len(cell) for cell in column) for column in columns]
    rows = zip(*columns, strict=True)
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    title = "first rows" + (f" (… {more:,} more columns):" if more > 0 else ":")
    return "\n".join([title, *lines])


def _cut(cell: str) -> str:
    return cell if len(cell) <= _LONGEST_CELL else f"{cell[:_LONGEST_CELL]}…"


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count:,} bytes"


_MISSING = Known(_text)
_TYPES: dict[str, list[tuple[str, str, Known]]] = {
    "numpy": [
        ("numpy", "ndarray", Known(_array_short, _array_full)),
        *(("numpy", name, Known(_numpy_scalar)) for name in _NUMPY_SCALARS),
    ],
    "pandas": [
        ("pandas", "DataFrame", Known(_frame_short, _frame_full)),
        ("pandas", "Series", Known(_series_short, _series_full)),
        *(("pandas", name, Known(_index_short, _index_full)) for name in _INDEXES),
        ("pandas", "Timestamp", Known(_timestamp)),
        ("pandas", "Timedelta", Known(_text)),
        ("pandas", "Period", Known(_text)),
        ("pandas", "Interval", Known(_interval)),
    ],
    "polars": [
        ("polars", "DataFrame", Known(_polars_frame_short, _polars_frame_full)),
        ("polars", "Series", Known(_polars_series_short, _polars_series_full)),
    ],
    "torch": [
        ("torch", "Tensor", Known(_tensor, _tensor_full)),
        ("torch.nn", "Parameter", Known(_tensor, _tensor_full)),
    ],
}
