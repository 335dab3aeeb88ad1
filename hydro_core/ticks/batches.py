"""Input streams from files, cut into ticks.

A column holds the tick's number, or a time that a length of time cuts into ticks. An input without
such a column arrives whole at tick 0. Ticks without rows are ticks, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NoReturn
from zoneinfo import ZoneInfo

from hydro_core.errors import DataError, Diagnostic
from hydro_core.ticks.every import Every
from hydro_core.ticks.files import read
from hydro_core.ticks.landed import Landed
from hydro_core.ticks.tick import TickInput
from hydro_core.types.columns import declared_columns, required_columns
from hydro_core.types.item import TIMESTAMP, UNKNOWN, Field, ItemType, Row, Tuple
from hydro_core.types.moments import print_moment
from hydro_core.types.values import UNFIT, Struct, ValueProblem, conform


@dataclass(frozen=True, slots=True)
class InputFile:
    """`NAME=PATH[:COLUMN]`."""

    name: str
    path: str
    column: str | None = None

    @staticmethod
    def parse(text: str) -> InputFile:
        """The input that an argument names.

        >>> InputFile.parse("orders=data/orders.parquet:day")
        InputFile(name='orders', path='data/orders.parquet', column='day')
        """
        name, equals, path = text.partition("=")
        before, colon, column = path.rpartition(":")
        has_column = (
            colon and before and column and not Path(path).exists() and not set(column) & set("/\\")
        )
        if not (name.strip() and equals and path):
            raise DataError(
                Diagnostic(
                    "config",
                    f"`--input {text}` is not NAME=PATH[:COLUMN]",
                    help="for example `--input orders=data/orders.parquet:day`",
                )
            )
        return InputFile(
            name.strip(), before if has_column else path, column if has_column else None
        )


@dataclass(frozen=True, slots=True)
class LandedInput:
    """An input stream and the rows it is made of."""

    file: InputFile
    landed: Landed

    def item_type(self) -> ItemType:
        """The items' type as the data has it; the tick's column is part of a row."""
        try:
            return item_type_of(self.landed.types, self.file.column)
        except ValueProblem as problem:
            refuse_untyped(self.file, str(problem))

    def items(self, places: Sequence[int], of: ItemType, tick: int) -> list[Any]:
        """The items of the rows at these places."""
        wanted = declared_columns(of) or {}
        try:
            rows = list(self.landed.rows(places, wanted, required_columns(of)))
        except ValueProblem as problem:
            refuse(self.file, f"in tick {tick}, {problem}", UNFIT)
        match of:
            case Row():
                return rows
            case Tuple():
                return [Struct(dict.values(row)) for row in rows]
            case _:
                return [row["item"] for row in rows]


def item_type_of(types: Mapping[str, ItemType], tick_column: str | None) -> ItemType:
    """The type of the items that columns make: the tick's column is part of a row."""
    rest = {name: t for name, t in types.items() if name != tick_column}
    if list(rest) == ["item"]:
        return rest["item"]
    if rest and list(rest) == [f"_{i + 1}" for i in range(len(rest))]:
        return Tuple(tuple(rest.values()))
    return Row(tuple(Field(name, t) for name, t in types.items()))


def land(files: Sequence[InputFile], declared: Mapping[str, ItemType]) -> list[LandedInput]:
    """Reads the inputs; what a program declares of them must be there."""
    found = []
    for file in files:
        columns = declared_columns(declared.get(file.name, UNKNOWN)) or {}
        landing = LandedInput(file, read(file.path, columns, file.column))
        require_columns(file, columns, landing.landed.names)
        found.append(landing)
    return found


def require_columns(file: InputFile, declared: Iterable[str], there: Sequence[str]) -> None:
    """Refuses a file that lacks a declared column, or the tick column."""
    for name in (*declared, *((file.column,) if file.column else ())):
        # An empty file of JSON lines has no columns, and needs none.
        if there and name not in there:
            what = "tick column" if name == file.column else "column"
            refuse(file, f"the {what} `{name}` is missing", f"there are {', '.join(there)}")


@dataclass(frozen=True, slots=True)
class Cut:
    """How many ticks there are, which rows each input has in each, and when they begin."""

    count: int
    places: Mapping[str, Mapping[int, Sequence[int]]]
    every: Every
    start: datetime | None

    def ticks(
        self, landings: Sequence[LandedInput], types: Mapping[str, ItemType]
    ) -> Iterator[TickInput]:
        """The ticks one after the other; items are made when their tick comes."""
        for tick in range(self.count):
            batches = {
                landing.file.name: landing.items(
                    self.places[landing.file.name].get(tick, ()), types[landing.file.name], tick
                )
                for landing in landings
            }
            if self.start is None:
                yield TickInput(batches)
            else:
                yield TickInput(batches, self._begin(tick), self._begin(tick + 1))

    def _begin(self, tick: int) -> datetime:
        if self.start is None:
            raise ValueError("these ticks have no times")
        return self.every.start_of(tick, self.start)


