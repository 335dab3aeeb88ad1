"""Operators that know of earlier ticks."""

from __future__ import annotations

from datetime import timedelta

from hydro_core.catalog import state
from hydro_core.lang.methods.base import Methods, StreamT


class StateMethods(Methods[StreamT]):
    """Methods of the family `state`."""

    def persist(self, *, for_: timedelta | None = None, by: str | None = None) -> StreamT:
        """All items of the ticks up to this one; with `for_`, until their time is so long ago."""
        return self.apply(state.PERSIST, for_=for_, by=by)

    def old(self) -> StreamT:
        """All items of the ticks before this one."""
        return self.apply(state.OLD)

    def window(self, n: int) -> StreamT:
        """All items of the last n ticks, this one included."""
        return self.apply(state.WINDOW, n)

    def prev(self) -> StreamT:
        """The items of the tick before."""
        return self.apply(state.PREV)

    def defer_tick(self) -> StreamT:
        """The same as `prev`."""
        return self.apply(state.PREV)

    def delta(self) -> StreamT:
        """The items that were not there in the tick before, copies counted."""
        return self.apply(state.DELTA)

    def changes(self) -> StreamT:
        """`(n, x)` for each item x of which there are n more than in the tick before."""
        return self.apply(state.CHANGES)

    def persist_mut(self) -> StreamT:
        """What is there after all commands `("persist", x)` and `("delete", x)`."""
        return self.apply(state.PERSIST_MUT)

    def persist_mut_keyed(self) -> StreamT:
        """The values after all commands `("persist", k, v)` and `("delete", k, None)`."""
        return self.apply(state.PERSIST_MUT_KEYED)
