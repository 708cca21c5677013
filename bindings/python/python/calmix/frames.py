"""Columns and frames of pandas, Polars and PyArrow, none of which the package needs.

A library is recognised by the classes of what it is given, so nothing is imported that the user has not imported.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calmix.arrays import as_array

_LIBRARIES = ("pandas", "polars", "pyarrow")


def library_of(given: object) -> str | None:
    """The library that a frame, a column or an index is of."""
    for base in type(given).__mro__:
        root = base.__module__.partition(".")[0]
        if root in _LIBRARIES:
            return root
    return None


def column_names(given: Any) -> list[Any] | None:
    """The names of the columns of a frame of numbers; `None` for anything else, and for a single column of vectors."""
    # PyArrow's `columns` are the data.
    columns = getattr(given, "column_names" if library_of(given) == "pyarrow" else "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return None if len(names) == 1 and _has_vectors(_only_column(given)) else names


def as_rows(given: Any, name: str) -> NDArray[Any]:
    """Numbers in rows: of an array, of a frame with a column for each number, or of one column of vectors."""
    library = library_of(given)
    column = _only_column(given)
    if column is not None and _has_vectors(column):
        return _stacked(column, library, name)
    if library == "pandas" and hasattr(given, "dtypes") and hasattr(given, "columns"):
        from pandas.api.types import is_extension_array_dtype, is_numeric_dtype

        dtypes = list(given.dtypes)
        if any(map(is_extension_array_dtype, dtypes)) and all(map(is_numeric_dtype, dtypes)):
            return given.to_numpy(dtype=np.float64, na_value=np.nan)
    if library == "pyarrow" and hasattr(given, "columns"):
        if given.num_columns == 0:
            return np.empty((given.num_rows, 0))
        return np.column_stack([np.asarray(column) for column in given.columns])
    return as_array(given, name)


def as_column(given: Any) -> Any:
    """A column of Polars or PyArrow as an array, masked where it is null; anything else as it is.

    Categories become the values that they stand for. Numbers keep their type, which an array with NaN would not.
    """
    library = library_of(given)
    if library not in ("polars", "pyarrow"):
        return given
    column = _only_column(given)
    if column is None:
        return given
    if library == "polars":
        missing = column.is_null().to_numpy()
        present = column.drop_nulls()
        if str(column.dtype).startswith(("Categorical", "Enum")):
            present = np.array(present.to_list(), dtype=object)
        else:
            present = present.to_numpy()
    else:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        present = column.drop_null()
        if hasattr(present.type, "index_type"):
            present = present.cast(present.type.value_type)
        present = present.to_numpy(zero_copy_only=False)
    if not missing.any():
        return present
    data = np.zeros(len(missing), dtype=present.dtype)
    data[~missing] = present
    return np.ma.masked_array(data, mask=missing)


def values_of(given: Any) -> list[Any]:
    """The values of a column, such as paths or images."""
    library = library_of(given)
    if library is None:
        return list(given)
    column = _only_column(given)
    if column is None:
        raise ValueError("images are one column of paths or bytes, but this frame has several: pass one, frame[NAME]")
    if library == "pandas":
        values = column.to_list() if hasattr(column, "to_list") else list(column)
    else:
        values = column.to_list() if library == "polars" else column.to_pylist()
    for row, value in enumerate(values):
        if value is None or (isinstance(value, float) and value != value):
            raise ValueError(f"row {row} has no image")
    return values


def answer_frame(
    like: Any,
    classes: NDArray[Any],
    label: NDArray[Any],
    confidence: NDArray[np.float32],
    probabilities: NDArray[np.float32],
    members: NDArray[np.bool_] | None,
    abstain: NDArray[np.bool_] | None,
) -> Any:
    """Answers as a frame of the library of `like`, of pandas if it is of none, with the index of `like`."""
    names = classes.tolist()
    columns: dict[str, Any] = {"label": label.tolist(), "confidence": confidence}
    columns["set"] = [None] * len(label) if members is None else _sets(names, probabilities, members)
    columns["abstain"] = [None] * len(label) if abstain is None else abstain
    for number, name in enumerate(names):
        columns[f"p({name})"] = np.ascontiguousarray(probabilities[:, number])
    library = library_of(like)
    if library == "polars":
        import polars

        return polars.DataFrame(columns)
    if library == "pyarrow":
        import pyarrow

        return pyarrow.table(columns)
    try:
        import pandas
    except ImportError as error:
        raise ImportError("a data frame of these inputs is one of pandas: pip install pandas") from error
    index = getattr(like, "index", None) if library == "pandas" else None
    return pandas.DataFrame(columns, index=index)


def with_verdict(frame: Any, verdict: dict[str, Any]) -> Any:
    """The frame with a verdict on its rows, in `attrs` of pandas and in the metadata of PyArrow; Polars has no place for it."""
    library = library_of(frame)
    if library == "pandas":
        # Plain values, which pandas writes to Parquet files.
        frame.attrs["verdict"] = verdict
    elif library == "pyarrow":
        frame = frame.replace_schema_metadata({"verdict": json.dumps(verdict)})
    return frame


def _sets(names: list[Any], probabilities: NDArray[np.float32], members: NDArray[np.bool_]) -> list[list[Any]]:
    """The names of the classes of each set, the most probable one first."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    return [[names[number] for number in row if is_in[number]] for row, is_in in zip(order, members)]


def _only_column(given: Any) -> Any:
    """The column of a frame that has one, or a column itself; `None` for frames with several columns and for arrays."""
    library = library_of(given)
    if library is None:
        return None
    shape = getattr(given, "shape", (len(given),))
    if len(shape) == 1:
        return given
    if shape[1] != 1:
        return None
    if library == "pandas":
        return given.iloc[:, 0]
    return given.to_series() if library == "polars" else given.column(0)


def _has_vectors(column: Any) -> bool:
    """Whether the values of a column are lists or arrays."""
    if column is None or len(column) == 0:
        return False
    library = library_of(column)
    if library == "polars":
        return column.dtype.is_nested()
    if library == "pyarrow":
        return hasattr(column.type, "value_field")
    first = next((value for value in column if isinstance(value, (list, tuple, np.ndarray))), None)
    return first is not None


def _stacked(column: Any, library: str | None, name: str) -> NDArray[Any]:
    """The vectors of a column as rows."""
    if library == "polars":
        vectors = column.list if str(column.dtype).startswith("List") else None
        lengths = None if vectors is None else vectors.len().to_numpy()
        numbers = column.explode().to_numpy() if vectors is not None else column.to_numpy()
        missing = column.is_null().to_numpy()
    elif library == "pyarrow":
        import pyarrow.compute

        missing = column.is_null().to_numpy(zero_copy_only=False)
        lengths = pyarrow.compute.list_value_length(column).to_numpy(zero_copy_only=False)
        numbers = pyarrow.compute.list_flatten(column).to_numpy(zero_copy_only=False)
    else:
        rows = list(column)
        missing = np.array([not isinstance(row, (list, tuple, np.ndarray)) for row in rows])
        lengths = np.array([0 if gone else len(row) for row, gone in zip(rows, missing)])
        numbers = None
    if missing.any():
        raise ValueError(f"{name}: row {int(missing.argmax())} has no vector")
    if lengths is not None and (lengths != lengths[0]).any():
        row = int((lengths != lengths[0]).argmax())
        raise ValueError(f"{name}: row {row} has {int(lengths[row])} numbers, but row 0 has {int(lengths[0])}")
    array = np.array(rows) if numbers is None else numbers
    return array.reshape(len(column), -1)
