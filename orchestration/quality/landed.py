"""Whether a tick's rows came at all: a check that warns, since a day without rows may be right."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from assets.spec import FlowAsset
from orchestration.quality.validate import Verdict

ROWS_LANDED = "rows_landed"
SAYS = "some row of the input is of the tick"


def landed_checks(flow: FlowAsset) -> dict[str, Mapping[str, str]]:
    """The check of each input that is cut into ticks, by its asset."""
    return {f"landing/{name}": {ROWS_LANDED: SAYS} for name in _cut(flow)}


def landed_verdicts(flow: FlowAsset, empty: Collection[str]) -> Iterator[tuple[str, Verdict]]:
    """What the check finds where the inputs `empty` had no row of a tick."""
    for name in _cut(flow):
        verdict = Verdict(ROWS_LANDED, passed=name not in empty, says=SAYS, severity="warn")
        yield f"landing/{name}", verdict


def _cut(flow: FlowAsset) -> list[str]:
    return [name for name, landing in flow.inputs.items() if landing.column is not None]
