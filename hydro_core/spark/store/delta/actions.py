"""The data files that a Delta table names, with their statistics."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from hydro_core.storage.delta import entry_of
from hydro_core.storage.remote import DataPlace, RemotePath, file_known, name_below

SUMMED_TO = "hydrotick.summedTo"
"""What an entry of a log says of the tick up to which the rows are one."""
_ORDER = "hydrotick.order"


def stored_file(table: DataPlace, row: Mapping[str, Any]) -> DataPlace:
    """The file of a row that has `path` and `size_bytes`, of which a store need not be asked."""
    # A file of a Delta table never changes.
    return file_known(table, row["path"], row["size_bytes"], 0)


def summing(tick: int) -> CommitProperties:
    """What a commit to a table says of the tick up to which its rows are one."""
    return CommitProperties(app_transactions=[Transaction(SUMMED_TO, tick)])


def last_entry(table: DeltaTable, place: DataPlace) -> Mapping[str, Any]:
    """What the last entry of a table's log says of itself."""
    if not isinstance(place, RemotePath):
        return table.history(1)[0]
    lines = entry_of(place, table.version()).read_bytes().splitlines()
    said = (json.loads(line).get("commitInfo") for line in lines)
    return next((info for info in said if info is not None), {})


def summed_to(table: DeltaTable, firsts: Iterable[int | None]) -> int:
    """The last tick that a log may not tell apart from those before it; -1: none. `firsts` are the
    first ticks of its files, as far as they are known.
    """
    recorded = table.transaction_version(SUMMED_TO)
    known = [first for first in firsts if first is not None]
    return max(-1 if recorded is None else recorded, min(known, default=0) - 1)


def named_types(schema: pa.Schema) -> list[tuple[str, str]]:
    """The columns of a table, and their types in words."""
    return [(field.name, str(field.type)) for field in schema]


def with_order(schema: pa.Schema) -> pa.Schema:
    """The columns, of which the first says by a hash in which order they and their fields are.

    delta-rs takes schemas that have the same columns in another order for one, and leaves a table
    the order that it has.
    """
    order = sha256(repr(named_types(schema)).encode()).hexdigest()[:16]
    first = schema.field(0).with_metadata({_ORDER: order})
    return pa.schema([first, *list(schema)[1:]])


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table at a version, with what the log tells of its ticks."""

    path: DataPlace
    size: int
    rows: int | None
    first: int | None = None
    last: int | None = None

    def may_hold(self, first: int, last: int) -> bool:
        """Whether rows of the ticks `first` to `last` may be in it."""
        return (self.last is None or self.last >= first) and (
            self.first is None or self.first <= last
        )


def added(file: DataFile, table: DataPlace, tick: str = "") -> AddAction:
    """That a file below a table's directory is one of the table's.

    Args:
        file: the file.
        table: the directory.
        tick: the column that has the ticks, if there is one.
    """
    statistics: dict[str, Any] = {"nullCount": {tick: 0}} if tick else {}
    if file.rows is not None:
        statistics["numRecords"] = file.rows
    if file.first is not None and file.last is not None:
        statistics |= {"minValues": {tick: file.first}, "maxValues": {tick: file.last}}
    name, told = name_below(file.path, table), json.dumps(statistics)
    return AddAction(name, file.size, {}, _now(), True, told)


def removed(file: DataFile, table: DataPlace) -> RemoveAction:
    """That a file is one of a table's no more."""
    return RemoveAction(name_below(file.path, table), True, _now(), file.size)


def _now() -> int:
    return int(time.time() * 1000)
