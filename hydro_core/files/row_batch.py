"""A piece of the rows of a file, before they are items of a program: columns by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from hydro_core.files.plain import item_of, item_type
from hydro_core.files.wrong import NONE_WRONG, TextLine, WrongRows
from hydro_core.types.item import STRING, ItemType
from hydro_core.types.json import from_json
from hydro_core.types.values import NOT_NULL, ValueProblem, conform_input

Reading = Callable[[Any], Any]
"""From a value as it lies in a file to an item; `ValueProblem` where it is none."""


class RowBatch(Protocol):
    """Rows with named columns."""

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def wrong(self) -> WrongRows:
        """The rows that are none, if such are read: nothing is known of their columns."""
        ...

    @property
    def lines(self) -> Sequence[TextLine] | None:
        """The lines of the file that the rows are; None: not known."""
        ...

    def text(self, row: int) -> str:
        """A row as JSON, by the columns that are read."""
        ...

    def __len__(self) -> int: ...

    def values(self, column: str) -> Sequence[Any]:
        """A column's values, in the order of the rows."""
        ...

    def reading(self, column: str, to: ItemType) -> Reading:
        """How a value of the column is read as an item of the type."""
        ...


class ArrowRows:
    """The rows of an Arrow table; there may be columns that were not read."""

    def __init__(
        self,
        table: pa.Table,
        names: Sequence[str],
        wrong: WrongRows = NONE_WRONG,
        lines: Sequence[TextLine] | None = None,
    ) -> None:
        self.table, self.wrong, self.lines = table, wrong, lines
        self._names = names

    @property
    def names(self) -> Sequence[str]:
        return self._names

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def text(self, row: int) -> str:
        """A row as JSON; dates and the like as Python writes them."""
        (found,) = self.table.slice(row, 1).to_pylist()
        return json.dumps(found, ensure_ascii=False, default=str)

    def values(self, column: str) -> Sequence[Any]:
        """A column's values."""
        values: list[Any] = self.table.column(column).to_pylist()
        return values

    def reading(self, column: str, to: ItemType) -> Reading:
        """How a value of the column is read: texts stand for items of other types as in JSON."""
        of = item_type(self.table.schema.field(column).type)
        if of == STRING:
            return lambda value: from_json(value, to)
        return lambda value: conform_input(item_of(value, of), to)


def asked(read: Reading, required: bool) -> Reading:
    """How a value is read of a column that is, or is not, declared `not null`."""

    def of_required(value: Any) -> Any:
        found = read(value)
        if found is None:
            raise ValueProblem(NOT_NULL)
        return found

    return of_required if required else read


def misfit(problem: str, row: int, column: str) -> ValueProblem:
    """What is wrong with the value of a column in a row."""
    return ValueProblem(f"{problem} (row {row}, column `{column}`)")


class JsonRows:
    """The rows of JSON lines: objects, where a missing column is null."""

    def __init__(
        self,
        objects: Sequence[Mapping[str, Any]],
        wrong: WrongRows = NONE_WRONG,
        lines: Sequence[TextLine] | None = None,
    ) -> None:
        self.objects, self.wrong, self.lines = objects, wrong, lines
        self._names = list(dict.fromkeys(name for row in objects for name in row))

    @property
    def names(self) -> Sequence[str]:
        return self._names

    def __len__(self) -> int:
        return len(self.objects)

    def text(self, row: int) -> str:
        """A row as JSON."""
        return json.dumps(self.objects[row], ensure_ascii=False)

    def values(self, column: str) -> Sequence[Any]:
        """A column's values, as JSON has them."""
        return [row.get(column) for row in self.objects]

    def reading(self, column: str, to: ItemType) -> Reading:
        """How a value of the column is read."""
        return lambda value: from_json(value, to)
