"""A person is forgotten: all that a pipeline has of the rows that have a value, and its history.

Where the plan keeps the rows of different values apart, they are taken out of the tables as they
are; else the ticks from the first that has read one of them are computed again, as a correction
does it. Either way one row of the ledger makes it count, and what the tables held before goes
after it. The landed rows go first: whatever ends the process in between, running it again ends it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hydro_core.errors import DataError
from hydro_core.machine.faults import faults_as_errors
from hydro_core.project.flow_asset import FlowAsset, FlowOutput
from hydro_core.storage.places import write_whole
from hydro_core.storage.remote import DataPlace, Remote

from ..flows.late_arrivals import noticed
from ..flows.looking import LandingReads, look
from .handing_over import deletions_of, hand_over
from .ranges import Log
from .without_rows import reads_of, refuse_others_gone, unread_by, without_rows

if TYPE_CHECKING:
    from hydro_core.spark.inputs.arrivals.landing_view import LandingView
    from hydro_core.spark.inputs.arrivals.removed_rows import RemovedRows
    from hydro_core.spark.inputs.rows_of_value import RowsOfValue
    from hydro_core.spark.pipeline.forgetting import TheirRows

    from .runner import TickRunner

_BEGUN = "_forget.json"
"""The file, in a pipeline's directory, that says that a deletion has begun, and has not ended."""

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
        """Whether nothing is known to be there."""
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
    begun = _begun(runner, flow)
    if not runner.next_tick(flow):
        return ToForget(flow, landed, TheirRows(), begun=begun is not None)
    reading = look(runner, flow, to_tell=True)
    gone = _gone(runner, flow, landed, reading.seen, begun or {})
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
    gone = _taken_for_theirs(landed, tables, gone)
    return replace(found, tables=tables, replaced=replaced, gone=gone)


def refuse_files(found: ToForget) -> None:
    """Refuses while landed files have the rows, or outputs of other flows; and where rows would be
    taken for read that nobody has read.

    Raises:
        DataError: which files they are, or which flow is first (code `input`).
    """
    if found.untold:
        raise _cannot_be_told(found)
    lines, cures = [], []
    for name, one in found.landed.items():
        if one.by_flow and one.rows:
            lines.append(f"  {name}: {one.rows:,} row(s) of the output of `{one.by_flow}`")
            cures.append(f"forget them in `{one.by_flow}` first")
        elif one.rows and not one.is_delta:
            lines += [f"  {name}: {rows:,} row(s) in {file}" for file, rows in one.files.items()]
            cures.append("take the rows out of the files")
    if lines:
        message = "what has landed has the rows, and would bring them back:\n" + "\n".join(lines)
        cure = "; ".join(dict.fromkeys(cures)) + "; then run this again. Nothing was changed"
        raise DataError.of("input", message, help=cure)


def forget(
    runner: TickRunner, found: ToForget, log: Log, others: Sequence[FlowAsset] = ()
) -> int | None:
    """Forgets the rows, and gives the number of the commit that did; None: no tick is committed.

    Args:
        runner: whose pipelines.
        found: what there is of the rows.
        log: told of what is computed.
        others: the flows of the project: those of them that read the outputs or the landings of
            this one, whose history goes, are told what they have read.

    Raises:
        HydroError: a check fails on what is computed again, or another writer is at work; then the
            tables are as they were.
    """
    flow = found.flow
    refuse_files(found)
    pipeline = runner.pipeline(flow)
    if not runner.next_tick(flow):
        for one in found.landed.values():
            if one.rows and one.is_delta:
                one.theirs.erase_history(one.theirs.delete())
        if runner.directory(flow).exists():
            with pipeline.lock.at_work("a deletion of rows"):
                # A tick that was killed may have left rows in tables that no commit names.
                pipeline.store.recover(None)
        return None
    directory = runner.directory(flow)
    with (
        faults_as_errors(f"the pipeline in {directory}"),
        pipeline.lock.at_work("a deletion of rows"),
    ):
        if found.first is not None:
            refuse_others_gone(runner, flow, found.first, found.gone)
        before, after = _begin(runner, found), {}
        for name, one in found.landed.items():
            if one.rows and name in before:
                after[name] = one.theirs.delete()
        pipeline.step("landings")
        reading = look(runner, flow)
        gone = _gone(runner, flow, found.landed, reading.seen, before)
        if found.is_by_key:
            gone = _taken_for_theirs(found.landed, found.tables, gone)
            _take_out(runner, found, reading.seen, gone)
        else:
            _compute_again(runner, found, reading, gone, log)
        _hand_over(runner, found, {name: (at, after.get(name)) for name, at in before.items()}, others)
        pipeline.step("handed over")
        _erase(runner, found, before)
        (directory / _BEGUN).unlink(missing_ok=True)
    last = runner.deployments.ledger(flow).last
    return None if last is None else last.sequence


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


def _gone(
    runner: TickRunner,
    flow: FlowAsset,
    landed: Mapping[str, TheirLanding],
    seen: Mapping[str, LandingView],
    before: Mapping[str, int],
) -> Mapping[str, RemovedRows]:
    """What has gone from the landings of the inputs since they were read last."""
    from hydro_core.spark.inputs.arrivals.removed_rows import gone_since

    reads, found = reads_of(runner, flow), {}
    for name, one in landed.items():
        if name not in reads or name not in seen:
            continue
        known = None
        if one.is_delta and not one.by_flow:
            version = before.get(name, seen[name].now.version or 0)
            try:
                known = one.theirs.hashed(version, seen[name].until)
            except DataError:
                # Its history went before this was ended, and then the ledger has the landing.
                known = None
        found[name] = gone_since(seen[name], reads[name], runner.directory(flow), known)
    return found


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


