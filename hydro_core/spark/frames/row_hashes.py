"""Hashes of rows, to compare bags of them: the same in every process and on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hydro_core.types.item import PLACE

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]


def row_hashes(rows: pa.Table) -> Hashes:
    """A hash of each row: nested columns and nulls count.

    Where a wrong row lies does not: a file that is written anew, or joined with others, holds the
    same rows.
    """
    import numpy as np

    total: Hashes = np.full(rows.num_rows, 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in rows.columns:
        whole: Any = column.combine_chunks()
        for part in _flat(whole):
            total = (total * np.uint64(1099511628211)) ^ _hashes(part)
    return total


def _flat(column: Any) -> Iterator[Any]:
    """The leaves of a column and, for structs, which rows are null; lists stay whole."""
    if pa.types.is_struct(column.type):
        yield column.is_null()
        for field, part in zip(column.type, column.flatten(), strict=True):
            if field.name != PLACE:
                yield from _flat(part)
    else:
        yield column


def _hashes(column: Any) -> Hashes:
    import numpy as np
    import pandas as pd

    nulls = column.is_null().to_numpy(zero_copy_only=False)
    kind = column.type
    values: Any
    if pa.types.is_floating(kind):
        values = column.fill_null(0.0).to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        values = (
            column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        )
    elif pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        width: Any = pa.int64() if pa.types.is_timestamp(kind) else pa.int32()
        values = column.cast(width).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    else:
        values = np.array([repr(value) for value in column.to_pylist()], dtype=object)
    hashed: Hashes = pd.util.hash_array(values, categorize=False)
    return np.where(nulls, np.uint64(0x5BD1E995), hashed)
