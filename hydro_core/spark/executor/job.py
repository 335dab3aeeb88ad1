"""A job: from what is stored and the batches of the next ticks to outputs and what is stored.

A tick, a range, a backfill and what is computed again are jobs alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from pyspark.sql import DataFrame, SparkSession

from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import Settings
from hydro_core.spark.executor.past import NoPast, Past
from hydro_core.spark.executor.planned_rounds import InRounds
from hydro_core.spark.frames.materialize import Materialize, checkpointed
from hydro_core.spark.frames.relation import Relation
from hydro_core.spark.functions.guards import FailedGuards
from hydro_core.spark.lower.registry import Times
from hydro_core.storage.remote import DataPlace

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Job:
    """The ticks first … last of a plan, and what they are computed from."""

    plan: TickPlan
    first: int
    last: int
    spark: SparkSession
    """All DataFrames of the job belong to this session."""
    sources: Mapping[str, DataFrame]
    """The batches `item, t` of the range by the inputs' names; one that is missing is empty."""
    past: Past = field(default_factory=NoPast)
    settings: Settings = field(default_factory=Settings)
    times: Times = field(default_factory=dict)
    clock: Callable[[], DataFrame] | None = None
    """The rows `t, tick, start, end` where the ticks stand for others: then `times` are theirs."""
    materialize: Materialize = checkpointed
    added: Collection[str] = ()
    """The outputs of which what they add or change will be read and nothing else: of histories
    `Relation.new(first)`, of others `Relation.changes`, if they tell these.
    """
    in_rounds: InRounds | None = None
    """How cycles run in rounds that are planned once; None: their rounds are planned one by one."""
    in_python: FailedGuards = tuple
    """The functions for which it runs again: of all of them it is known when it has run."""


@dataclass(frozen=True, slots=True)
class RangeResult:
    """What a job gives: all of it must be written or none."""

    outputs: Mapping[str, Relation]
    """By the outputs' names. Histories hold their past rows too: `Relation.new(first)` is what the
    range adds.
    """
    state: Mapping[str, DataFrame]
    """By the slots' ids: the rows `item, t[, ord]` that the range adds or leaves; of a log of
    changes the rows `item, t, n`.
    """


class Storage(Protocol[T_co]):
    """Where the past and the batches of ticks are, and where what they give goes.

    Memory, files and Delta tables are such places.
    """

    @property
    def plan(self) -> TickPlan:
        """The plan that the ticks run by."""

    @property
    def settings(self) -> Settings:
        """The limits of the jobs."""

    @property
    def directory(self) -> DataPlace | None:
        """Where the files of the past are, if there are any."""

    def job(self, first: int, last: int) -> Job:
        """The job of these ticks; it may read what the ticks before them have left here."""

    def take(self, job: Job, found: RangeResult) -> T_co:
        """Computes and keeps what a job gives: all of it, or it raises and nothing has changed."""
