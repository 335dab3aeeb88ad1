"""Judging ticks: their laws and what their author expects, on what is written, before the commit.

Several ticks can be judged together: the laws hold of a range as they hold of a tick, and what is
expected of an output is expected of its rows, or of those of one tick.

Rows that are too many to be held at once are judged piece by piece, and the verdicts are added up.
Whether a column is unique shows in no piece: executors tell which values stand there more than
once, and how often; of these some are judged, so that what a verdict says of them is said as of few
rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hydro_core.project.flow_asset import Expect, FlowAsset
from hydro_core.spark.store.outputs.shown_ticks import shown_within

from .facts import committed_facts, kept, state_facts
from .suites import (
    ROWS,
    TICK,
    Verdict,
    added_up,
    as_frame,
    check_name,
    declared_checks,
    in_words,
    laws_frame,
    laws_suite,
    output_suite,
    validate,
    validate_rows,
)

if TYPE_CHECKING:
    import pandas as pd

    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.pipeline.prepared import Prepared
    from hydro_core.spark.store.delta.write import WrittenRows

    from .library import gx


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
    suite_of = partial(output_suite, flow.name, output)
    if shown.table is None:
        found = validate_in_pieces(suite_of, expected, shown, lambda: pipeline.spark)
    else:
        columns = dict.fromkeys((TICK, *(expect.column for expect in expected)))
        there = [column for column in columns if column in shown.columns]
        found = validate(suite_of(expected), as_frame(shown.table.select(there)))
    return [(output, verdict) for verdict in found]


_REPEATED = 5
"""So many of the values that stand there more than once are judged, and quoted."""

SuiteOf = Callable[[Sequence[Expect]], "gx.ExpectationSuite"]


def validate_in_pieces(
    suite_of: SuiteOf,
    expected: Sequence[Expect],
    shown: WrittenRows,
    session: Callable[[], Any],
) -> tuple[Verdict, ...]:
    """The verdicts on rows that executors wrote; `session` gives the Spark that did."""
    says, found = declared_checks(expected), dict[str, Verdict]()
    columns = dict.fromkeys((TICK, *(expect.column for expect in expected)))
    there = [column for column in columns if column in shown.columns]
    suite = suite_of([replace(expect, unique=False) for expect in expected])
    for piece in shown.pieces(there):
        for verdict in validate(suite, as_frame(piece)):
            before, known = found.get(verdict.check), says[verdict.check]
            found[verdict.check] = verdict if before is None else added_up(before, verdict, known)
    for expect in expected:
        if expect.unique:
            name = check_name("unique", expect.column)
            one = suite_of([Expect(expect.column, unique=True, severity=expect.severity)])
            found[name] = _unique(one, expect.column, shown, session, says[name])
    return tuple(found[name] for name in says if name in found)


def _unique(
    suite: gx.ExpectationSuite,
    column: str,
    shown: WrittenRows,
    session: Callable[[], Any],
    says: str,
) -> Verdict:
    if column not in shown.columns:
        (verdict,) = validate(suite, _frame({TICK: []}))
        return verdict
    from hydro_core.spark.store.outputs.repeated_values import repeated

    told = repeated(shown.frame(session()), TICK, column, _REPEATED)
    some = [one for one in told.some for _ in range(2)]
    frame = _frame({TICK: [tick for tick, _ in some], column: [value for _, value in some]})
    (verdict,) = validate(suite, frame)
    counts = {"element_count": shown.rows, "unexpected_count": told.rows}
    seen: Mapping[str, Any] = {**verdict.seen, **counts}
    if ROWS in seen:
        # Each stands there twice.
        seen = {**seen, ROWS: list({str(row): row for row in seen[ROWS]}.values())}
    return replace(verdict, seen=dict(seen), says=in_words(says, seen, passed=verdict.passed))


def _frame(columns: Mapping[str, list[Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns)
