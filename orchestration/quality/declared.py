"""Which checks each asset of a flow has, and what they say."""

from __future__ import annotations

from collections.abc import Mapping

from hydro_core.project.flow_asset import FlowAsset

from ..project.shape import FlowShape
from .compared import EQUALS, SAYS
from .landed import landed_checks
from .sample import Sample
from .suites import LAW_CHECKS, declared_checks


def checks_of(
    flow: FlowAsset, shape: FlowShape, sample: Sample | None
) -> dict[str, Mapping[str, str]]:
    """The checks of each asset that has some, each with what it says.

    Args:
        flow: whose checks they are.
        shape: its assets.
        sample: what judges outputs by a few keys, if anything does.
    """
    sampled = {} if sample is None else {name: {EQUALS: SAYS} for name in sample.drivers}
    laws = {f"state/{state.name}": LAW_CHECKS for state in shape.states}
    expected = {
        output.name: {
            **declared_checks(flow.expect.get(output.name, ())),
            **sampled.get(output.name, {}),
        }
        for output in shape.outputs
    }
    found = {**laws, **expected, **landed_checks(flow)}
    return {asset: checks for asset, checks in found.items() if checks}
