"""Which checks each asset of a flow has, and what they say."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hydro_core.project.flow_asset import FlowAsset
from hydro_core.types.quarantine import QUARANTINE

from ..project.shape import FlowShape
from .landed import landed_checks
from .quarantine import WARNS
from .suites import LAW_CHECKS, declared_checks

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
