"""Rows in quarantine: how many a tick may have, and the check that warns of any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.quarantine import quarantined_inputs
from hydro_core.types.quarantine import QUARANTINE

from .suites import TICK
from .validate import Verdict

if TYPE_CHECKING:
    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.pipeline.prepared import Prepared

NO_WRONG_ROWS = "no_wrong_rows"
WARNS: Mapping[str, str] = {NO_WRONG_ROWS: "no row of the tick is in quarantine"}


def quarantine_verdicts(
    flow: FlowAsset, key: str, rows: Mapping[str, int]
) -> Iterator[tuple[str, Verdict]]:
    """What the check finds of a tick, by the rows that each asset got with it."""
    found = rows.get(QUARANTINE)
    if found is not None:
        shown = f"hydrotick show {flow.name} {QUARANTINE} --tick {key}"
        seen = {"rows in quarantine": found, "show them": shown} if found else {}
        says = WARNS[NO_WRONG_ROWS]
        yield (
            QUARANTINE,
            Verdict(NO_WRONG_ROWS, passed=not found, says=says, seen=seen, severity="warn"),
        )


def refuse_more(flow: FlowAsset, pipeline: Pipeline, prepared: Prepared) -> None:
    """Refuses ticks of which more rows are wrong than the asset has put in quarantine.

    Raises:
        DataError: which tick is the first, how many rows it has, and the first of them (code
            `input`, or `runtime` where a function failed).
    """
    if QUARANTINE not in prepared.outputs or not prepared.outputs[QUARANTINE].rows:
        return
    shown = prepared.shown(QUARANTINE, lambda: pipeline.spark)

    def rows() -> Iterator[tuple[tuple[int, str], Mapping[str, Any]]]:
        """Each with the tick and the input that it counts for; "": a function fails on it."""
        for piece in shown.pieces():
            for row in piece.to_pylist():
                yield (row[TICK], row["source"] if row["source"] in flow.inputs else ""), row

    inputs = quarantined_inputs(flow)
    in_all = flow.on_error.quarantine if flow.on_error else 0
    for of, found in sorted(Counter(of for of, _ in rows()).items()):
        tick, source = of
        allowed = inputs.get(source, 0) if source else in_all
        if found <= allowed:
            continue
        rows_of = (row for at, row in rows() if at == of)
        first = min(f"{row['place']}: {row['reason']}; the row: {row['row']}" for row in rows_of)
        whose = (
            f"of the input `{source}` do not fit" if source else "are such that a function fails"
        )
        raise DataError.of(
            "input" if source else "runtime",
            f"{found:,} row(s) {whose} in {flow.ticks.calendar.window(tick).key}, and at most "
            f"{allowed:,} may be in quarantine; the first: {first}",
            help=f"mend them, or let `on_error` allow more: `{{quarantine: {found}}}`",
        )
