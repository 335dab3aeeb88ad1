"""What a flow has of the rows that have a value: landed, in tables, gone since they were read.

What is kept of a deletion until it has ended is in files beside the ledger, and has no values.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from hydro_core.errors import DataError
from hydro_core.machine.faults import faults_as_errors
from hydro_core.project.flow_asset import FlowAsset, FlowOutput
from hydro_core.storage.places import write_whole
from hydro_core.storage.remote import DataPlace, RemotePath

from ..flows.landed_past import look
from ..flows.late_arrivals import noticed

if TYPE_CHECKING:
    from hydro_core.spark.inputs.looks import LandingView
    from hydro_core.spark.inputs.removed_rows import RemovedRows, RowsOfValue
    from hydro_core.spark.inputs.snapshot import HashedRows
    from hydro_core.spark.pipeline.forgetting import TheirRows
    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.store.ledger.input_reads import InputRead

    from .runner import TickRunner

_BEGUN, _NAMED = "_forget.json", "_forget_named.json"

WhoseRows = Mapping[str, tuple[str, Any]]
"""Of inputs the column that tells whose a row is, and the value there."""


@dataclass(frozen=True, slots=True)
class NamedRows:
    """The rows of files that were named, for their owner to take them out: by their hashes, and the
    columns that these are of.
    """

    read_as: str
    hashes: Counter[int]


@dataclass(frozen=True, slots=True)
class TheirLanding:
    """What an input's landing has of the rows."""

    theirs: RowsOfValue
    files: Mapping[DataPlace, int]
    is_delta: bool
    by_flow: str = ""
    """The flow whose output it is."""

    @property
    def rows(self) -> int:
        return sum(self.files.values())

    @property
    def is_own_delta(self) -> bool:
        """Whether it is a Delta table, from which the rows are deleted here."""
        return self.is_delta and not self.by_flow


@dataclass(frozen=True, slots=True)
class ToForget:
    """What there is of the rows, and which way it goes."""

    runner: TickRunner
    flow: FlowAsset
    landed: Mapping[str, TheirLanding]
    keyed: TheirRows
    done: int
    """So many ticks are committed."""
    begun: bool
    """Whether it was begun before, and has not ended."""
    tables: Mapping[str, int] = field(default_factory=dict)
    """How many rows each table has of it, where that can be told."""
    replaced: int = 0
    """How many are in files that the tables held before, where that can be told."""
    gone: Mapping[str, RemovedRows] = field(default_factory=dict)
    """What has gone from landings since they were read last."""
    first: int | None = None
    """The first tick to be computed again; None: none is."""

    @property
    def is_by_key(self) -> bool:
        """Whether the rows are taken out of the tables as they are."""
        return not self.keyed.obstacles

    @property
    def is_nothing(self) -> bool:
        there = (*self.tables.values(), *(one.rows for one in self.landed.values()), self.replaced)
        return not (any(there) or self.begun or self.first is not None)

    @property
    def unrecorded(self) -> Mapping[str, str]:
        """The flows that are read, by input, which have computed ticks again, where what had been
        read is gone: nobody can tell any more what that was.
        """
        return {
            name: self.landed[name].by_flow
            for name, one in self.gone.items()
            if self.landed[name].by_flow and one.files and self.reads[name].forgotten is None
        }

    @property
    def pipeline(self) -> Pipeline:
        return self.runner.pipeline(self.flow)

    @property
    def directory(self) -> DataPlace:
        return self.runner.directory(self.flow)

    @property
    def reads(self) -> Mapping[str, InputRead]:
        return self.runner.reads(self.flow)

    def says_gone(self, name: str) -> str:
        """The ticks that have lost rows of an input, in words."""
        return noticed(self.flow.ticks.calendar, {}, self.gone[name].changes).says_changed

    def gone_from(
        self,
        seen: Mapping[str, LandingView],
        before: Mapping[str, int],
        were: Mapping[str, LandingView] = MappingProxyType({}),
    ) -> Mapping[str, RemovedRows]:
        """What has gone from the landings of the inputs since they were read last.

        Args:
            seen: the landings as they are now.
            before: of Delta tables the versions before the rows were deleted, if they are by now.
            were: these tables as they were then, if they were looked at so.
        """
        from hydro_core.spark.inputs.removed_rows import gone_since

        reads, found = self.reads, {}
        for name, one in self.landed.items():
            if name in reads and name in seen:
                known = self._known(one, seen[name], before.get(name))
                of = [were[name].off] if name in were else []
                found[name] = gone_since(seen[name], reads[name], self.directory, known, *of)
        return found

    def theirs_of(self, gone: Mapping[str, RemovedRows]) -> Mapping[str, RemovedRows]:
        """What has gone from landings, as far as it can be theirs: where nobody has told whose rows
        it was, and the tables have none of theirs, it was somebody else's.
        """
        if any(self.tables.values()):
            return gone
        named, reads = named_rows(self.directory), self.reads
        return {
            name: one
            for name, one in gone.items()
            if reads[name].forgotten is not None or name in named or self.landed[name].is_own_delta
        }

    def _known(self, one: TheirLanding, seen: LandingView, before: int | None) -> HashedRows | None:
        """The landed rows of theirs, as they were before they went; None: nobody has told which."""
        from hydro_core.spark.inputs.snapshot import HashedRows

        if one.is_own_delta:
            version = seen.now.version or 0 if before is None else before
            try:
                return one.theirs.hashed(version, seen.until)
            except DataError:
                # Its history went before this was ended, and then the ledger has the landing.
                return None
        named = named_rows(self.directory).get(seen.source.file.name)
        if named is None or named.read_as != seen.source.read_as:
            return None
        hashes = np.array([*named.hashes.elements()], np.uint64)
        return HashedRows(np.zeros(len(hashes), np.int64), hashes)


