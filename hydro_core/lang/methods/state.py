"""Operators that know of earlier ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hydro_core.catalog import state
from hydro_core.lang.methods.base import Methods

if TYPE_CHECKING:
    from hydro_core.lang.stream import Stream


class StateMethods(Methods):
    """Methods of the family `state`."""

    def persist(self) -> Stream:
        """All items of the ticks up to this one."""
        return self.apply(state.PERSIST)

    def old(self) -> Stream:
        """All items of the ticks before this one."""
        return self.apply(state.OLD)

    def window(self, n: int) -> Stream:
        """All items of the last n ticks, this one included."""
        return self.apply(state.WINDOW, n)

    def prev(self) -> Stream:
        """The items of the tick before."""
        return self.apply(state.PREV)

    def defer_tick(self) -> Stream:
        """The same as `prev`."""
        return self.apply(state.PREV)

    def delta(self) -> Stream:
        """The items that were not there in the tick before, copies counted."""
        return self.apply(state.DELTA)

    def changes(self) -> Stream:
        """`(n, x)` for each item x of which there are n more than in the tick before."""
        return self.apply(state.CHANGES)

    def persist_mut(self) -> Stream:
        """What is there after all commands `("persist", x)` and `("delete", x)`."""
        return self.apply(state.PERSIST_MUT)

    def persist_mut_keyed(self) -> Stream:
        """The values after all commands `("persist", k, v)` and `("delete", k, None)`."""
        return self.apply(state.PERSIST_MUT_KEYED)
