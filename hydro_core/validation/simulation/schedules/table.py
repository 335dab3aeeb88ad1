"""The facts of a predicate in a tick: a set of tuples, with indices by the columns asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

FactRow = tuple[Any, ...]
NOTHING: tuple[FactRow, ...] = ()


class FactTable:
    """A set of rows. Indices are made when they are asked for, and grow with it."""

    __slots__ = ("_indices", "rows")

    def __init__(self, rows: Iterable[FactRow] = ()) -> None:
        self.rows: set[FactRow] = set(rows)
        self._indices: dict[tuple[int, ...], dict[Any, list[FactRow]]] = {}

    def by(self, columns: tuple[int, ...]) -> Mapping[Any, Sequence[FactRow]]:
        """The rows by their values in some columns: one value as it is, several as a tuple."""
        found = self._indices.get(columns)
        if found is None:
            found = {}
            _add(found, columns, self.rows)
            self._indices[columns] = found
        return found

    def add(self, rows: Iterable[FactRow]) -> set[FactRow]:
        """Adds rows; gives those that were not there."""
        new = set(rows) - self.rows
        if new:
            self.rows |= new
            for columns, index in self._indices.items():
                _add(index, columns, new)
        return new


def _add(
    index: dict[Any, list[FactRow]], columns: tuple[int, ...], rows: Iterable[FactRow]
) -> None:
    if len(columns) == 1:
        (column,) = columns
        for row in rows:
            index.setdefault(row[column], []).append(row)
        return
    for row in rows:
        index.setdefault(tuple(row[c] for c in columns), []).append(row)
