"""Judging ticks: their laws and what their author expects, on what is written, before the commit.

Several ticks can be judged together: the laws hold of a range as they hold of a tick, and what is
expected of an output is expected of its rows, or of those of one tick.

What breaks a check of an output is counted first (`expected`): of all rows at once, or piece by
piece where they are too many to be held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.store.outputs.shown_ticks import shown_within

from .expected import counted
from .facts import committed_facts, kept, state_facts
from .suites import TICK, Verdict, judge_counts, laws_frame, laws_suite, validate_rows

if TYPE_CHECKING:
    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.pipeline.prepared import Prepared
    from hydro_core.spark.store.delta.write import WrittenRows


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdicts on ticks that were judged together, each with its asset; how many rows each
    tick had in the outputs that were judged; and the facts that the ledger keeps.
    """

    verdicts: Sequence[tuple[str, Verdict]]
    rows: Mapping[str, Counter[int]]
    facts: Mapping[str, Any]


def judge(flow: FlowAsset, pipeline: Pipeline, prepared: Prepared) -> Judged:
    """The verdicts on ticks that are written, and the facts that the ledger keeps of them."""
    facts = state_facts(prepared, pipeline.ledger.last_run)
    laws = validate_rows(laws_suite(flow.name), laws_frame(facts), "table")
    verdicts = [(f"state/{slot}", verdict) for slot, found in laws.items() for verdict in found]
    rows: dict[str, Counter[int]] = {}
    for output in flow.expect:
        shown = prepared.shown(output, lambda: pipeline.spark)
        pieces = shown.pieces([TICK])
        rows[output] = Counter(t for piece in pieces for t in piece[TICK].to_numpy().tolist())
        verdicts += _judge_output(flow, output, shown, pipeline)
    specs = {slot: written.spec for slot, written in prepared.state.items()}
    return Judged(verdicts, rows, kept(facts, specs))


def judge_again(flow: FlowAsset, pipeline: Pipeline, tick: int, asset: str) -> tuple[Verdict, ...]:
    """The verdicts on one asset of a committed tick, from the stored tables alone."""
    kind, _, slot = asset.rpartition("/")
    if kind != "state":
        spec, ticks = pipeline.output_tables[asset], (tick, tick)
        with shown_within(pipeline.store, spec, ticks, lambda: pipeline.spark) as shown:
            return tuple(verdict for _, verdict in _judge_output(flow, asset, shown, pipeline))
    facts = committed_facts(pipeline, tick, slot)
    if facts is None:
        return ()
    return validate_rows(laws_suite(flow.name), laws_frame([facts]), "table")[slot]


def _judge_output(
    flow: FlowAsset, output: str, shown: WrittenRows, pipeline: Pipeline
) -> list[tuple[str, Verdict]]:
    expected = flow.expect.get(output, ())
    facts = counted(expected, shown, lambda: pipeline.spark)
    return [(output, verdict) for verdict in judge_counts(flow.name, output, expected, facts)]
