"""Which rows stand between the first and the last place that others with their key say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from hydro_core.plan.found_rows import FIRST, LAST
from hydro_core.spark.store.values import Column, leaf_of
from hydro_core.types.item import FieldPath, ItemType

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Between:
    """The first and the last place of each key."""

    path: FieldPath
    """Where the place of a row stands."""
    first: Numbers
    """Of the key with each number."""
    last: Numbers

    def keep(self, places: Column, keys: Numbers) -> Mask:
        """Which of some rows stand between those of their key.

        Args:
            places: where they stand.
            keys: the numbers of their keys.
        """
        number = place_numbers(places)
        there: Mask = places.is_valid().to_numpy(zero_copy_only=False)
        return there & (self.first[keys] <= number) & (number <= self.last[keys])


def between(path: FieldPath, keys: Numbers, others: Column, of_others: ItemType) -> Between:
    """The places that others say; of several with a key, from the first to the last of them.

    Args:
        path: where the place of a row stands.
        keys: the number of the others' keys, from 0 on.
        others: these, with a first and a last place.
        of_others: their type.
    """
    import numpy as np

    count = int(keys.max()) + 1
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(first, keys, leaf_of(others, of_others, (FIRST,)).to_numpy())
    np.maximum.at(last, keys, leaf_of(others, of_others, (LAST,)).to_numpy())
    return Between(path, first, last)


def place_numbers(column: Column) -> Numbers:
    """The numbers by which places are compared, times or integers; some number where none is."""
    wide = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
    numbers: Numbers = column.cast(wide).cast(pa.int64()).fill_null(0).to_numpy()
    return numbers
