"""An input: its name, where its rows lie, which column tells their ticks, and what they are.

What is wrong with it is told here, in one way, whoever reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from hydro_core.errors import DataError
from hydro_core.storage.remote import DataPlace, is_remote, place_at
from hydro_core.storage.settings import StorageSettings
from hydro_core.types.item import (
    DATE,
    DOUBLE,
    FLOATS,
    LONG,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    Decimal,
    Field,
    ItemType,
    Row,
    Tuple,
    is_integer,
)
from hydro_core.types.values import print_moment


@dataclass(frozen=True, slots=True)
class InputFile:
    """`NAME=PATH[:COLUMN]`."""

    name: str
    path: str
    column: str | None = None
    optional: frozenset[str] = frozenset()
    """The declared columns that files may lack: null then."""
    storage: StorageSettings = field(default=StorageSettings(), repr=False)
    """How the store is reached that the path is in, if it is in one."""

    @property
    def place(self) -> DataPlace:
        """Where the path leads."""
        return place_at(self.path, self.storage) if is_remote(self.path) else Path(self.path)

    @staticmethod
    def parse(text: str, storage: StorageSettings | None = None) -> InputFile:
        """The input that an argument names.

        Raises:
            HydroError: it is none, or its path is a URL of another machine (code `config`).

        >>> InputFile.parse("orders=data/orders.parquet:day")
        InputFile(name='orders', path='data/orders.parquet', column='day', optional=frozenset())
        """
        name, equals, path = text.partition("=")
        before, colon, column = path.rpartition(":")
        has_column = (
            colon and before and column and not Path(path).exists() and not set(column) & set("/\\")
        )
        if not (name.strip() and equals and path):
            raise DataError.of(
                "config",
                f"`--input {text}` is not NAME=PATH[:COLUMN]",
                help="for example `--input orders=data/orders.parquet:day`",
            )
        place = place_at(before if has_column else path, storage or StorageSettings())
        at = (name.strip(), str(place), column if has_column else None)
        return InputFile(*at, storage=storage or StorageSettings())


def item_type_of(types: Mapping[str, ItemType], tick_column: str | None) -> ItemType:
    """The type of the items that columns make: the tick's column is part of a row."""
    rest = {name: t for name, t in types.items() if name != tick_column}
    if list(rest) == ["item"]:
        return rest["item"]
    if rest and list(rest) == [f"_{i + 1}" for i in range(len(rest))]:
        return Tuple(tuple(rest.values()))
    return Row(tuple(Field(name, t) for name, t in types.items()))


_SIZES = ("byte", "short", "integer", "long")


def fits_whole(of: ItemType, to: ItemType) -> bool:
    """Whether each value of one type is an item of the other, as a cast makes it; nulls apart."""
    match of, to:
        case _ if of == to:
            return True
        case Decimal(), Decimal():
            return of.scale <= to.scale and of.precision - of.scale <= to.precision - to.scale
        case _ if is_integer(of) and is_integer(to):
            return _SIZES.index(str(of)) < _SIZES.index(str(to))
        case _:
            # A double has not the digits of each long.
            return to == DOUBLE and (str(of) in FLOATS or (is_integer(of) and of != LONG))


def numbers_ticks(of: ItemType) -> bool:
    """Whether each value of a type but null is the number of a tick, or a time."""
    return is_integer(of) or of in (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def demands(of: ItemType) -> bool:
    """Whether values of a type hold fields that are declared `not null`."""
    match of:
        case Row(fields):
            return any(not field.nullable or demands(field.type) for field in fields)
        case Tuple(parts):
            return any(map(demands, parts))
        case Array(element):
            return demands(element)
        case _:
            return False


Lacking = Mapping[str, DataPlace]
"""Columns that a file lacks, each with the first such file."""


def first_lacking(
    columns: Iterable[str], files: Iterable[tuple[DataPlace, Collection[str]]]
) -> Lacking:
    """The columns that a file lacks; `files` have the names that each has, none if it is empty."""
    found: dict[str, DataPlace] = {}
    wanted = list(columns)
    for file, names in files:
        for name in wanted if names else ():
            if name not in names:
                found.setdefault(name, file)
    return found


def require_columns(
    file: InputFile, declared: Iterable[str], there: Sequence[str], lacking: Lacking
) -> None:
    """Refuses an input of which a file lacks a declared column, or all lack the tick column."""
    for name in declared:
        if name in file.optional or not (name in lacking or (there and name not in there)):
            continue
        if name not in there:
            _refuse_missing(file, f"the column `{name}`", there)
        refuse(
            file,
            f"the column `{name}` is missing in `{lacking[name]}`, and other files have it",
            "write the file with the column; or, if files of a flow may lack it, let its input "
            f"say `optional: [{name}]`: it is null then",
        )
    # An empty file has no columns, and needs none.
    if file.column is not None and there and file.column not in there:
        _refuse_missing(file, f"the tick column `{file.column}`", there)


def _refuse_missing(file: InputFile, what: str, there: Sequence[str]) -> NoReturn:
    refuse(file, f"{what} is missing", f"there are {', '.join(there) or 'no columns'}")


def require_ticks(file: InputFile, types: Mapping[str, ItemType] | None) -> None:
    """Refuses a tick column that tells no ticks, as far as its type says so."""
    column = file.column
    if column is None or types is None or column not in types:
        return
    if str(types[column]) in ("boolean", "float", "double", "binary"):
        refuse(
            file,
            f"the tick column `{column}` is {types[column]}, which tells no tick",
            "use a column with the tick's number, a date or a timestamp",
        )


@dataclass(frozen=True, slots=True)
class FileRow:
    """A row: its file, and its number in it from 0 on."""

    file: DataPlace
    row: int


def refuse_before_start(
    file: InputFile, place: FileRow, value: int | datetime, start: datetime | None
) -> NoReturn:
    row = f"`{place.file.name}`: row {place.row}"
    if start is None or isinstance(value, int):
        refuse(file, f"{row} is of tick {value}", "ticks are numbered from 0")
    refuse(
        file,
        f"{row} is of {print_moment(value)}, before the first tick, "
        f"which begins at {print_moment(start)}",
        "let `--start` be earlier, or leave the row out",
    )


NO_TICK = "a row has no tick: it is null"


def refuse_without_tick(file: InputFile, problem: str) -> NoReturn:
    """Refuses a row whose tick column tells no tick."""
    cure = "give every row the number of its tick, a date or a timestamp (ISO 8601)"
    refuse(file, f"the tick column `{file.column}`: {problem}", cure)


def refuse_mixed(file: InputFile, other: InputFile) -> NoReturn:
    """Refuses numbers of ticks where other rows, or another input, have times."""
    of, which = (f"that of `{other.name}`", "inputs") if other != file else ("other rows", "rows")
    message = f"`{file.column}` holds numbers of ticks, but {of} times"
    refuse(file, message, f"let all {which} have numbers of ticks, or all have times")


def refuse(file: InputFile, message: str, cure: str) -> NoReturn:
    """Raises an error of an input's data (code `input`)."""
    raise DataError.of("input", f"input `{file.name}` ({file.path}): {message}", help=cure)