def _taken_for_theirs(
    landed: Mapping[str, TheirLanding], tables: Mapping[str, int], gone: Mapping[str, RemovedRows]
) -> Mapping[str, RemovedRows]:
    """What has gone from landings, as far as it can be theirs: of files it is not known whose rows
    went, and where the tables have none of theirs it was somebody else's.
    """
    if any(tables.values()):
        return gone
    return {n: one for n, one in gone.items() if landed[n].is_delta and not landed[n].by_flow}


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


def _begun(runner: TickRunner, flow: FlowAsset) -> Mapping[str, int] | None:
    """The versions of the landings before a deletion that has not ended; None: there is none."""
    try:
        known: Mapping[str, int] = json.loads((runner.directory(flow) / _BEGUN).read_text("utf-8"))
    except FileNotFoundError:
        return None
    return known


def _begin(runner: TickRunner, found: ToForget) -> Mapping[str, int]:
    """Notes that it has begun; gives the versions of the Delta tables that land, before it."""
    deltas = {n: one for n, one in found.landed.items() if one.is_delta and not one.by_flow}
    before = {name: one.theirs.source.scan().fileset.version or 0 for name, one in deltas.items()}
    begun = _begun(runner, found.flow) or {}
    before |= {name: version for name, version in begun.items() if name in deltas}
    place = runner.directory(found.flow) / _BEGUN
    write_whole(place, json.dumps(before))
    return before


def _take_out(
    runner: TickRunner,
    found: ToForget,
    seen: Mapping[str, LandingView],
    gone: Mapping[str, RemovedRows],
) -> None:
    from hydro_core.spark.pipeline.forgetting import rows_there, take_out
    from hydro_core.spark.store.ledger.standing import standing_counts

    pipeline = runner.pipeline(found.flow)
    there = any(rows_there(pipeline, found.keyed).values())
    if there or found.begun or _changes_landings(found, gone):
        counts = standing_counts(pipeline.ledger.commits())
        reads = list(unread_by(runner, found.flow, seen, gone, counts))
        take_out(pipeline, found.keyed, reads, {name: one.late for name, one in gone.items()})


def _compute_again(
    runner: TickRunner,
    found: ToForget,
    reading: LandingReads,
    gone: Mapping[str, RemovedRows],
    log: Log,
) -> None:
    flow = found.flow
    firsts = [one.first for one in gone.values() if one.first is not None]
    if not firsts:
        if found.begun or _changes_landings(found, gone):
            reads = list(unread_by(runner, flow, reading.seen, gone, {}))
            runner.pipeline(flow).decide([replace(read, rows=None, counts=None) for read in reads])
        return
    report = without_rows(runner, flow, min(firsts), reading, gone, log)
    if not report.committed:
        raise DataError.of(
            "runtime",
            f"tick {report.window.key} of `{flow.name}` failed when it was computed again "
            f"without the rows: {report.problem}",
            help=f"{report.cure}. What has landed is without the rows; run this again then",
        )


def _changes_landings(found: ToForget, gone: Mapping[str, RemovedRows]) -> bool:
    """Whether what has landed is not what was read."""
    deleted = any(one.rows for one in found.landed.values())
    return deleted or not all(one.is_nothing for one in gone.values())


def _hand_over(
    runner: TickRunner,
    found: ToForget,
    landings: Mapping[str, tuple[int, int | None]],
    others: Sequence[FlowAsset],
) -> None:
    """Tells who reads the same of tables whose history goes, by their versions before and after."""
    from hydro_core.spark.inputs.arrivals.handed_over import Deletion

    tables = dict(deletions_of(runner, found.flow, is_by_key=found.is_by_key))
    for name, (before, after) in landings.items():
        source = found.landed[name].theirs.source
        now = source.scan().fileset.version or 0 if after is None else after
        tables.setdefault(str(source.file.place), []).append(Deletion(before, now))
    hand_over(runner, tables, found.flow, others)


def _cannot_be_told(found: ToForget) -> DataError:
    """Of a flow that is read only what it gives now is known."""
    flow, gone = found.flow, [found.gone[name] for name in found.untold]
    first = flow.ticks.calendar.window(min(one.first or 0 for one in gone)).key
    listed = ", ".join(f"`{name}`, which `{of}` gives" for name, of in found.untold.items())
    return DataError.of(
        "input",
        f"what committed ticks have read of {listed}, is not there any more, and what came since "
        "cannot be told from it",
        help=f"`hydrotick correct {flow.name} --from {first}` computes these ticks again from what "
        "is there now; then run this again. Nothing was changed",
    )


def _erase(runner: TickRunner, found: ToForget, before: Mapping[str, int]) -> None:
    from hydro_core.spark.pipeline.forgetting import erase

    flow = found.flow
    erase(runner.pipeline(flow))
    runner.deployments.forget(flow, timedelta(0), runner.now())
    reads = reads_of(runner, flow)
    for name in before:
        # What came to the table since it was read is for the next look at it.
        version = reads[name].version if name in reads else None
        if version is not None and version > before[name]:
            found.landed[name].theirs.erase_history(version)
        runner.pipeline(flow).step(f"erased the landing of {name}")
