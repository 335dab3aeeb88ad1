"""The error of a cycle that does not come to rest."""

from __future__ import annotations

from typing import Protocol

from hydro_core.errors import DataError, Diagnostic
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
    return DataError(
        Diagnostic(
            "runtime",
            f"a cycle is not done after {limit:,} {what} (`{name}`): {cycle.path}",
            first.span,
            first.op.name,
            "let it stop: `unique()` keeps items from going round again, a filter bounds new ones; "
            "or let it go on in the next tick, with `prev()`",
        )
    )
