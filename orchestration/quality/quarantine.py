"""Rows in quarantine: how many a tick may have, and the check that warns of any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hydro_core.errors import Code, DataError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.quarantine import quarantined_inputs
from hydro_core.types.quarantine import QUARANTINE

from .suites import TICK
from .validate import Verdict

if TYPE_CHECKING:
    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.pipeline.prepared import Prepared
    from hydro_core.spark.store.delta.write import WrittenRows

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
    inputs = quarantined_inputs(flow)
    in_all = flow.on_error.quarantine if flow.on_error else 0
    counts = Counter(one.counted for one in _wrong(flow, shown))
    for tick, source in sorted(counts):
        allowed = inputs.get(source, 0) if source else in_all
        if counts[tick, source] > allowed:
            of = tick, source
            first = min(one.told for one in _wrong(flow, shown) if one.counted == of)
            raise _too_many(flow, (tick, source), (counts[tick, source], allowed), first)


def _wrong(flow: FlowAsset, shown: WrittenRows) -> Iterator[_Wrong]:
    return (_Wrong(flow, row) for piece in shown.pieces() for row in piece.to_pylist())


@dataclass(frozen=True, slots=True)
class _Wrong:
    """A row of a quarantine."""

    flow: FlowAsset
    row: Mapping[str, Any]

    @property
    def counted(self) -> tuple[int, str]:
        """The tick and the input that it counts for; "": it is one on which a function fails."""
        source = self.row["source"]
        return self.row[TICK], source if source in self.flow.inputs else ""

    @property
    def told(self) -> str:
        """The row in words."""
        return f"{self.row['place']}: {self.row['reason']}; the row: {self.row['row']}"


def _too_many(
    flow: FlowAsset, of: tuple[int, str], counts: tuple[int, int], first: str
) -> DataError:
    (tick, source), (found, allowed) = of, counts
    whose = f"of the input `{source}` do not fit" if source else "are such that a function fails"
    said = (
        f"{found:,} row(s) {whose} in {flow.ticks.calendar.window(tick).key}, and at most "
        f"{allowed:,} may be in quarantine; the first: {first}"
    )
    cure = f"mend them, or let `on_error` allow more: `{{quarantine: {found}}}`"
    code: Code = "input" if source else "runtime"
    return DataError.of(code, said, help=cure)
