"""Records of the ledger: a commit, what it has read of inputs, and their columns in Arrow.

What follows from the commits of a ledger is computed here as well: rows that arrived with each
tick, and outputs whose earlier ticks are of another program.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, is_dataclass
from datetime import datetime
from typing import Any, get_args, get_origin

import pyarrow as pa

from hydro_core.catalog.forms import Form
from hydro_core.spark.functions.reruns import RerunCount
from hydro_core.types.records import AS_TEXT, hints_of, optional

_SCALARS: Mapping[Any, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    bool: pa.bool_(),
    float: pa.float64(),
    datetime: pa.timestamp("us", tz="UTC"),
}


def columns_of(kind: type) -> list[pa.Field[Any]]:
    """The columns that values of a dataclass have, in the order of its fields."""
    known = hints_of(kind)
    found: list[pa.Field[Any]] = []
    for column in fields(kind):
        how = column.metadata.get("as")
        if how == "inline":
            found += columns_of(known[column.name])
        else:
            of = pa.string() if how == "text" else _arrow(known[column.name])
            found.append(pa.field(column.name, of))
    return found


def as_row(value: Any) -> dict[str, Any]:
    """A value as Arrow takes it: mappings are pairs in the order of their keys."""
    found: dict[str, Any] = {}
    for column in fields(value):
        how, one = column.metadata.get("as"), getattr(value, column.name)
        if how == "inline":
            found |= as_row(one)
        else:
            found[column.name] = json.dumps(one, sort_keys=True) if how == "text" else _part(one)
    return found


def as_rows(values: Iterable[Any], schema: pa.Schema) -> pa.Table:
    """Values of a dataclass as a table of its columns."""
    return pa.Table.from_pylist([as_row(value) for value in values], schema)


def records_in(rows: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table, as what is made of records.

    Of instants that have a zone pyarrow makes pandas' own, so they are had without one: looked at
    anew, not cast, since to cast it loads all its functions.
    """
    local = pa.timestamp("us")
    for place, column in enumerate(rows.schema):
        if column.type == _SCALARS[datetime]:
            seen = [chunk.view(local) for chunk in rows.column(place).chunks]
            rows = rows.set_column(place, column.with_type(local), pa.chunked_array(seen, local))
    return rows.to_pylist(maps_as_pydicts="strict")


def _part(value: Any) -> Any:
    if is_dataclass(value):
        return as_row(value)
    if isinstance(value, Mapping):
        return sorted((key, _part(one)) for key, one in value.items())
    return [_part(one) for one in value] if isinstance(value, tuple | list) else value


def _arrow(kind: Any) -> pa.DataType:
    kind = optional(kind)
    origin, of = get_origin(kind), get_args(kind)
    if origin is not None and issubclass(origin, Mapping):
        return pa.map_(_arrow(of[0]), _arrow(of[1]))
    if origin is not None:
        return pa.list_(_arrow(of[0]))
    if isinstance(kind, type) and is_dataclass(kind):
        return pa.struct(columns_of(kind))
    return _SCALARS[kind]


Counts = Mapping[int, int | None]
"""How many rows of an input have arrived with each tick; None: nobody has counted."""


@dataclass(frozen=True, slots=True)
class ChangedRange:
    """Committed ticks, `first` to `last`, whose rows in a landing are not what they were.

    `removed` rows are there no more, `added` ones stand in their place; None: how many cannot be
    told.
    """

    first: int
    last: int
    removed: int | None = None
    added: int | None = None


@dataclass(frozen=True, slots=True)
class InputRead:
    """What a commit read of one input: the rows found under `location` at `version`."""

    name: str
    rows: int | None = None
    location: str | None = None
    version: int | None = None
    kind: str | None = None
    """What the input is: a Delta table, or files of which kind; None: not known."""
    empty: tuple[int, ...] = ()
    """The ticks of the commit that no row was of."""
    table: str | None = None
    """The identity of a Delta table: another one in its place has another."""
    listing: str | None = None
    """The name of the list of files that existed, in `_landings/`."""
    late: Mapping[int, int] = field(default_factory=dict)
    """How many rows of earlier ticks arrived with the first tick of the commit, by their tick."""
    changed: tuple[ChangedRange, ...] = ()
    """The ticks whose rows in the landing have been found changed, and were not computed again."""
    acknowledged_version: int | None = None
    """The version up to which `hydrotick accept` has acknowledged the changes since `version`; the
    row of the ledger that says so has no ticks of its own.
    """
    acknowledged_listing: str | None = None
    """The same for files: the list up to which changes since `listing` are acknowledged."""
    early: int = 0
    """How many rows are from before the first tick, and so of none; counted with that tick."""
    counts: Mapping[int, int] | None = None
    """How many rows arrived with each tick that was read; None: ticks were read as they had been
    before, or nobody has counted.
    """
    differences: str | None = None
    """The name of the list of differences between the rows that were read and the landing."""
    acknowledged_differences: str | None = None
    """The same after an acknowledgement."""

    @property
    def lists(self) -> tuple[str, ...]:
        """The lists in `_landings/` that it names."""
        acknowledged = self.acknowledged_listing, self.acknowledged_differences
        named = self.listing, self.differences, *acknowledged
        return tuple(name for name in named if name is not None)