def cut(landings: Sequence[LandedInput], every: Every, start: datetime | None) -> Cut:
    """Cuts the inputs into ticks."""
    columns = {x.file.name: _column(x, x.file.column) for x in landings if x.file.column}
    start = start_of(
        [_summary(x.file, columns.get(x.file.name, [])) for x in landings], every, start
    )
    found: dict[str, dict[int, list[int]]] = {}
    for landing in landings:
        name = landing.file.name
        if landing.file.column:
            found[name] = _by_tick(landing.file, columns[name], every, start)
        else:
            found[name] = {0: list(range(len(landing.landed)))}
    last = max((tick for places in found.values() for tick in places), default=-1)
    return Cut(last + 1, found, every, start)


@dataclass(frozen=True, slots=True)
class TickColumn:
    """What the tick column of an input holds: numbers of ticks, or times from the earliest on."""

    file: InputFile
    numbers: bool
    earliest: datetime | None


def start_of(
    columns: Sequence[TickColumn], every: Every, start: datetime | None
) -> datetime | None:
    """When tick 0 begins, None where ticks are numbered; numbers and times do not go together."""
    times = {column.file.name for column in columns if column.earliest is not None}
    numbers = {column.file.name: column.file for column in columns if column.numbers}
    if times and numbers:
        file = numbers[min(numbers)]
        message = f"`{file.column}` holds numbers of ticks, but that of `{min(times)}` times"
        refuse(file, message, "let all inputs have numbers of ticks, or all have times")
    if numbers and start is not None:
        message = "`--start` is a time, but the tick column holds numbers"
        refuse(numbers[min(numbers)], message, "leave `--start` out: ticks are numbered from 0")
    if times and start is None:
        return every.floor(min(c.earliest for c in columns if c.earliest is not None))
    return start


def _summary(file: InputFile, values: Sequence[Any]) -> TickColumn:
    times = [value for value in values if isinstance(value, datetime)]
    return TickColumn(file, any(isinstance(v, int) for v in values), min(times, default=None))


def _column(landing: LandedInput, column: str) -> list[Any]:
    """The tick column: integers, or times in UTC."""
    if not landing.landed.names:
        return []
    values = landing.landed.values(column)
    try:
        return [moment_of(value) for value in values]
    except ValueProblem as problem:
        refuse_untold(landing.file, str(problem))


def moment_of(value: Any, zone: str = "UTC") -> Any:
    """What a value of a tick column is: the number of a tick, or a time in UTC.

    Dates, and times that name no zone, are of `zone`.
    """
    match value:
        case None:
            raise ValueProblem("a row has no tick: it is null")
        case bool():
            raise ValueProblem(f"{value} is neither a number nor a time")
        case int():
            return value
        case str() | datetime():
            return _in_zone(conform(value, TIMESTAMP), zone, is_wall=_names_no_zone(value))
        case date():
            return _in_zone(conform(value.isoformat(), TIMESTAMP), zone, is_wall=True)
        case _:
            raise ValueProblem(f"{value!r} is neither a whole number nor a time")


_OFFSET = re.compile(r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)$")


def _names_no_zone(value: str | datetime) -> bool:
    if isinstance(value, datetime):
        return value.tzinfo is None
    # The hyphens of a date are none of an offset.
    return not ("T" in value or ":" in value) or _OFFSET.search(value.strip()) is None


def _in_zone(moment: datetime, zone: str, *, is_wall: bool) -> datetime:
    if not is_wall or zone == "UTC":
        return moment
    return moment.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def _by_tick(
    file: InputFile, values: Sequence[Any], every: Every, start: datetime | None
) -> dict[int, list[int]]:
    places: dict[int, list[int]] = {}
    for place, value in enumerate(values):
        tick = value if start is None else every.tick_of(value, start)
        if tick < 0:
            refuse_early(file, place, value, start)
        places.setdefault(tick, []).append(place)
    return places


def refuse_early(file: InputFile, place: int, value: Any, start: datetime | None) -> NoReturn:
    """Refuses a row that is of no tick."""
    if start is None:
        refuse(file, f"row {place} is of tick {value}", "ticks are numbered from 0")
    refuse(
        file,
        f"row {place} is of {print_moment(value)}, before the first tick, "
        f"which begins at {print_moment(start)}",
        "let `--start` be earlier, or leave the row out",
    )


def refuse_untyped(file: InputFile, problem: str) -> NoReturn:
    """Refuses an input whose data tell no type of its items."""
    refuse(file, problem, 'declare its type: `name = source("…")`, or `--schema`')


def refuse_untold(file: InputFile, problem: str) -> NoReturn:
    """Refuses a row whose tick column tells no tick."""
    cure = "give every row the number of its tick, a date or a timestamp (ISO 8601)"
    refuse(file, f"the tick column `{file.column}`: {problem}", cure)


def refuse(file: InputFile, message: str, cure: str) -> NoReturn:
    """Raises an error of an input's data (code `input`)."""
    raise DataError(Diagnostic("input", f"input `{file.name}` ({file.path}): {message}", help=cure))
