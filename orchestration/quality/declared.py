"""Which checks each asset of a flow has, and what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.quarantine import quarantined_inputs
from hydro_core.types.item import QUARANTINE

from ..flows.late_arrivals import UNCHANGED, LateArrivals
from ..project.shape import FlowShape
from .suites import LAW_CHECKS, TICK, Verdict, declared_checks

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
        yield QUARANTINE, _verdict(NO_WRONG_ROWS, not found, seen)


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


EQUALS = "equals_program"
SAYS = "for some keys it is what the program gives, run over all that is landed"


def checks_of(
    flow: FlowAsset, shape: FlowShape, sampled: Collection[str]
) -> dict[str, Mapping[str, str]]:
    """The checks of each asset that has some, each with what it says.

    Args:
        sampled: the outputs that are judged by a few keys.
    """
    laws = {f"state/{state.name}": LAW_CHECKS for state in shape.states}
    expected = {
        output.name: {
            **declared_checks(flow.expect.get(output.name, ())),
            **({EQUALS: SAYS} if output.name in sampled else {}),
            **(WARNS if output.name == QUARANTINE else {}),
        }
        for output in shape.outputs
    }
    found = {**laws, **expected, **landed_checks(flow)}
    return {asset: checks for asset, checks in found.items() if checks}


ROWS_LANDED = "rows_landed"
NO_LATE_ROWS = "no_late_rows"
ROWS_STAND = "committed_rows_stand"
_SAYS = {
    **WARNS,
    ROWS_LANDED: "some row of the input is of the tick",
    NO_LATE_ROWS: "no row came for an earlier tick, which was committed without it",
    ROWS_STAND: "no row of a committed tick was removed or rewritten where it landed",
}


def landed_checks(flow: FlowAsset) -> dict[str, Mapping[str, str]]:
    """The checks of each landing, by its asset; of one that arrives whole not whether a tick has
    any rows.
    """
    return {
        f"landing/{name}": {
            check: says
            for check, says in _SAYS.items()
            if check not in WARNS and (check != ROWS_LANDED or landing.column is not None)
        }
        for name, landing in flow.landings.items()
    }


def landed_verdicts(
    flow: FlowAsset, empty: Collection[str], found: Mapping[str, LateArrivals]
) -> Iterator[tuple[str, Verdict]]:
    """What the checks find of a tick.

    Args:
        empty: those that had no row of the tick.
        found: what was noticed of the others.
    """
    for name, landing in flow.landings.items():
        asset, one = f"landing/{name}", found.get(name, UNCHANGED)
        if landing.column is not None:
            yield asset, _verdict(ROWS_LANDED, name not in empty, {})
        late = {"late rows": one.rows, "late rows are of": one.says_late} if one.late else {}
        yield asset, _verdict(NO_LATE_ROWS, not one.late, late)
        cure = f"hydrotick correct {flow.name} --from {one.first}"
        changed = {"changed ticks": one.says_changed, "cure": cure} if one.changed else {}
        yield asset, _verdict(ROWS_STAND, not one.changed, changed)


def _verdict(check: str, passed: bool, seen: dict[str, Any]) -> Verdict:
    return Verdict(check, passed=passed, says=_SAYS[check], seen=seen, severity="warn")
