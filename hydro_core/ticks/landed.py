"""Rows that lie in files, before they are items of a program: columns by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from hydro_core.ticks.arrow import item_of, item_type
from hydro_core.types.columns import Required
from hydro_core.types.item import STRING, ItemType, Row
from hydro_core.types.json import from_json, infer
from hydro_core.types.values import NOT_NULL, RowItem, ValueProblem, conform_input

Reading = Callable[[Any], Any]
"""From a value as it lies in a file to an item; `ValueProblem` where it is none."""


_NONE: Required = frozenset()


class Landed(Protocol):
    """Rows with named columns."""

    @property
    def names(self) -> Sequence[str]:
        """The columns."""
        ...

    @property
    def types(self) -> Mapping[str, ItemType]:
        """The columns and their types as the data has them; `ValueProblem` where they have none."""
        ...

    def __len__(self) -> int: ...

    def values(self, column: str) -> Sequence[Any]:
        """A column's values, in the order of the rows."""
        ...

    def reading(self, column: str, to: ItemType) -> Reading:
        """How a value of the column is read as an item of the type."""
        ...

    def rows(
        self, places: Sequence[int], wanted: Mapping[str, ItemType], required: Required = _NONE
    ) -> Iterator[RowItem]:
        """The rows at these places, with the wanted columns as items of the wanted types."""
        ...


class ArrowRows:
    """The rows of an Arrow table; there may be columns that were not read."""

    def __init__(self, table: pa.Table, names: Sequence[str]) -> None:
        self.table = table
        self._names = names

    @property
    def names(self) -> Sequence[str]:
        """The columns, also those that were not read."""
        return self._names

    @property
    def types(self) -> Mapping[str, ItemType]:
        """The columns and their types; `ValueProblem` where a column's is none of ours."""
        return {field.name: item_type(field.type) for field in self.table.schema}

    def __len__(self) -> int:
        return int(self.table.num_rows)

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

    def rows(
        self, places: Sequence[int], wanted: Mapping[str, ItemType], required: Required = _NONE
    ) -> Iterator[RowItem]:
        """The rows at these places."""
        part = self.table.select(list(wanted)).take(pa.array(places, pa.int64()))
        columns = []
        for name, to in wanted.items():
            read = asked(self.reading(name, to), name in required)
            found = zip(places, part.column(name).to_pylist(), strict=True)
            columns.append([_read(read, name, place, value) for place, value in found])
        if not columns:
            yield from (RowItem() for _ in places)
        for values in zip(*columns, strict=True):
            yield RowItem(zip(wanted, values, strict=True))


def asked(read: Reading, required: bool) -> Reading:
    """How a value is read of a column that is, or is not, declared `not null`."""

    def of_required(value: Any) -> Any:
        found = read(value)
        if found is None:
            raise ValueProblem(NOT_NULL)
        return found

    return of_required if required else read


def _read(read: Reading, name: str, place: int, value: Any) -> Any:
    try:
        return read(value)
    except ValueProblem as problem:
        raise misfit(str(problem), place, name) from None


def misfit(problem: str, place: int, name: str) -> ValueProblem:
    """What is wrong with the value of a column in a row."""
    return ValueProblem(f"{problem} (row {place}, column `{name}`)")


class JsonRows:
    """The rows of JSON lines: objects, where a missing column is null."""

    def __init__(self, objects: Sequence[Mapping[str, Any]]) -> None:
        self.objects = objects
        self._names = list(dict.fromkeys(name for row in objects for name in row))

    @property
    def names(self) -> Sequence[str]:
        """The columns that any of the rows has."""
        return self._names

    @property
    def types(self) -> Mapping[str, ItemType]:
        """The columns with the types that their values have in common."""
        found = infer(self.objects)
        fields = found.fields if isinstance(found, Row) else ()
        return {field.name: field.type for field in fields}

    def __len__(self) -> int:
        return len(self.objects)

    def values(self, column: str) -> Sequence[Any]:
        """A column's values, as JSON has them."""
        return [row.get(column) for row in self.objects]

    def reading(self, column: str, to: ItemType) -> Reading:
        """How a value of the column is read."""
        return lambda value: from_json(value, to)

    def rows(
        self, places: Sequence[int], wanted: Mapping[str, ItemType], required: Required = _NONE
    ) -> Iterator[RowItem]:
        """The rows at these places."""
        readings = {n: asked(self.reading(n, to), n in required) for n, to in wanted.items()}
        for place in places:
            row = self.objects[place]
            yield RowItem(
                (name, _read(read, name, place, row.get(name))) for name, read in readings.items()
            )
