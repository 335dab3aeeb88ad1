"""What a flow has of the rows that have a value: landed, in tables, gone since they were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from hydro_core.errors import DataError
from hydro_core.machine.faults import faults_as_errors
from hydro_core.project.flow_asset import FlowAsset, FlowOutput
from hydro_core.storage.remote import DataPlace, Remote

from ..flows.late_arrivals import noticed
from ..flows.looking import look
from .forget_notes import named_rows, versions_begun
from .without_rows import reads_of

if TYPE_CHECKING:
    from hydro_core.spark.inputs.arrivals.landings import LandingView
    from hydro_core.spark.inputs.arrivals.listing import Hashed
    from hydro_core.spark.inputs.arrivals.removed_rows import RemovedRows
    from hydro_core.spark.inputs.rows_of_value import RowsOfValue
    from hydro_core.spark.pipeline.forgetting import TheirRows

    from .runner import TickRunner

WhoseRows = Mapping[str, tuple[str, Any]]
"""Of inputs the column that tells whose a row is, and the value there."""


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


@dataclass(frozen=True, slots=True)
class ToForget:
    """What there is of the rows, and which way it goes."""

    flow: FlowAsset
    landed: Mapping[str, TheirLanding]
    keyed: TheirRows
    tables: Mapping[str, int] = field(default_factory=dict)
    """How many rows each table has of it, where that can be told."""
    replaced: int = 0
    """How many are in files that the tables held before, where that can be told."""
    gone: Mapping[str, RemovedRows] = field(default_factory=dict)
    """What has gone from landings since they were read last."""
    first: int | None = None
    """The first tick to be computed again; None: none is."""
    done: int = 0
    """So many ticks are committed."""
    untold: Mapping[str, str] = field(default_factory=dict)
    """The flows that are read, by input, of which nobody can tell any more what had been read."""
    begun: bool = False
    """Whether it was begun before, and has not ended."""

    @property
    def is_by_key(self) -> bool:
        """Whether the rows are taken out of the tables as they are."""
        return not self.keyed.obstacles

    @property
    def is_nothing(self) -> bool:
        there = (*self.tables.values(), *(one.rows for one in self.landed.values()), self.replaced)
        return not (any(there) or self.begun or self.first is not None)

    def says_gone(self, name: str) -> str:
        """The ticks that have lost rows of an input, in words."""
        return noticed(self.flow.ticks.calendar, {}, self.gone[name].changes).says_changed


def to_forget(runner: TickRunner, flow: FlowAsset, values: WhoseRows) -> ToForget:
    """What a flow has of the rows that have some values; nothing is changed.

    Raises:
        HydroError: a landing or a table cannot be read.
    """
    from hydro_core.spark.pipeline.forgetting import TheirRows, rows_before, rows_there
    from hydro_core.spark.pipeline.start_rework import first_again

    with faults_as_errors(f"the landings of `{flow.name}`", vanished=True):
        landed = _landed(runner, flow, values)
    begun = versions_begun(runner.directory(flow))
    if not runner.next_tick(flow):
        return ToForget(flow, landed, TheirRows(), begun=begun is not None)
    reading = look(runner, flow, to_tell=True)
    gone = gone_of(runner, flow, landed, reading.seen, begun or {})
    keyed = _keyed(runner, flow, landed, gone)
    pipeline = runner.pipeline(flow)
    found = ToForget(
        flow,
        landed,
        keyed,
        gone=gone,
        done=runner.next_tick(flow),
        begun=begun is not None,
        untold=_untold(runner, flow, landed, gone),
    )
    if keyed.obstacles:
        first = _first(landed, reading.seen, gone)
        return replace(found, first=None if first is None else first_again(pipeline, first))
    tables, replaced = rows_there(pipeline, keyed), rows_before(pipeline, keyed)
    found = replace(found, tables=tables, replaced=replaced)
    return replace(found, gone=taken_for_theirs(runner, found, gone))


def _landed(runner: TickRunner, flow: FlowAsset, values: WhoseRows) -> Mapping[str, TheirLanding]:
    from hydro_core.spark.inputs.rows_of_value import RowsOfValue

    sources = runner.landings(flow).sources
    found = {}
    for name, (column, value) in values.items():
        source, where = sources[name], flow.inputs[name]
        theirs = RowsOfValue(source, column, value)
        scan = source.scan() if source.is_there else None
        files = {} if scan is None else theirs.files(scan)
        here = not isinstance(source.file.place, Remote)
        is_delta = here and scan is not None and scan.fileset.version is not None
        by_flow = where.flow if isinstance(where, FlowOutput) else ""
        found[name] = TheirLanding(theirs, files, is_delta, by_flow)
    return found


def _keyed(
    runner: TickRunner,
    flow: FlowAsset,
    landed: Mapping[str, TheirLanding],
    gone: Mapping[str, RemovedRows],
) -> TheirRows:
    from hydro_core.spark.pipeline.forgetting import TheirRows, by_key

    values = {one.theirs.value for one in landed.values()}
    if len(values) > 1:
        return TheirRows(obstacles=("the inputs have different values",))
    reads = reads_of(runner, flow)
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
    return by_key(runner.pipeline(flow), keys, values.pop())


def gone_of(
    runner: TickRunner,
    flow: FlowAsset,
    landed: Mapping[str, TheirLanding],
    seen: Mapping[str, LandingView],
    before: Mapping[str, int],
    were: Mapping[str, LandingView] = MappingProxyType({}),
) -> Mapping[str, RemovedRows]:
    """What has gone from the landings of the inputs since they were read last.

    Args:
        runner: whose pipeline.
        flow: the flow.
        landed: what landings have of theirs.
        seen: the landings as they are now.
        before: of Delta tables the versions before theirs were deleted, if they are by now.
        were: these tables as they were then, if they were looked at so.
    """
    from hydro_core.spark.inputs.arrivals.removed_rows import gone_since

    reads, found = reads_of(runner, flow), {}
    for name, one in landed.items():
        if name in reads and name in seen:
            known = known_rows(runner, flow, one, seen[name], before.get(name))
            of = [one.off for n, one in were.items() if n == name]
            found[name] = gone_since(seen[name], reads[name], runner.directory(flow), known, *of)
    return found


def known_rows(
    runner: TickRunner,
    flow: FlowAsset,
    one: TheirLanding,
    seen: LandingView,
    before: int | None,
) -> Hashed | None:
    """The landed rows of theirs, as they were before they went; None: nobody has told which.

    Args:
        one: an input, of what it is known whether its rows are theirs.
        seen: what lies there now.
        before: the version of the Delta table before they were deleted; None: they are not yet.
    """
    from hydro_core.spark.inputs.arrivals.listing import Hashed

    if one.is_delta and not one.by_flow:
        version = seen.now.version or 0 if before is None else before
        try:
            return one.theirs.hashed(version, seen.until)
        except DataError:
            # Its history went before this was ended, and then the ledger has the landing.
            return None
    named = named_rows(runner.directory(flow)).get(seen.source.file.name)
    if named is None or named.read_as != seen.source.read_as:
        return None
    hashes = np.array([*named.hashes.elements()], np.uint64)
    return Hashed(np.zeros(len(hashes), np.int64), hashes)


def _untold(
    runner: TickRunner,
    flow: FlowAsset,
    landed: Mapping[str, TheirLanding],
    gone: Mapping[str, RemovedRows],
) -> Mapping[str, str]:
    """The flows that are read which have computed ticks again, where what had been read is gone."""
    reads = reads_of(runner, flow)
    return {
        name: landed[name].by_flow
        for name, one in gone.items()
        if landed[name].by_flow and one.files and reads[name].forgotten is None
    }


def taken_for_theirs(
    runner: TickRunner, found: ToForget, gone: Mapping[str, RemovedRows]
) -> Mapping[str, RemovedRows]:
    """What has gone from landings, as far as it can be theirs: where nobody has told whose rows it
    was, and the tables have none of theirs, it was somebody else's.
    """
    if any(found.tables.values()):
        return gone
    named, reads = named_rows(runner.directory(found.flow)), reads_of(runner, found.flow)
    return {
        name: one
        for name, one in gone.items()
        if reads[name].forgotten is not None
        or name in named
        or (found.landed[name].is_delta and not found.landed[name].by_flow)
    }


def _first(
    landed: Mapping[str, TheirLanding],
    seen: Mapping[str, LandingView],
    gone: Mapping[str, RemovedRows],
) -> int | None:
    """The first committed tick that has read one of the rows."""
    firsts = [one.first for one in gone.values() if one.first is not None]
    for name, one in landed.items():
        if one.rows and one.is_delta and name in seen and seen[name].until:
            firsts += one.theirs.read_by(seen[name])
    return min(firsts, default=None)
