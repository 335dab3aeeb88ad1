"""A person is forgotten: all that a pipeline has of the rows that have a value, and its history.

Where the plan keeps the rows of different values apart, they are taken out of the tables as they
are; else the ticks from the first that has read one of them are computed again, as a correction
does it, each with the other rows that it had read. Either way one row of the ledger makes it count,
and what the tables held before goes after it. The landed rows go first: whatever ends the process
in between, running it again ends it.

Before the history of tables goes, all flows of the project that read them are told. Their ledgers
say then what they have read of the tables as these are from now on, so that nothing that is late by
then, or has gone, is passed over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from hydro_core.errors import DataError, HydroError, InfrastructureError
from hydro_core.machine.faults import faults_as_errors
from hydro_core.project.flow_asset import FlowAsset

from ..flows.landed_past import LandingReads, look, refuse_gone
from .ranges import Log, Ranges, is_of_the_tick, kept_for_checks, run_staged
from .report import TickReport, report_of_error
from .to_forget import (
    NamedRows,
    ToForget,
    note_begun,
    note_ended,
    note_named,
    versions_begun,
)

if TYPE_CHECKING:
    from hydro_core.spark.inputs.looks import LandingView
    from hydro_core.spark.inputs.removed_rows import Deletion, RemovedRows
    from hydro_core.spark.inputs.snapshot import LandingSource
    from hydro_core.spark.store.ledger.input_reads import Counts, InputRead

    from .runner import TickRunner

Deletions = Mapping[str, "list[Deletion]"]
"""Of tables, by where they are, when somebody was taken out of them."""

Gone = Mapping[str, "RemovedRows"]
"""By input the rows that are gone, without which ticks are as if they had never been."""


def refuse_files(found: ToForget) -> None:
    """Refuses while landed files have the rows, or outputs of other flows; and where rows would be
    taken for read that nobody has read.

    The rows of files that it names are known from then on, and so are those of them that go.

    Raises:
        DataError: which files they are, or which flow is first (code `input`).
    """
    if found.unrecorded:
        # Of a flow that is read only what it gives now is known.
        first = min(found.gone[name].first or 0 for name in found.unrecorded)
        key = found.flow.ticks.calendar.window(first).key
        untold = (f"`{name}`, which `{of}` gives" for name, of in found.unrecorded.items())
        listed = ", ".join(untold)
        raise DataError.of(
            "input",
            f"what committed ticks have read of {listed}, is not there any more, and what came "
            "since cannot be told from it",
            help=f"`hydrotick correct {found.flow.name} --from {key}` computes these ticks again "
            "from what is there now; then run this again. Nothing was changed",
        )
    lines, cures, named = [], [], {}
    for name, one in found.landed.items():
        if one.by_flow and one.rows:
            lines.append(f"  {name}: {one.rows:,} row(s) of the output of `{one.by_flow}`")
            cures.append(f"forget them in `{one.by_flow}` first")
        elif one.rows and not one.is_delta:
            lines += [f"  {name}: {rows:,} row(s) in {file}" for file, rows in one.files.items()]
            cures.append("take the rows out of the files")
            if found.done:
                hashes = one.theirs.hashed(None, found.done).hashes
                named[name] = NamedRows(one.theirs.source.read_as, Counter(hashes.tolist()))
    if named:
        note_named(found.directory, named)
    if lines:
        message = "what has landed has the rows, and would bring them back:\n" + "\n".join(lines)
        cure = "; ".join(dict.fromkeys(cures)) + "; then run this again. Nothing was changed"
        raise DataError.of("input", message, help=cure)


def forget(found: ToForget, log: Log, others: Sequence[FlowAsset] = ()) -> int | None:
    """Forgets the rows, and gives the number of the commit that did; None: no tick is committed.

    Args:
        found: what there is of the rows.
        log: told of what is computed.
        others: the flows of the project: those of them that read the outputs or the landings of
            this one, whose history goes, are told what they have read.

    Raises:
        HydroError: a check fails on what is computed again, or another writer is at work; then the
            tables are as they were.
    """
    refuse_files(found)
    runner, pipeline = found.runner, found.pipeline
    if not runner.next_tick(found.flow):
        for name, one in found.landed.items():
            if one.rows and one.is_delta:
                at = one.theirs.source.scan().fileset.version or 0
                version = one.theirs.delete()
                _hand_over(found, {name: (at, version)}, others)
                one.theirs.erase_history(version)
        if pipeline.ledger.exists:
            with pipeline.lock.at_work("a deletion of rows"):
                # A tick that was killed may have left rows in tables that no commit names.
                pipeline.store.recover(None)
        return None
    with (
        faults_as_errors(f"the pipeline in {found.directory}"),
        pipeline.lock.at_work("a deletion of rows"),
    ):
        if found.first is not None:
            _refuse_others_gone(found, found.first)
        before, deleted = _begin(found), dict[str, int]()
        for name, one in found.landed.items():
            if one.rows and name in before:
                deleted[name] = one.theirs.delete()
        pipeline.step("landings")
        reading, were = _seen(found, before, deleted)
        gone = found.gone_from(reading.seen, before, were)
        if found.is_by_key:
            _take_out(found, reading.seen, found.theirs_of(gone))
        else:
            _compute_again(found, reading, gone, log)
        _hand_over(found, {name: (at, deleted.get(name)) for name, at in before.items()}, others)
        pipeline.step("handed over")
        _erase(found, before)
        note_ended(found.directory)
    last = runner.deployments.ledger(found.flow).last
    return None if last is None else last.sequence


def _refuse_others_gone(found: ToForget, first: int) -> None:
    """Refuses to compute ticks again, where other rows are gone that they have read."""
    from hydro_core.spark.inputs.removed_rows import seen_without

    seen = dict(look(found.runner, found.flow, to_tell=True).seen)
    seen |= {name: seen_without(seen[name], one) for name, one in found.gone.items()}
    refuse_gone(found.flow, seen, found.reads, first)


def _begin(found: ToForget) -> Mapping[str, int]:
    """Notes that it has begun; gives the versions of the Delta tables that land, before it."""
    deltas = {name: one for name, one in found.landed.items() if one.is_own_delta}
    before = {name: one.theirs.source.scan().fileset.version or 0 for name, one in deltas.items()}
    begun = versions_begun(found.directory) or {}
    before |= {name: version for name, version in begun.items() if name in deltas}
    note_begun(found.directory, before)
    return before


def _seen(
    found: ToForget, before: Mapping[str, int], after: Mapping[str, int]
) -> tuple[LandingReads, Mapping[str, LandingView]]:
    """The landings as they are now; and those of which rows were deleted as they were before."""
    from hydro_core.spark.inputs.removed_rows import DeletedRows, seen_by_way_of

    reading, reads, were = look(found.runner, found.flow), found.reads, {}
    seen = dict(reading.seen)
    for name, version in before.items():
        one = seen.get(name)
        if name in reads and one and (reads[name].version or 0) <= version < (one.now.version or 0):
            rows = found.landed[name].theirs.hashed(version, one.until)
            last = after.get(name)
            # Its two commits, and none of somebody else between them.
            at = DeletedRows(version, last if last == version + 2 else None, rows)
            were[name], seen[name] = seen_by_way_of(
                one.source, reads[name], one.until, found.directory, at
            )
    return replace(reading, seen=seen), were


def _take_out(found: ToForget, seen: Mapping[str, LandingView], gone: Gone) -> None:
    from hydro_core.spark.pipeline.forgetting import rows_there, take_out
    from hydro_core.spark.store.ledger.standing import standing_counts

    pipeline = found.pipeline
    there = any(rows_there(pipeline, found.keyed).values())
    if there or found.begun or _changes_landings(found, gone):
        counts = standing_counts(pipeline.ledger.commits())
        reads = list(_unread(found, seen, gone, counts))
        take_out(pipeline, found.keyed, reads, {name: one.late for name, one in gone.items()})


def _compute_again(found: ToForget, reading: LandingReads, gone: Gone, log: Log) -> None:
    """Computes the committed ticks that have read one of the rows again without them, in one
    commit; the others arrive as they had arrived.
    """
    firsts = [one.first for one in gone.values() if one.first is not None]
    if not firsts:
        if found.begun or _changes_landings(found, gone):
            reads = _unread(found, reading.seen, gone, {})
            found.pipeline.decide([replace(read, rows=None, counts=None) for read in reads])
        return
    try:
        report = _computed(found, min(firsts), reading, gone, log)
    except HydroError as error:
        window = found.flow.ticks.calendar.window(min(firsts))
        report = report_of_error(window, error, judged=is_of_the_tick(error))
    if not report.committed:
        failed = DataError.of(
            "runtime",
            f"tick {report.window.key} of `{found.flow.name}` failed when it was computed again "
            f"without the rows: {report.problem}",
            help=f"{report.cure}. What has landed is without the rows; run this again then",
        )
        raise failed if report.judged else InfrastructureError(*failed.diagnostics)


def _computed(
    found: ToForget, first: int, reading: LandingReads, gone: Gone, log: Log
) -> TickReport:
    """The report of the last tick, or of the one that failed; then all is as it was."""
    from hydro_core.spark.executor.shell import failures_as_errors
    from hydro_core.spark.pipeline.rework import KeptReads
    from hydro_core.spark.pipeline.start_rework import correction

    runner, flow, pipeline = found.runner, found.flow, found.pipeline
    reads = {read.name: read for read in _unread(found, reading.seen, gone, {})}
    fewer = {name: one.counts for name, one in gone.items()}
    # Of a file that is gone nobody knows how many rows went with it.
    unreported = {name for name, one in gone.items() if one.files}
    late = {name: one.late for name, one in gone.items()}
    kept = KeptReads(reads, {}, unreported=unreported, without=fewer, late_without=late)
    seen = runner.landings(flow).as_read(list(reads.values()), runner.next_tick(flow))
    with (
        failures_as_errors(directory=pipeline.directory),
        correction(pipeline, first, kept) as rework,
    ):
        ranges = Ranges(runner.asset(flow), rework.staging, LandingReads(runner, flow, seen), log)
        reports = run_staged(rework, ranges, runner.project.range_ticks, lambda _: None)
        if reports[-1].committed:
            commit = rework.replace(kept_for_checks(rework))
            log(f"commit {commit.sequence} computed {len(reports):,} tick(s) again")
        return reports[-1]


def _changes_landings(found: ToForget, gone: Gone) -> bool:
    """Whether what has landed is not what was read."""
    deleted = any(one.rows for one in found.landed.values())
    return deleted or not all(one.is_nothing for one in gone.values())


def _unread(
    found: ToForget,
    seen: Mapping[str, LandingView],
    gone: Gone,
    counts: Mapping[str, Counts],
) -> Iterator[InputRead]:
    """What is to stand in the ledger of the inputs, which are read without the rows."""
    from hydro_core.spark.inputs.removed_rows import unread

    for name, read in found.reads.items():
        if name in seen:
            of = gone.get(name), counts.get(name, {})
            yield unread(seen[name], read, found.directory, *of)


def _hand_over(
    found: ToForget,
    landings: Mapping[str, tuple[int, int | None]],
    others: Sequence[FlowAsset],
) -> None:
    """Tells who reads the same of tables whose history goes, by their versions before and after.

    Raises:
        HydroError: another writer is at work on one of them (code `state`), or it cannot be read.
    """
    from hydro_core.spark.inputs.removed_rows import Deletion

    runner, tables = found.runner, dict(_deletions(found))
    for name, (before, after) in landings.items():
        source = found.landed[name].theirs.source
        now = source.scan().fileset.version or 0 if after is None else after
        tables.setdefault(str(source.file.place), []).append(Deletion(before, now))
    for other in others:
        if other.name != found.flow.name and runner.next_tick(other):
            read = runner.landings(other).sources.items()
            sources = {name: one for name, one in read if str(one.file.place) in tables}
            if sources:
                _tell(runner, other, sources, tables)


def _deletions(found: ToForget) -> Deletions:
    """When somebody was taken out of the tables of a flow, by its ledger; of all of them."""
    from hydro_core.spark.inputs.removed_rows import Deletion
    from hydro_core.spark.store.ledger.standing import FORGOTTEN

    directory = found.directory
    commits = found.runner.deployments.ledger(found.flow).commits(since=-1)
    names = commits[-1].versions if commits else ()
    of: dict[str, list[Deletion]] = {str(directory / name): [] for name in names}
    for before, after in pairwise(commits):
        for name in after.versions if FORGOTTEN in after.checks and after.ticks else ():
            if name in before.versions:
                versions = before.versions[name], after.versions[name]
                one = Deletion(*versions, is_anew=not found.is_by_key)
                of.setdefault(str(directory / name), []).append(one)
    return of


def _tell(
    runner: TickRunner, other: FlowAsset, sources: Mapping[str, LandingSource], tables: Deletions
) -> None:
    from hydro_core.spark.inputs.removed_rows import handed_over

    pipeline, directory = runner.pipeline(other), runner.directory(other)
    with pipeline.lock:
        until, reads = runner.next_tick(other), runner.reads(other)
        found = {}
        for name, source in sources.items():
            at = tables[str(source.file.place)]
            if name in reads and (told := handed_over(source, reads[name], until, directory, at)):
                found[name] = told
        if found:
            kept = {name: replace(one, counts=None) for name, one in reads.items()}
            pipeline.decide(list({**kept, **found}.values()))


def _erase(found: ToForget, before: Mapping[str, int]) -> None:
    from hydro_core.spark.pipeline.forgetting import erase

    erase(found.pipeline)
    found.runner.deployments.forget(found.flow, timedelta(0), found.runner.now())
    reads = found.reads
    for name in before:
        # What came to the table since it was read is for the next look at it.
        version = reads[name].version if name in reads else None
        if version is not None and version > before[name]:
            found.landed[name].theirs.erase_history(version)
        found.pipeline.step(f"erased the landing of {name}")
