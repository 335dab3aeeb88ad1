"""What keyed operators give: `(k, acc)`, or a row of the key columns and the accumulator."""

from __future__ import annotations

from typing import Any

from hydro_core.reference.keys import Columns, field
from hydro_core.types.values import RowItem, Struct

VALUE = "value"
"""The column of an accumulator that is no row."""


def keyed_result(key: Columns, item: Any, acc: Any) -> Any:
    """The output item for the key of `item` and its accumulator."""
    if not key.names:
        return Struct((field(item, 0), acc))
    columns = {name: field(item, name) for name in key.names}
    if acc is None:
        # Whether it would be one column or several: they are null, which the output's type adds.
        return RowItem(columns)
    return RowItem({**columns, **(acc if isinstance(acc, dict) else {VALUE: acc})})
