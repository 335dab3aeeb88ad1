"""Which tables a plan has, whether those of a directory are of the same program, and which of them
no deployment needs any more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hydro_core.errors import DataError, ProgramError
from hydro_core.ir.graph import Endpoint, Node
from hydro_core.plan.semantic_hash import hash_of
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.spark.frames.relation import Kind
from hydro_core.spark.store.layout import directory_names
from hydro_core.spark.store.ledger.ledger import state_error
from hydro_core.spark.store.ledger.records import Commit
from hydro_core.spark.store.schema import (
    COPIES,
    TableSpec,
    flattened,
    output_table,
    state_table,
)
from hydro_core.storage.delta import is_table
from hydro_core.storage.places import remove_tree
from hydro_core.storage.remote import DataPlace
from hydro_core.types.item import ItemType, Order, StreamType


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a plan, by the slots' ids and by the outputs' names."""

    state: Mapping[str, TableSpec]
    outputs: Mapping[str, TableSpec]
    identity: str = ""
    """What the ledger knows the program by; empty: by what the tables store."""

    @property
    def all(self) -> tuple[TableSpec, ...]:
        """All of them, the state first."""
        return (*self.state.values(), *self.outputs.values())

    @staticmethod
    def of(plan: TickPlan) -> Tables:
        """Those of a plan, where a new pipeline puts them."""
        return Tables(state_tables(plan), output_tables(plan))


def state_tables(plan: TickPlan) -> Mapping[str, TableSpec]:
    """The table of each state slot, by the slots' ids.

    Raises:
        ProgramError: two slots would have one table (code `name`).
    """
    return _distinct({slot.id: state_table(slot) for slot in plan.slots})


def output_tables(plan: TickPlan) -> Mapping[str, TableSpec]:
    """The table of each output, by the outputs' names.

    Raises:
        ProgramError: an output has columns that a table cannot hold (code `type`), or two outputs
            would have one table (`name`).
    """
    directories = directory_names(plan.graph.sinks)
    return _distinct(
        {
            name: _output(plan, (name, directories[name]), sinks)
            for name, sinks in plan.graph.sinks.items()
        }
    )


def _distinct(tables: Mapping[str, TableSpec]) -> Mapping[str, TableSpec]:
    """The tables, if file systems can tell all their directories apart."""
    owners: dict[str, str] = {}
    for name, spec in tables.items():
        other = owners.setdefault(spec.name.casefold(), name)
        if other is not name:
            raise ProgramError.of(
                "name",
                f"the tables of `{other}` and `{name}` would be one directory, `{spec.name}`",
                help="give one of them another name",
            )
    return tables


def _output(plan: TickPlan, name: tuple[str, str], sinks: tuple[Node, ...]) -> TableSpec:
    """`name` is that of the output, and that of its directory."""
    streams = [sink.inputs[0] for sink in sinks]
    types = [_type_of(plan, stream) for stream in streams]
    ordered = len(types) == 1 and types[0].order is Order.TOTAL
    # The positions of a history change from tick to tick, so an ordered one is stored as events.
    item = types[0].item
    return output_table(
        *name,
        StreamType(item, Order.TOTAL if ordered else Order.NONE),
        Kind.E if ordered else _kind(plan, streams, item),
        semantic_hash=".".join(sorted(hash_of(stream, plan.hashes) for stream in streams)),
    )


def _kind(plan: TickPlan, streams: Sequence[Endpoint], item: ItemType) -> Kind:
    """H: each tick adds its rows; G: its changes; E: the rows that are there at it."""
    kinds = {Kind.G if s.node in plan.in_changes else plan.kinds[s.node] for s in streams}
    rest = [s.node for s in streams if s.node not in plan.in_changes]
    unreported = any(plan.kinds[node] is not Kind.H for node in rest)
    if kinds == {Kind.H}:
        return Kind.H
    # A column of the program's own may have the name that the changes would need.
    is_free = COPIES not in {name.lower() for name, _ in flattened(item)}
    return Kind.G if not unreported and is_free else Kind.E


def _type_of(plan: TickPlan, stream: Endpoint) -> StreamType:
    """The type of a stream; the copies of a `tee` have the type of what it copies."""
    types = plan.typed.types
    return types[stream] if stream in types else types[Endpoint(stream.node)]


def fingerprint(tables: Iterable[TableSpec]) -> str:
    """What the ledger knows a program by: two programs with one fingerprint store the same."""
    records = sorted(
        json.dumps({**table.record(), "of": table.of if table.role == "output" else ""})
        for table in tables
    )
    return hashlib.sha256("\n".join(records).encode()).hexdigest()[:24]


def refuse_another_program(
    directory: DataPlace, plan: str, tables: Iterable[TableSpec], commit: Commit
) -> None:
    """Raises unless the last commit is of the same program.

    Raises:
        DataError: what differs, and what to do (code `state`).
    """
    tables = tuple(tables)
    # The same program may have state elsewhere, where another one has served in between.
    there = not commit.tables or all(table.name in commit.tables for table in tables)
    if commit.plan == plan and there:
        return
    mine = {table.name: dict(table.record()) for table in tables}
    theirs = {name: dict(record) for name, record in commit.tables.items()}
    raise _another_program(directory, _differences(mine, theirs))


def _differences(
    mine: Mapping[str, Mapping[str, object]], theirs: Mapping[str, Mapping[str, object]]
) -> list[str]:
    changed = [name for name in mine if name in theirs and mine[name] != theirs[name]]
    return [
        *(f"{name} is new" for name in mine if name not in theirs),
        *(f"{name} is gone" for name in theirs if name not in mine),
        *(f"{name} is computed or stored differently" for name in changed),
    ]


def _another_program(directory: DataPlace, differences: list[str]) -> DataError:
    listed = "; ".join(differences) or "its tables are the same, their order is not"
    return state_error(
        f"the pipeline in {directory} was run by another program: {listed}",
        "go on with the program that made it, or run this one in another directory",
    )


def retired_since(commits: Sequence[Commit]) -> dict[str, datetime]:
    """When each table that the last commit does not name was given up, by the tables' names."""
    known: set[str] = set()
    found: dict[str, datetime] = {}
    for commit in commits:
        for name in known - set(commit.tables):
            found.setdefault(name, commit.committed)
        for name in commit.tables:
            found.pop(name, None)
        known |= set(commit.tables)
    return found


def drop_retired(
    directory: DataPlace, commits: Sequence[Commit], now: datetime, keep: timedelta
) -> tuple[str, ...]:
    """Removes the tables of a pipeline that were given up longer ago than `keep`.

    The pipeline's lock is held. Gives their names; there is no going back to the deployments that
    had them.
    """
    gone = []
    for name, since in retired_since(commits).items():
        if now - since >= keep and is_table(directory / name):
            remove_tree(directory / name)
            gone.append(name)
    return tuple(gone)
