"""Begins what computes a past again: a correction, a deployment, a rollback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hydro_core.plan.planner import Bootstrap, WantedTables
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.rework import (
    STAGING,
    KeptReads,
    RecomputedTicks,
    StagedPast,
    kept_since,
)
from hydro_core.spark.pipeline.tables import Tables
from hydro_core.spark.store.as_it_was import Base, base_before, begin, left_by, undone_from
from hydro_core.spark.store.ledger.commit import Commit
from hydro_core.spark.store.ledger.ledger import state_error
from hydro_core.storage.places import empty
from hydro_core.storage.remote import DataPlace


def correction(pipeline: Pipeline, first: int, kept: KeptReads | None = None) -> StagedPast:
    """The ticks of a pipeline from `first` on, to be computed again.

    Where the past before that tick is not to be had any more, an earlier tick is the first.

    Args:
        pipeline: the one that serves.
        first: the first tick to compute again.
        kept: what is read as it had been; None: the ticks read what is landed now.

    Raises:
        DataError: the tick is not committed, or another writer is at work (code `state`).
    """
    with _locked(pipeline, "a correction"):
        now = _committed(pipeline, first)
        base = base_before(pipeline.store, pipeline.ledger, first)
        staging = _begun(pipeline, base)
        first = base.tick + 1
        past = RecomputedTicks(first, now.last, first, kept)
        return StagedPast(pipeline, pipeline, staging, past, tuple(pipeline.store.tables))


def first_again(pipeline: Pipeline, first: int) -> int:
    """The tick with which a correction from a committed tick on begins; nothing is changed."""
    pipeline.store.check(pipeline.ledger.refresh())
    return base_before(pipeline.store, pipeline.ledger, first).tick + 1


def deployment(
    serving: Pipeline,
    target: Pipeline,
    made_by: Bootstrap,
    wanted: WantedTables,
    since: Mapping[str, int] | None = None,
) -> StagedPast:
    """The tables that another program wants, to be made from the past.

    Its other tables are those that serve, as they stand, or empty where there are none.

    Args:
        serving: the pipeline of the program that serves.
        target: that of the other program, in the same directory.
        made_by: what makes the tables, run from tick 0 on.
        wanted: which tables are taken over.
        since: the outputs among them that keep their rows of the ticks before one, with that tick.

    Raises:
        DataError: nothing is committed, or another writer is at work (code `state`).
    """
    with _locked(serving, "a deployment"):
        now = _committed(serving, 0)
        return staging_for(serving, target, (made_by, wanted, since or {}), now, _emptied(serving))


def staging_for(
    serving: Pipeline,
    target: Pipeline,
    work: tuple[Bootstrap, WantedTables, Mapping[str, int]],
    now: Commit,
    directory: DataPlace,
) -> StagedPast:
    """The tables that another program wants, to be made in a directory, as of a commit.

    `work` has what `deployment` takes: what makes the tables, which they are, and since when
    outputs are others.
    """
    made_by, wanted, since = work
    slots = {slot: target.state_tables[slot] for slot in wanted.slots}
    outputs = {name: target.output_tables[name] for name in wanted.outputs}
    own = Tables.of(made_by.plan)
    named = Tables({**own.state, **slots}, {**own.outputs, **outputs})
    staging = Pipeline(directory, made_by.plan, serving.settings, serving.spark, tables=named)
    taken = tuple(spec.name for spec in (*slots.values(), *outputs.values()))
    changed = {name: since.get(name, 0) for name in outputs}
    # A new state is of no tick that anybody has seen.
    kept = kept_since(serving.ledger, target.plan.graph.sources)
    past = RecomputedTicks(0, now.last, min(changed.values(), default=now.last + 1), kept)
    return StagedPast(serving, target, staging, past, taken, since=changed)


def rollback(serving: Pipeline, target: Pipeline) -> StagedPast:
    """The tables of an earlier program as it left them, and the ticks since then by that program.

    Where ticks were read anew since, they are computed again, too: what they have read by now is
    not in the tables that the program left.

    Raises:
        DataError: its tables are not there any more, or another writer is at work (code `state`).
    """
    with _locked(serving, "a rollback"):
        now = _committed(serving, 0)
        commits = serving.ledger.commits()
        base, left = left_by(target.store, target.fingerprint, commits, now)
        staging = _begun(target, base)
        first = base.tick + 1
        kept = kept_since(serving.ledger, target.plan.graph.sources, (left, base.tick))
        past = RecomputedTicks(
            first, now.last, min(first, undone_from(commits, left)), kept, back=True
        )
        return StagedPast(serving, target, staging, past, tuple(target.store.tables))


def first_undone(serving: Pipeline, target: Pipeline) -> int:
    """The first tick that a rollback computes again; nothing is changed.

    Raises:
        DataError: the tables of the earlier program are not there any more (code `state`).
    """
    now = serving.ledger.refresh()
    if now is None:
        raise AssertionError("what nobody has committed has nothing before it")
    base, _ = left_by(target.store, target.fingerprint, serving.ledger.commits(), now)
    return base.tick + 1


@contextmanager
def _locked(pipeline: Pipeline, work: str) -> Iterator[None]:
    """The pipeline's lock, which a rework that comes of it keeps; `work` says what that is."""
    pipeline.lock.acquire(work)
    try:
        yield
    except BaseException:
        pipeline.lock.release()
        raise


def _emptied(pipeline: Pipeline) -> DataPlace:
    directory = pipeline.directory / STAGING
    empty(directory)
    return directory


def _begun(target: Pipeline, base: Base) -> Pipeline:
    """A pipeline of the target's program beside it, as its tables were after the base's tick."""
    tables = Tables(target.state_tables, target.output_tables)
    staging = Pipeline(_emptied(target), target.plan, target.settings, target.spark, tables=tables)
    begin(staging.store, staging.ledger, base, staging.fingerprint)
    return staging


def _committed(pipeline: Pipeline, first: int) -> Commit:
    now = pipeline.ledger.refresh()
    if now is None or not 0 <= first <= now.last:
        there = "no tick is" if now is None or now.last < 0 else f"ticks 0 to {now.last} are"
        raise state_error(
            f"tick {first} cannot be computed again: {there} committed",
            "name a committed tick; `hydrotick status` tells which there are",
        )
    pipeline.refuse_another_program(now)
    pipeline.store.recover(now)
    return now