def to_forget(runner: TickRunner, flow: FlowAsset, values: WhoseRows) -> ToForget:
    """What a flow has of the rows that have some values; nothing is changed.

    Raises:
        HydroError: a landing or a table cannot be read.
    """
    from hydro_core.spark.pipeline.forgetting import TheirRows, rows_before, rows_there
    from hydro_core.spark.pipeline.start_rework import first_again

    with faults_as_errors(f"the landings of `{flow.name}`", vanished=True):
        landed = _landed(runner, flow, values)
    begun, done = versions_begun(runner.directory(flow)), runner.next_tick(flow)
    found = ToForget(runner, flow, landed, TheirRows(), done, begun is not None)
    if not done:
        return found
    seen = look(runner, flow, to_tell=True).seen
    found = replace(found, gone=found.gone_from(seen, begun or {}))
    found = replace(found, keyed=_keyed(found))
    if not found.is_by_key:
        first = _first(found, seen)
        return replace(found, first=None if first is None else first_again(found.pipeline, first))
    pipeline, keyed = found.pipeline, found.keyed
    tables, replaced = rows_there(pipeline, keyed), rows_before(pipeline, keyed)
    found = replace(found, tables=tables, replaced=replaced)
    return replace(found, gone=found.theirs_of(found.gone))


def _landed(runner: TickRunner, flow: FlowAsset, values: WhoseRows) -> Mapping[str, TheirLanding]:
    from hydro_core.spark.inputs.removed_rows import RowsOfValue

    sources = runner.landings(flow).sources
    found = {}
    for name, (column, value) in values.items():
        source, where = sources[name], flow.inputs[name]
        theirs = RowsOfValue(source, column, value)
        scan = source.scan() if source.is_there else None
        files = {} if scan is None else theirs.files(scan)
        here = not isinstance(source.file.place, RemotePath)
        is_delta = here and scan is not None and scan.fileset.version is not None
        by_flow = where.flow if isinstance(where, FlowOutput) else ""
        found[name] = TheirLanding(theirs, files, is_delta, by_flow)
    return found


def _keyed(found: ToForget) -> TheirRows:
    """The rows in the tables, by the key that tells whose they are, or what forbids that."""
    from hydro_core.spark.pipeline.forgetting import TheirRows, by_key

    landed, gone, reads = found.landed, found.gone, found.reads
    values = {one.theirs.value for one in landed.values()}
    if len(values) > 1:
        return TheirRows(obstacles=("the inputs have different values",))
    restated = [
        one.by_flow
        for n, one in landed.items()
        if one.by_flow
        and n in gone
        and (gone[n].files or (reads[n].is_forgotten_anew and not gone[n].is_nothing))
    ]
    if restated:
        return TheirRows(obstacles=tuple(f"`{name}` has restated its outputs" for name in restated))
    keys = {name: (one.theirs.column,) for name, one in landed.items()}
    return by_key(found.pipeline, keys, values.pop())


def _first(found: ToForget, seen: Mapping[str, LandingView]) -> int | None:
    """The first committed tick that has read one of the rows."""
    firsts = [one.first for one in found.gone.values() if one.first is not None]
    for name, one in found.landed.items():
        if one.rows and one.is_delta and name in seen and seen[name].until:
            firsts += one.theirs.read_by(seen[name])
    return min(firsts, default=None)


def versions_begun(directory: DataPlace) -> Mapping[str, int] | None:
    """The versions of the landings before a deletion that has not ended, by input; None: there is
    none.
    """
    known: Mapping[str, int] | None = _read(directory / _BEGUN)
    return known


def note_begun(directory: DataPlace, versions: Mapping[str, int]) -> None:
    """Notes that a deletion has begun."""
    write_whole(directory / _BEGUN, json.dumps(versions))


def named_rows(directory: DataPlace) -> Mapping[str, NamedRows]:
    """The rows that were named since the last deletion has ended, by input."""
    found = _read(directory / _NAMED) or {}
    return {name: NamedRows(one["read_as"], Counter(one["rows"])) for name, one in found.items()}


def note_named(directory: DataPlace, named: Mapping[str, NamedRows]) -> None:
    """Notes rows of files, beside those that were named before."""
    found = dict(named_rows(directory))
    for name, one in named.items():
        known = found.get(name)
        is_as_known = known is not None and known.read_as == one.read_as
        before = known.hashes if known is not None and is_as_known else Counter[int]()
        # Who is named again has the same rows.
        found[name] = NamedRows(one.read_as, before | one.hashes)
    kept = {n: {"read_as": o.read_as, "rows": [*o.hashes.elements()]} for n, o in found.items()}
    write_whole(directory / _NAMED, json.dumps(kept))


def note_ended(directory: DataPlace) -> None:
    """Nothing is noted any more: the deletion has ended."""
    for name in (_NAMED, _BEGUN):
        (directory / name).unlink(missing_ok=True)


def _read(place: DataPlace) -> Any:
    try:
        return json.loads(place.read_text("utf-8"))
    except FileNotFoundError:
        return None
