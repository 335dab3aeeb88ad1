"""A flow in shards: how its asset asks for them, and its program cut into so many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hydro_core.artifact.deployment import Sharding
from hydro_core.errors import ProgramError
from hydro_core.project.flow_asset import FlowAsset, Shards

if TYPE_CHECKING:
    from hydro_core.compile import Compiled
    from hydro_core.optimize.optimizer import Optimized
    from hydro_core.shards.program import Sharded
    from hydro_core.shards.together import Together


def sharding_of(flow: FlowAsset) -> Sharding | None:
    """The shards that an asset asks for; None where it is not to be cut."""
    asked = flow.shards if isinstance(flow.shards, Shards) else Shards(flow.shards)
    if asked.count == 1:
        return None
    on = {name: (by,) if isinstance(by, str) else tuple(by) for name, by in asked.on.items()}
    return Sharding(asked.count, on, tuple(asked.replicate))


def served(sharding: Sharding | None) -> str:
    """How what serves is cut, in words."""
    return (
        "what serves is not in shards" if sharding is None else f"what serves has {sharding.says}"
    )


def check_sharding(flow: FlowAsset, program: Compiled) -> None:
    """Judges whether the program can be cut as the asset asks.

    Raises:
        ProgramError: it cannot, and what forbids it (code `config`).
    """
    asked = sharding_of(flow)
    if asked is not None:
        _cut(flow, program, asked)


def in_shards(
    flow: FlowAsset, program: Compiled, planned: Callable[[Compiled], Optimized]
) -> tuple[Sharding, Together] | None:
    """The shards of a flow, by a plan for one of them.

    None where it is not to be cut.

    Raises:
        ProgramError: it cannot be cut as the asset asks (code `config`).
    """
    from hydro_core.shards.together import Together

    asked = sharding_of(flow)
    if asked is None:
        return None
    cut = _cut(flow, program, asked)
    return replace(asked, says=cut.described), Together.of(cut, planned)


def _cut(flow: FlowAsset, program: Compiled, asked: Sharding) -> Sharded:
    from hydro_core.shards.program import Spelling, sharded

    def replicate(names: Sequence[str]) -> str:
        return f"replicate: [{', '.join(names)}]"

    spelling = Spelling(
        "`on`", replicate, f"leave `shards` of `{flow.name}` out: it runs as a whole then"
    )
    try:
        return sharded(program, asked.count, asked.on or None, asked.replicate, spelling)
    except ProgramError as error:
        place, said = flow.places.get("shards"), f"flow `{flow.name}`, `shards`: "
        raise ProgramError(
            *(
                replace(d, code="config", message=f"{said}{d.message}", span=d.span or place)
                for d in error.diagnostics
            )
        ) from None
