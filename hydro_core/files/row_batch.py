"""Batches of rows of a file by column name, and values of other writers in our types."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, Protocol

import pyarrow as pa

from hydro_core.files.kinds import Declared, ReadNames, refuse
from hydro_core.storage.remote import DataPlace
from hydro_core.types.arrow import SCALARS, arrow_type
from hydro_core.types.item import (
    BINARY,
    BOOLEAN,
    FLOATS,
    INTEGERS,
    LONG,
    REASON,
    STRING,
    UNKNOWN,
    Array,
    Decimal,
    Field,
    ItemType,
    Row,
    Scalar,
    Tuple,
)
from hydro_core.types.json import from_json
from hydro_core.types.values import RowItem, Struct, ValueProblem, conform_input, unfit

WrongRows = Mapping[int, str]
"""Why some rows are none, by their places."""

_WHOLE = re.compile(r"-?[0-9]{1,19}")
_ITEM: dict[pa.DataType, ItemType] = {arrow: Scalar(name) for name, arrow in SCALARS.items()}
_WIDER: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def item_type(arrow: pa.DataType) -> ItemType:
    """The item type of Arrow values; `ValueProblem` where there is none (a map, a time of day)."""
    plain = plain_type(arrow)
    if plain in _ITEM:
        return _ITEM[plain]
    if pa.types.is_null(plain):
        return UNKNOWN
    if pa.types.is_decimal(plain):
        return Decimal(plain.precision, plain.scale)
    if pa.types.is_list(plain):
        return Array(item_type(plain.value_type))
    if pa.types.is_struct(plain):
        fields = [plain.field(i) for i in range(plain.num_fields)]
        types = [Field(field.name, item_type(field.type)) for field in fields]
        if types and [f.name for f in types] == [f"_{i + 1}" for i in range(len(types))]:
            return Tuple(tuple(f.type for f in types))
        return Row(tuple(types))
    raise ValueProblem(f"an item has no values of the type {arrow}")


def plain_type(arrow: pa.DataType) -> pa.DataType:
    """The type of ours that holds these values: no dictionaries, microseconds, UTC."""
    wider = _WIDER.get(arrow)
    if wider is not None:
        return wider
    if pa.types.is_dictionary(arrow):
        return plain_type(arrow.value_type)
    if pa.types.is_timestamp(arrow):
        return pa.timestamp("us", "UTC" if arrow.tz else None)
    if pa.types.is_decimal(arrow) and arrow.precision <= 38:
        return pa.decimal128(arrow.precision, arrow.scale)
    if (
        pa.types.is_list(arrow)
        or pa.types.is_large_list(arrow)
        or pa.types.is_fixed_size_list(arrow)
    ):
        return pa.list_(plain_type(arrow.value_type))
    if pa.types.is_struct(arrow):
        fields = [arrow.field(i) for i in range(arrow.num_fields)]
        return pa.struct([(field.name, plain_type(field.type)) for field in fields])
    return arrow


def plain_table(table: pa.Table) -> pa.Table:
    """The table with columns of our types only; `ValueProblem` if one of them loses a digit."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        columns[name], wrong = plain_column(table.column(name))
        for problem in wrong.values():
            raise ValueProblem(f"{problem} (in column `{name}`)")
    return pa.table(columns)


def plain_column(column: Any) -> tuple[Any, WrongRows]:
    """The values in a type of ours, and those that it does not hold, which are null there; of a
    time finer than a microsecond the rest stands, since it tells a tick.
    """
    plain = plain_type(column.type)
    try:
        return column.cast(plain), {}
    except pa.ArrowInvalid as problem:
        if len(column) == 1:
            if not pa.types.is_timestamp(plain):
                return pa.array([None], plain), {0: str(problem)}
            text = column.cast(pa.string())[0].as_py()
            return column.cast(plain, safe=False), {0: f"{text} is finer than a microsecond"}
    half = len(column) // 2
    # A cast of a slice of lists is one of all elements, those before and after it too.
    parts = (column.take(pa.array(range(*ends))) for ends in ((half,), (half, len(column))))
    (first, wrong), (second, others) = map(plain_column, parts)
    chunks = [c for part in (first, second) for c in getattr(part, "chunks", [part])]
    return pa.chunked_array(chunks), {**wrong, **{half + n: why for n, why in others.items()}}


def lost_nanoseconds(micros: Any, nanos: Any) -> WrongRows:
    """The rows in which values read in nanoseconds have more digits than those in microseconds."""
    if micros.type == nanos.type or micros.cast(nanos.type, safe=False).equals(nanos):
        # Nanoseconds of times far away wrap around, and so does this cast.
        return {}
    if len(micros) == 1:
        return {0: "it is finer than a microsecond"}
    half = len(micros) // 2
    first, second = (
        lost_nanoseconds(micros.take(pa.array(part)), nanos.take(pa.array(part)))
        for part in (range(half), range(half, len(micros)))
    )
    return {**first, **{half + row: why for row, why in second.items()}}


def folder_value(text: str | None, to: ItemType) -> pa.Scalar[Any]:
    """The value that the name of a folder has for a column, as a field of CSV is read: a name has
    no quotes, so no text is null. `ValueProblem` where it is none.
    """
    of = arrow_type(to)
    if text is None or (not text and to != STRING):
        return pa.scalar(None, of)
    if to == BOOLEAN or str(to) in INTEGERS + FLOATS:
        try:
            return pa.scalar(text.strip()).cast(of)
        except pa.ArrowInvalid:
            raise unfit(text, to) from None
    if to == BINARY or not isinstance(to, Scalar | Decimal):
        raise ValueProblem(f"the name of a folder has no form for type {to}")
    return pa.scalar(from_json(text, to), of)


def folder_type(texts: Iterable[str | None]) -> ItemType:
    """The type of a column that nothing but the names of folders tells: whole numbers, or text."""
    values = {text for text in texts if text is not None}
    if not values or not all(_WHOLE.fullmatch(value) for value in values):
        return STRING
    most = max(abs(int(value)) for value in values)
    return Scalar("integer") if most < 2**31 else LONG if most < 2**63 else STRING


def item_of(value: Any, of: ItemType) -> Any:
    """The item that a value of `to_pylist` is."""
    match of:
        case _ if value is None:
            return None
        case Tuple(fields):
            return Struct(item_of(value[f"_{i + 1}"], t) for i, t in enumerate(fields))
        case Row(fields):
            return RowItem((f.name, item_of(value[f.name], f.type)) for f in fields)
        case Array(element):
            return [item_of(x, element) for x in value]
        case _:
            return value


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
