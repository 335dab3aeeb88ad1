"""A person is forgotten: all that a pipeline has of the rows that have a value, and its history.

Where the plan keeps the rows of different values apart, they are taken out of the tables as they
are; else the ticks from the first that has read one of them are computed again, as a correction
does it. Either way one row of the ledger makes it count, and what the tables held before goes
after it. The landed rows go first: whatever ends the process in between, running it again ends it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from hydro_core.errors import DataError
from hydro_core.machine.faults import faults_as_errors
from hydro_core.project.flow_asset import FlowAsset

from ..flows.looking import LandingReads, look
from .forget_notes import NamedRows, note_begun, note_ended, note_named, versions_begun
from .handing_over import deletions_of, hand_over
from .ranges import Log
from .to_forget import ToForget, gone_of, taken_for_theirs
from .without_rows import reads_of, refuse_others_gone, unread_by, without_rows

if TYPE_CHECKING:
    from hydro_core.spark.inputs.arrivals.landings import LandingView
    from hydro_core.spark.inputs.arrivals.removed_rows import RemovedRows

    from .runner import TickRunner


def refuse_files(runner: TickRunner, found: ToForget) -> None:
    """Refuses while landed files have the rows, or outputs of other flows; and where rows would be
    taken for read that nobody has read.

    The rows of files that it names are known from then on, and so are those of them that go.

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
        _note_files(runner, found)
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
    refuse_files(runner, found)
    pipeline = runner.pipeline(flow)
    if not runner.next_tick(flow):
        for name, one in found.landed.items():
            if one.rows and one.is_delta:
                at = one.theirs.source.scan().fileset.version or 0
                version = one.theirs.delete()
                _hand_over(runner, found, {name: (at, version)}, others)
                one.theirs.erase_history(version)
        if pipeline.ledger.exists:
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
        before, deleted = _begin(runner, found), dict[str, int]()
        for name, one in found.landed.items():
            if one.rows and name in before:
                deleted[name] = one.theirs.delete()
        pipeline.step("landings")
        reading, were = _seen(runner, found, before, deleted)
        gone = gone_of(runner, flow, found.landed, reading.seen, before, were)
        if found.is_by_key:
            gone = taken_for_theirs(runner, found, gone)
            _take_out(runner, found, reading.seen, gone)
        else:
            _compute_again(runner, found, reading, gone, log)
        versions = {name: (at, deleted.get(name)) for name, at in before.items()}
        _hand_over(runner, found, versions, others)
        pipeline.step("handed over")
        _erase(runner, found, before)
        note_ended(directory)
    last = runner.deployments.ledger(flow).last
    return None if last is None else last.sequence


def _seen(
    runner: TickRunner, found: ToForget, before: Mapping[str, int], after: Mapping[str, int]
) -> tuple[LandingReads, Mapping[str, LandingView]]:
    """The landings as they are now; and those of which rows were deleted as they were before."""
    from hydro_core.spark.inputs.arrivals.handed_over import Deleted, seen_by_way_of

    flow, directory = found.flow, runner.directory(found.flow)
    reading, reads, were = look(runner, flow), reads_of(runner, flow), {}
    seen = dict(reading.seen)
    for name, version in before.items():
        one = seen.get(name)
        if name in reads and one and (reads[name].version or 0) <= version < (one.now.version or 0):
            rows = found.landed[name].theirs.hashed(version, one.until)
            last = after.get(name)
            # Its two commits, and none of somebody else between them.
            at = Deleted(version, last if last == version + 2 else None, rows)
            were[name], seen[name] = seen_by_way_of(
                one.source, reads[name], one.until, directory, at
            )
    return replace(reading, seen=seen), were


def _note_files(runner: TickRunner, found: ToForget) -> None:
    directory = runner.directory(found.flow)
    named = {}
    for name, one in found.landed.items():
        if found.done and one.rows and not (one.is_delta or one.by_flow):
            rows = one.theirs.hashed(None, found.done)
            named[name] = NamedRows(one.theirs.source.read_as, Counter(rows.hashes.tolist()))
    if named:
        note_named(directory, named)


def _begin(runner: TickRunner, found: ToForget) -> Mapping[str, int]:
    """Notes that it has begun; gives the versions of the Delta tables that land, before it."""
    deltas = {n: one for n, one in found.landed.items() if one.is_delta and not one.by_flow}
    before = {name: one.theirs.source.scan().fileset.version or 0 for name, one in deltas.items()}
    begun = versions_begun(runner.directory(found.flow)) or {}
    before |= {name: version for name, version in begun.items() if name in deltas}
    note_begun(runner.directory(found.flow), before)
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