@dataclass(frozen=True, slots=True)
class Commit:
    """One row of the ledger: ticks `first` to `last` are done, the tables stand at `versions`."""

    sequence: int
    first: int
    last: int
    plan: str
    versions: Mapping[str, int]
    rows: Mapping[str, int]
    inputs: tuple[InputRead, ...] = ()
    start: datetime | None = None
    """Where the window of the first tick starts, in time."""
    end: datetime | None = None
    """Where the window of the last tick ends."""
    _: KW_ONLY
    started: datetime
    committed: datetime
    checks: Mapping[str, Any] = field(default_factory=dict, metadata=AS_TEXT)
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, metadata=AS_TEXT)
    """What each table holds: enough to see whether another program can go on from it."""
    reruns: tuple[RerunCount, ...] = ()
    """The functions for which ranges up to this one ran again in Python."""
    back: bool = False
    """Whether it went back to a program that had served before."""

    @property
    def ticks(self) -> range:
        return range(self.first, self.last + 1)

    @property
    def ran_again(self) -> tuple[RerunCount, ...]:
        """The functions for which the ticks of this commit ran again in Python."""
        return tuple(one for one in self.reruns if one.commit == self.sequence)

    def replaces(self, table: str) -> bool:
        """Whether a tick replaces all rows of a table, by its name."""
        return self.tables.get(table, {}).get("mode") == Form.VALUES.stored


LEDGER_SCHEMA = pa.schema(columns_of(Commit))
"""The columns of a ledger."""


def programs_of(commits: Iterable[Commit]) -> tuple[Commit, ...]:
    """The programs that have served and were not given up, each by its last commit."""
    served: list[str] = []
    last: dict[str, Commit] = {}
    for commit in commits:
        last[commit.plan] = commit
        if served[-1:] == [commit.plan]:
            continue
        if commit.plan in served and commit.back:
            while served[-1] != commit.plan:
                served.pop()
        else:
            served.append(commit.plan)
    return tuple(last[plan] for plan in served)


# Each commit says how many rows arrived with the ticks that it read. A deployment, or the way back
# to an earlier one, computes ticks again as they had been read, so it says it of new inputs alone.


def standing_counts(commits: Sequence[Commit]) -> Mapping[str, Counts]:
    """How many rows each tick has of each input, by the commits up to some."""
    found: dict[str, dict[int, int | None]] = {}
    for commit, anew in _in_order(commits):
        for ticks in found.values():
            for tick in [tick for tick in ticks if tick > commit.last]:
                del ticks[tick]
        for read in commit.inputs:
            ticks = found.setdefault(read.name, {})
            if read.counts is not None:
                ticks.update(read.counts)
            elif anew:
                ticks.update(dict.fromkeys(commit.ticks))
    return found


def anew_since(commits: Sequence[Commit], sequence: int) -> int | None:
    """The first tick that was read, not as it had been, by a commit after one; None: none was."""
    later = (c.first for c, anew in _in_order(commits) if anew and c.sequence > sequence)
    return min(later, default=None)


def reading(commits: Sequence[Commit]) -> list[Commit]:
    """The commits that have read their ticks, and not as they had been read before."""
    return [commit for commit, anew in _in_order(commits) if anew and commit.inputs]


def last_read_of(commits: Sequence[Commit], name: str) -> tuple[InputRead, int] | None:
    """What was read of an input last, and the first tick that has not read it."""
    found = None
    for commit in commits:
        for read in commit.inputs:
            if read.name == name:
                found = read, commit.last + 1
    return found


def late_by_tick(commits: Sequence[Commit], name: str) -> Counter[int]:
    """How many rows of an input have arrived late, by their own ticks."""
    made_by: dict[int, InputRead] = {}
    for commit, anew in _in_order(commits):
        end = commit.first if anew else commit.last + 1
        made_by = {tick: read for tick, read in made_by.items() if tick < end}
        if anew:
            made_by |= ((commit.first, read) for read in commit.inputs if read.name == name)
    return sum((Counter(read.late) for read in made_by.values()), Counter())


def _in_order(commits: Sequence[Commit]) -> Iterator[tuple[Commit, bool]]:
    """The commits, and whether each has read the ticks that it made."""
    plan = None
    for commit in commits:
        yield commit, bool(commit.ticks) and plan in (None, commit.plan)
        plan = commit.plan


# A deployment that keeps a part of the past says so in its commit: earlier ticks of such outputs
# are as another program left them.


SEAMS = "seams"
"""What a commit calls, among what it keeps for others, the outputs that it has restated, with the
first tick of each that it has; 0: all.
"""


def seams(commits: Iterable[Commit]) -> Mapping[str, int]:
    """Of the tables that are of two programs as the last of these commits leaves them, the first
    tick that is of the program that serves.

    Args:
        commits: all up to that one, in their order.
    """
    found: dict[str, int] = {}
    left: dict[str, Mapping[str, int]] = {}
    plan = ""
    for commit in commits:
        if commit.plan != plan and commit.back:
            found = dict(left.get(commit.plan, {}))
        elif commit.plan != plan:
            found = {**found, **commit.checks.get(SEAMS, {})}
        if commit.ticks and (commit.plan == plan or commit.back):
            # Ticks that were computed again are of one program.
            found = {name: min(tick, commit.first) for name, tick in found.items()}
        plan, left[commit.plan] = commit.plan, found
    return {name: tick for name, tick in found.items() if tick > 0}


def last_seam(commits: Iterable[Commit]) -> int:
    """The first tick from which on all logs of outputs are of the program that serves.

    A log tells what each tick changes of the tick before, so that no tick up to a seam can be
    computed again unless all are.

    Args:
        commits: all up to the one that left the tables.
    """
    commits = list(commits)
    tables = commits[-1].tables if commits else {}
    logs = (t for name, t in seams(commits).items() if tables.get(name, {}).get("kind") == "G")
    return max(logs, default=-1)
