"""Which checks each asset of a flow has, and what they say."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from hydro_core.project.flow_asset import FlowAsset
from hydro_core.types.quarantine import QUARANTINE

from ..flows.late_arrivals import UNCHANGED, LateArrivals
from ..project.shape import FlowShape
from .quarantine import WARNS
from .suites import LAW_CHECKS, declared_checks
from .validate import Verdict

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
            if check != ROWS_LANDED or landing.column is not None
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
