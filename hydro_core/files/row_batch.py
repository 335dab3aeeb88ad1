"""A piece of the rows of a file, before they are items of a program: columns by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, Protocol

import pyarrow as pa

from hydro_core.files.kinds import Declared, ReadNames
from hydro_core.files.plain import WrongRows, item_of, item_type
from hydro_core.files.unreadable import refuse
from hydro_core.storage.remote import DataPlace
from hydro_core.types.item import REASON, STRING, ItemType
from hydro_core.types.json import from_json
from hydro_core.types.values import ValueProblem, conform_input

ROWS = 10_000
"""The rows of a piece: a few MiB of usual ones."""
NUMBER, MOMENT = "number", "moment"
"""The columns of what a row's tick column tells, one of the two."""

Reading = Callable[[Any], Any]
"""From a value as it lies in a file to an item; `ValueProblem` where it is none."""


@dataclass(frozen=True, slots=True)
class FileForm:
    """How the files of an input are read."""

    kind: str
    base: DataPlace
    declared: Declared
    wanted: ReadNames
    schema: pa.Schema | None = None
    """The columns as all files together have them; None: of JSON lines, or not known yet."""
    constants: Mapping[DataPlace, Mapping[str, Any]] = field(default_factory=dict)
    """Columns that a file does not hold, since they are the same in all of its rows."""

    @property
    def tolerant(self) -> bool:
        """Whether wrong rows are read, too: see `hydro_core.types.item`."""
        return REASON in self.declared


@dataclass(frozen=True, slots=True)
class TextLine:
    """A row in a file of text: the line in which it begins, from 1 on, and its text."""

    number: int
    text: str

    @staticmethod
    def of(number: int, content: bytes) -> TextLine:
        """Bytes as text; those that are not UTF-8 by their numbers."""
        return TextLine(number, content.decode("utf-8", "backslashreplace").rstrip("\r\n"))


class Reject(NamedTuple):
    """Why a row of a file of text is none: what its line, or a column of it, is or has."""

    problem: str
    cure: str
    column: str | None = None

    @property
    def reason(self) -> str:
        """What is said beside the row."""
        return f"it {self.problem}" if self.column is None else f"{self._at}: {self.problem}"

    def refuse(self, file: DataPlace, line: int) -> NoReturn:
        """Refuses the file for the row, which begins in a line."""
        at = " " if self.column is None else f", {self._at}: "
        refuse(f"`{file}`, line {line}{at}{self.problem}", self.cure)

    @property
    def _at(self) -> str:
        return f"column `{self.column}`"


NOT_UTF8 = Reject("is not UTF-8", "save it as UTF-8, for example with `iconv -f LATIN1 -t UTF-8`")


class Lines(Protocol):
    """The lines that rows are, by their places."""

    def __getitem__(self, place: int, /) -> TextLine: ...


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """The rows of an Arrow table; of its `names`, not all may have been read."""

    table: pa.Table
    names: Sequence[str]
    wrong: WrongRows = field(default_factory=dict)
    """The rows that are none, if such are read: nothing is known of their columns."""
    lines: Lines | None = None
    """The lines of the file that the rows are; None: they are none."""
    inexact: Mapping[str, WrongRows] = field(default_factory=dict)
    """By the column, the values that no type of ours holds."""

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def text(self, row: int) -> str:
        """A row as JSON, by the columns that are read; dates and the like as Python writes them."""
        (found,) = self.table.slice(row, 1).to_pylist()
        return json.dumps(found, ensure_ascii=False, default=str)

    def values(self, column: str) -> Sequence[Any]:
        values: list[Any] = self.table.column(column).to_pylist()
        return values

    def reading(self, column: str, to: ItemType) -> Reading:
        """How a value of the column is read: texts stand for items of other types as in JSON."""
        of = item_type(self.table.schema.field(column).type)
        if of == STRING:
            return lambda value: from_json(value, to)
        return lambda value: conform_input(item_of(value, of), to)


@dataclass(frozen=True, slots=True)
class JsonRows:
    """The rows of JSON lines: objects, where a missing column is null."""

    objects: Sequence[Mapping[str, Any]]
    names: Sequence[str]
    wrong: WrongRows
    lines: Lines

    def __len__(self) -> int:
        return len(self.objects)

    def values(self, column: str) -> Sequence[Any]:
        return [row.get(column) for row in self.objects]

    def reading(self, column: str, to: ItemType) -> Reading:
        return lambda value: from_json(value, to)


RowBatch = ArrowRows | JsonRows


def misfit(problem: str, row: int, column: str) -> ValueProblem:
    """What is wrong with the value of a column in a row."""
    return ValueProblem(f"{problem} (row {row}, column `{column}`)")
