"""Operators that look at one item at a time."""

from __future__ import annotations

from hydro_core.catalog import itemwise
from hydro_core.lang.methods.base import Methods, StreamT, UserFunction


class ItemwiseMethods(Methods[StreamT]):
    """Methods of the family `itemwise`."""

    def identity(self) -> StreamT:
        """The items themselves."""
        return self.apply(itemwise.IDENTITY)

    def map(self, f: UserFunction, *, returns: str | None = None) -> StreamT:
        """`f(x)` of each item."""
        return self.apply(itemwise.MAP, f, returns=returns)

    def filter(self, f: UserFunction, *, returns: str | None = None) -> StreamT:
        """The items for which `f(x)` is true."""
        return self.apply(itemwise.FILTER, f, returns=returns)

    def filter_map(self, f: UserFunction, *, returns: str | None = None) -> StreamT:
        """`f(x)` of each item, where it is not None."""
        return self.apply(itemwise.FILTER_MAP, f, returns=returns)

    def inspect(self, f: UserFunction, *, returns: str | None = None) -> StreamT:
        """The items themselves; `f` may look at them."""
        return self.apply(itemwise.INSPECT, f, returns=returns)

    def select(self, *columns: str, **computed: UserFunction) -> StreamT:
        """The named columns, then the computed ones, nothing else."""
        return self.apply(itemwise.SELECT, *columns, **computed)

    def with_columns(self, **computed: UserFunction) -> StreamT:
        """Adds or replaces the computed columns."""
        return self.apply(itemwise.WITH_COLUMNS, **computed)

    def rename(self, **old: str) -> StreamT:
        """New names for columns, in their places: `rename(new="old")`."""
        return self.apply(itemwise.RENAME, **old)

    def drop(self, *columns: str) -> StreamT:
        """The rows without the named columns."""
        return self.apply(itemwise.DROP, *columns)

    def flat_map(self, f: UserFunction, *, returns: str | None = None) -> StreamT:
        """The elements of `f(x)`, an array or a tuple."""
        return self.apply(itemwise.FLAT_MAP, f, returns=returns)

    def flatten(self) -> StreamT:
        """The elements of the items, arrays or tuples."""
        return self.apply(itemwise.FLATTEN)

    def tee(self) -> StreamT:
        """Copies of the stream; implicit wherever a stream is used twice."""
        return self.apply(itemwise.TEE)

    def partition(
        self, f: UserFunction, ports: list[str] | list[int], *, returns: str | None = None
    ) -> StreamT:
        """Each item at the port that `f` names: `s.partition(f, ["even", "odd"])["even"]`."""
        return self.apply(itemwise.PARTITION, f, ports, returns=returns)

    def demux(
        self, f: UserFunction, ports: list[str] | list[int], *, returns: str | None = None
    ) -> StreamT:
        """The same as `partition`."""
        return self.apply(itemwise.PARTITION, f, ports, returns=returns)
