"""Operators as methods of a stream, family by family as in the catalogue."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, Generic, TypeVar

from hydro_core.catalog import combine, group, itemwise, ordered, state
from hydro_core.catalog.over_functions import FUNCTIONS
from hydro_core.catalog.registry import TYPED
from hydro_core.catalog.spec import Aggregate, OpSpec, OverFunction
from hydro_core.functions.read import read_callable
from hydro_core.functions.tree import Fn
from hydro_core.lang.arguments import bound_function, check_count, no_function, with_returns
from hydro_core.lang.signature import ArgumentProblem, neither, read_schema
from hydro_core.lang.source import of_function
from hydro_core.types.item import ItemType

# The arguments of the Python API: values and functions as they are.


class ValueReader:
    """Reads Python values."""

    def constant(self, written: Any) -> Any:
        """The value; a function without parameters is called."""
        return written() if callable(written) and not isinstance(written, Fn) else written

    def is_function(self, written: Any) -> bool:
        """True if the value can be called."""
        return callable(written) or isinstance(written, Fn)

    def function(self, written: Any, returns: ItemType | None) -> Fn:
        """The function, read from its source where that is possible."""
        if isinstance(written, Fn):
            return with_returns(written, returns, written)
        fn = read_callable(written, returns=returns)
        return replace(fn, span=fn.span or of_function(written))

    def aggregate(self, written: Any) -> Aggregate:
        """The aggregate, its Python functions read."""
        if not isinstance(written, Aggregate):
            help_ = '`from hydro_core import agg`, then `agg.sum("v")`'
            raise ArgumentProblem(
                "type", f"an aggregate is needed, not {written!r}", help_, written
            )
        arguments = tuple(self.column_or_function(a) for a in written.arguments)
        return check_count(Aggregate(written.function, arguments), written)

    def over_function(self, written: Any) -> OverFunction:
        """The function of `over`, its Python functions read."""
        if isinstance(written, OverFunction):
            names = (p.name for p in FUNCTIONS[written.function].parameters)
            given = dict(zip(names, written.arguments, strict=True))
            return bound_function(written.function, (), given, self, written)
        raise no_function(getattr(written, "function", None), written)

    def column_or_function(self, written: Any) -> str | Fn:
        """A column, or a function of the row."""
        if isinstance(written, str):
            return written
        if self.is_function(written):
            return self.function(written, None)
        help_ = "name a column, or give a function of the row"
        raise neither(help_, written)


def typed(returns: str, f: Callable[..., Any]) -> Fn:
    """The function `f` with a declared result type, for functions whose type cannot be inferred.

    Args:
        returns: The type as Spark DDL: `"long"`, `"array<string>"`, `"(long, string)"`.
        f: A function of the row.

    Returns:
        A function for `select`, `with_columns`, `aggregate` and `latest`. Operators of one function
            have the argument `returns=` for it.
        Operators of one function have the argument `returns=` for it.

    >>> import re
    >>> from hydro_core import Flow
    >>> flow = Flow("names")
    >>> names = flow.source("names", "name string")
    >>> names.select(short=typed("string", lambda r: re.sub("a", "", r.name))).sink("out")
    >>> list(flow.run([{"names": [{"name": "ada"}]}]))
    [{'out': [{'short': 'd'}]}]
    """
    return ValueReader().function(f, read_schema(TYPED, returns, f))


# The operators as methods of a stream, family by family as in the catalogue.


UserFunction = Callable[..., Any]
"""A lambda, or a `def`."""

ColumnNames = str | list[str] | tuple[str, ...]
"""A column or several."""

StreamT = TypeVar("StreamT")
"""The type of the stream that has the methods."""


class OperatorMethods(ABC, Generic[StreamT]):
    """A stream that operators can be applied to.

    `commutative=True`, `associative=True`, `idempotent=True`, `neutral=True` and `returns="long"`
    may be declared of a function (`promises`); the engine relies on them.
    """

    @abstractmethod
    def apply(self, op: OpSpec, *arguments: Any, **keywords: Any) -> StreamT:
        """The output of an operator on this stream; keywords that are None are ignored."""

    # Stateless operators

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

    demux = partition

    # Several streams

    def union(self, *others: StreamT) -> StreamT:
        """The items of all."""
        return self.apply(combine.UNION, *others)

    def chain(self, right: StreamT) -> StreamT:
        """The items of this stream, then those of the other."""
        return self.apply(combine.CHAIN, right=right)

    def cross(self, right: StreamT) -> StreamT:
        """All pairs."""
        return self.apply(combine.CROSS, right=right)

    def cross_singleton(self, single: StreamT) -> StreamT:
        """Each item with the single item of the other stream; a second one fails the tick."""
        return self.apply(combine.CROSS_SINGLETON, single=single)

    def join(
        self,
        right: StreamT,
        *,
        on: ColumnNames | Mapping[str, str] | None = None,
        how: str = "inner",
        suffix: str | None = None,
        where: UserFunction | None = None,
    ) -> StreamT:
        """Equi-join on the first field of pairs, or with `on` on columns of rows.

        `on` is a column of both sides, a list of such, or `{left: right}` where their names differ:
        the left's stay. `how` is inner, left, right, outer, semi or anti; `suffix` renames columns
        of the right that the left has too. A pair of rows matches only where the condition `where`
        over both is true; without `on` the condition applies to all pairs.
        """
        return self.apply(combine.JOIN, right=right, on=on, how=how, suffix=suffix, where=where)

    def join_asof(  # noqa: PLR0913 - as a program writes them
        self,
        right: StreamT,
        *,
        on: ColumnNames | Mapping[str, str] | None = None,
        at: str = "at",
        since: str = "since",
        direction: str = "backward",
        within: timedelta | float | Decimal | None = None,
        how: str = "left",
        suffix: str | None = None,
    ) -> StreamT:
        """Each row with the one right row of its key whose `since` is nearest to its `at`.

        `direction` is backward (the greatest that is not after), forward (the least that is not
        before) or nearest, no farther than `within`; of equal ones the greatest row. With
        `how="inner"` rows that find none are left out.
        """
        return self.apply(
            combine.JOIN_ASOF,
            right=right,
            on=on,
            at=at,
            since=since,
            direction=direction,
            within=within,
            how=how,
            suffix=suffix,
        )

    def zip(self, right: StreamT) -> StreamT:
        """Pairs of the items at equal positions."""
        return self.apply(combine.ZIP, right=right)

    def zip_longest(self, right: StreamT) -> StreamT:
        """Pairs of the items at equal positions, null where one side has ended."""
        return self.apply(combine.ZIP_LONGEST, right=right)

    def anti_join(self, neg: StreamT) -> StreamT:
        """The pairs whose key is not in `neg`, with their duplicates."""
        return self.apply(combine.ANTI_JOIN, neg=neg)

    def difference(self, neg: StreamT) -> StreamT:
        """The items that are not in `neg`, with their duplicates."""
        return self.apply(combine.DIFFERENCE, neg=neg)

    # Groups of items

    def unique(self) -> StreamT:
        """Each distinct item once."""
        return self.apply(group.UNIQUE)

    def unique_keyed(self, *, by: ColumnNames | None = None) -> StreamT:
        """The first value of each key."""
        return self.apply(group.UNIQUE_KEYED, by=by)

    def fold(self, init: Any, f: UserFunction, **promises: Any) -> StreamT:
        """Exactly one item each tick: `f(acc, x)` over all items, `init` on no input."""
        return self.apply(group.FOLD, init, f, **promises)

    def reduce(self, f: UserFunction, **promises: Any) -> StreamT:
        """One item, `f(x, y)` over all items; none on no input."""
        return self.apply(group.REDUCE, f, **promises)

    def fold_keyed(
        self, init: Any, f: UserFunction, *, by: ColumnNames | None = None, **promises: Any
    ) -> StreamT:
        """`fold` of the values of each key that has any."""
        return self.apply(group.FOLD_KEYED, init, f, by=by, **promises)

    def reduce_keyed(
        self, f: UserFunction, *, by: ColumnNames | None = None, **promises: Any
    ) -> StreamT:
        """`reduce` of the values of each key."""
        return self.apply(group.REDUCE_KEYED, f, by=by, **promises)

    def latest(self, *, by: ColumnNames, order: ColumnNames | UserFunction) -> StreamT:
        """Of each key the row with the greatest `order`: columns, or a function of the row."""
        return self.apply(group.LATEST, by=by, order=order)

    def aggregate(self, *, by: ColumnNames | None = None, **aggregates: Aggregate) -> StreamT:
        """Spark's aggregates, of each key or of all rows: `aggregate(by="k", n=agg.count())`."""
        return self.apply(group.AGGREGATE, by=by, **aggregates)

    def over(
        self,
        *,
        by: ColumnNames | UserFunction | None = None,
        order: ColumnNames | UserFunction | None = None,
        descending: bool = False,
        **functions: OverFunction,
    ) -> StreamT:
        """Each row with columns of its key's rows in their order: `over(by="k", order="at",
        n=over.row_number())`.
        """
        return self.apply(ordered.OVER, by=by, order=order, descending=descending, **functions)

    def top(
        self,
        n: int,
        *,
        by: ColumnNames | UserFunction | None = None,
        order: ColumnNames | UserFunction,
        descending: bool = False,
        ties: bool = False,
    ) -> StreamT:
        """The first n rows of each key, or of all; with `ties` those equal to the n-th, too."""
        given = {"by": by, "order": order, "descending": descending, "ties": ties}
        return self.apply(ordered.TOP, n, **given)

    # In an order

    def sort(self) -> StreamT:
        """The tick's items, ascending."""
        return self.apply(ordered.SORT)

    def sort_by_key(
        self, f: UserFunction, descending: bool = False, *, returns: str | None = None
    ) -> StreamT:
        """The tick's items by `f(x)`; ties by the item, ascending."""
        return self.apply(ordered.SORT_BY_KEY, f, descending, returns=returns)

    def limit(self, n: int, *, by: ColumnNames | None = None) -> StreamT:
        """The first n items of the tick, or of each key."""
        return self.apply(ordered.LIMIT, n, by=by)

    def enumerate(self) -> StreamT:
        """Each item with its position in this tick, from 0."""
        return self.apply(ordered.ENUMERATE)

    def scan(self, init: Any, f: UserFunction, **promises: Any) -> StreamT:
        """`f(acc, x)` after each item."""
        return self.apply(ordered.SCAN, init, f, **promises)

    def scan_keyed(
        self, init: Any, f: UserFunction, *, by: ColumnNames | None = None, **promises: Any
    ) -> StreamT:
        """`f(acc, v)` after each item of a key."""
        return self.apply(ordered.SCAN_KEYED, init, f, by=by, **promises)

    def next_stratum(self) -> StreamT:
        """The items themselves, once the stratum has ended."""
        return self.apply(ordered.NEXT_STRATUM)

    # Over ticks

    def persist(self, *, for_: timedelta | None = None, by: str | None = None) -> StreamT:
        """All items of the ticks up to this one; with `for_`, until their time is that long ago."""
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

    defer_tick = prev

    def delta(self) -> StreamT:
        """The items that were not there in the tick before, copies counted."""
        return self.apply(state.DELTA)

    def changes(self) -> StreamT:
        """`(n, x)` for each item x that has n more copies than in the tick before."""
        return self.apply(state.CHANGES)

    def persist_mut(self) -> StreamT:
        """The items that are persisted after all commands `("persist", x)` and `("delete", x)`."""
        return self.apply(state.PERSIST_MUT)

    def persist_mut_keyed(self) -> StreamT:
        """The values after all commands `("persist", k, v)` and `("delete", k, None)`."""
        return self.apply(state.PERSIST_MUT_KEYED)
