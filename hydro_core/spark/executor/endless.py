"""The error of a cycle that does not come to rest."""

from __future__ import annotations

from typing import Protocol

from hydro_core.catalog.refusals import endless_cycle
from hydro_core.errors import DataError
from hydro_core.ir.graph import Node


class Looping(Protocol):
    """A cycle, as far as its error tells of it."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Its operators."""

    @property
    def path(self) -> str:
        """The cycle operator by operator."""


def endless(what: str, name: str, limit: int, cycle: Looping) -> DataError:
    """There is no end after `limit` rounds or items: `what`; the setting is called `name`."""
    first = cycle.nodes[0]
    reason, cure = endless_cycle(cycle.path, f"{limit:,} {what}", name)
    return DataError.of(
        "runtime", f"`{first.op.called}`: {reason}", first.span, first.op.called, help=cure
    )
