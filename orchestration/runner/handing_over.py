"""Before the history of tables goes, all flows of the project that read them are told.

Their ledgers say then what they have read of the tables as these are from now on, so that nothing
that is late by then, or has gone, is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from hydro_core.project.flow_asset import FlowAsset

from .without_rows import reads_of

if TYPE_CHECKING:
    from hydro_core.spark.inputs.arrivals.handed_over import Deletion
    from hydro_core.spark.inputs.arrivals.source import LandingSource

    from .runner import TickRunner

Deletions = Mapping[str, "list[Deletion]"]
"""Of tables, by where they are, when somebody was taken out of them."""


def deletions_of(runner: TickRunner, flow: FlowAsset, *, is_by_key: bool) -> Deletions:
    """When somebody was taken out of the tables of a flow, by its ledger; of all of them."""
    from hydro_core.spark.inputs.arrivals.handed_over import Deletion
    from hydro_core.spark.store.ledger.standing import FORGOTTEN

    directory, commits = runner.directory(flow), runner.deployments.ledger(flow).commits(since=-1)
    names = commits[-1].versions if commits else ()
    found: dict[str, list[Deletion]] = {str(directory / name): [] for name in names}
    for before, after in pairwise(commits):
        for name in after.versions if FORGOTTEN in after.checks and after.ticks else ():
            if name in before.versions:
                versions = before.versions[name], after.versions[name]
                found.setdefault(str(directory / name), []).append(
                    Deletion(*versions, is_anew=not is_by_key)
                )
    return found


def hand_over(
    runner: TickRunner, tables: Deletions, flow: FlowAsset, others: Sequence[FlowAsset]
) -> None:
    """Tells the other flows that read tables of a flow, or its landings.

    Raises:
        HydroError: another writer is at work on one of them (code `state`), or it cannot be read.
    """
    for other in others:
        if other.name != flow.name and runner.next_tick(other):
            sources = dict(_reads(runner, other, tables))
            if sources:
                _tell(runner, other, sources, tables)


def _reads(
    runner: TickRunner, other: FlowAsset, tables: Deletions
) -> Iterator[tuple[str, LandingSource]]:
    for name, source in runner.landings(other).sources.items():
        if str(source.file.place) in tables:
            yield name, source


def _tell(
    runner: TickRunner, other: FlowAsset, sources: Mapping[str, LandingSource], tables: Deletions
) -> None:
    from hydro_core.spark.inputs.arrivals.handed_over import handed_over

    pipeline, directory = runner.pipeline(other), runner.directory(other)
    with pipeline.lock:
        until, reads = runner.next_tick(other), reads_of(runner, other)
        found = {
            name: told
            for name, source in sources.items()
            if name in reads
            and (
                told := handed_over(
                    source, reads[name], until, directory, tables[str(source.file.place)]
                )
            )
        }
        if found:
            kept = {name: replace(one, counts=None) for name, one in reads.items()}
            pipeline.decide(list({**kept, **found}.values()))
