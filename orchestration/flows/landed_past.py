"""The landed past of a flow: whether what committed ticks have read is still there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from hydro_core.errors import HydroError
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.project.flow_asset import FlowAsset

if TYPE_CHECKING:
    from hydro_core.spark.store.ledger import Commit

    from .flows import Flows


def lost_past(
    flow: FlowAsset, flows: Flows, plan: TickPlan, inputs: Iterable[str]
) -> Mapping[str, str]:
    """The inputs of a plan of which rows are gone that committed ticks have read, and what says so.

    An input that no tick has read yet has lost nothing.
    """
    ledger = flows.pipeline(flow).ledger
    read = {one.name: one for one in ledger.last_reads()}
    rows = rows_read(ledger.commits(), 0)
    lost = {}
    for name in inputs:
        if name not in read:
            continue
        try:
            there = flows.inputs(flow, plan, [name]).rows_there(name, read[name].version)
        except HydroError as error:
            lost[name] = error.diagnostics[0].message
            continue
        if there is not None and there < rows.get(name, 0):
            lost[name] = (
                f"input `{name}`: its landing has {there:,} rows, and committed ticks have read "
                f"{rows[name]:,}"
            )
    return lost


def rows_read(commits: Iterable[Commit], first: int) -> Mapping[str, int]:
    """How many rows of each input the commits have read that made the ticks from `first` on.

    Nothing where that cannot be told: one of them has made earlier ticks, too, or ticks that were
    made again since, or has not counted them.
    """
    made_by: dict[int, Commit] = {}
    for commit in commits:
        made_by = {tick: one for tick, one in made_by.items() if tick < commit.first}
        made_by |= dict.fromkeys(commit.ticks, commit)
    standing = {commit.sequence: commit for commit in made_by.values()}.values()
    if sum(len(commit.ticks) for commit in standing) > sum(tick >= first for tick in made_by):
        return {}
    found: Counter[str] = Counter()
    for read in (read for commit in standing for read in commit.inputs):
        if read.rows is None:
            return {}
        found[read.name] += read.rows
    return found
