"""`over` of a history that goes on from the last rows of each key: its tail.

What a function gives a row that comes after all stored rows of its key follows from the tail: the
last rows as they were given, as many as are looked back at, and the aggregates so far in parts that
merge. Each row has these, so that of a key of which a row comes late the rows behind it are made
again, from those before it. What looks at rows that follow, or at equal ones, is so made again from
as many rows before a new one as it looks ahead, or from the first that is equal to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hydro_core.catalog.aggregates import AGGREGATES, aggregate_type, argument_type
from hydro_core.catalog.ordered import OVER
from hydro_core.catalog.over_functions import aggregate_of, argument, looks_of
from hydro_core.catalog.parts import Named, merging, running_parts
from hydro_core.catalog.spec import Aggregate, Args, OverFunction
from hydro_core.catalog.type_rules import Types, columns_of
from hydro_core.types.item import LONG, Decimal, Field, ItemType, Row

MOST_ROWS = 1000
"""No more rows are kept of a key: who looks back farther has the key made again."""
EXACT = 28
"""Digits of the longest decimals that are added up without a look at how many they are."""


def hidden_parts(args: Args) -> Sequence[Named]:
    """The aggregates so far that are stored beside the columns of a program."""
    shown = {name for name, _ in args["functions"]}
    return [(name, one) for name, one in args["parts"] if name not in shown]


def kept(args: Args, types: Types) -> ItemType:
    """The columns of `over`, the parts, the row's place, and of the last rows their key."""
    shown = OVER.result(args, types)
    if not isinstance(shown, Row):
        return shown
    parts = [Field(name, aggregate_type(one, types[0])) for name, one in hidden_parts(args)]
    key = Row(columns_of(types[0], args["by"]))
    return Row((*shown.fields, *parts, Field(args["number"], LONG), Field(args["tail"], key)))


def with_tails(args: Args, item: ItemType, output: ItemType) -> tuple[Args, Args] | None:
    """What `over` goes on by, and the columns of it that a program sees.

    None where some function looks at more than the rows before, some that follow, or its equals.
    """
    if not isinstance(item, Row) or not isinstance(output, Row):
        return None
    functions: Sequence[tuple[str, OverFunction]] = args["functions"]
    by_columns = isinstance(args["by"], tuple) and isinstance(args["order"], tuple)
    if not by_columns or not all(_resumes(function) for _, function in functions):
        return None
    keep = rows_ahead(args) + max(_looks_back(function) for _, function in functions)
    parts = _parts(args, item, output)
    if parts is None or keep > MOST_ROWS:
        return None
    given, made = parts
    names = {name for name, _ in given} - {name for name, _ in functions}
    taken = {*output.names, *names}
    if names & {*output.names}:
        return None
    number = _free("number", taken)
    tail = _free("tail", {*taken, number})
    beside = {"parts": given, "made": made, "number": number, "tail": tail, "keep": keep}
    return args.with_(**beside), Args((("columns", output.names), ("computed", ())))


def rows_ahead(args: Args) -> int:
    """How many rows before a new one are made again."""
    return max(
        argument(function, "n") if looks_of(function) == "next" else 0
        for _, function in args["functions"]
    )


def given_to_peers(args: Args) -> frozenset[str]:
    """The columns that rows which are equal in the order are given together."""
    return frozenset(name for name, function in args["functions"] if _by_peers(function))


def so_far(name: str) -> str:
    """The aggregate so far, row by row, of one that is given to equal rows together."""
    return f"{name}_so_far"


def _by_peers(function: OverFunction) -> bool:
    return bool(argument(function, "peers"))


def _resumes(function: OverFunction) -> bool:
    """Whether what it gives follows from few rows around a new one, and what is kept of others."""
    looks = looks_of(function)
    if looks != "peers":
        return looks != "all"
    of = aggregate_of(function)
    # Of equal rows, which are in no order here, the aggregate must not ask for one.
    return of is not None and _by_peers(function) and not AGGREGATES[of.function].needs_order


def _looks_back(function: OverFunction) -> int:
    """How many rows before one that is made must be known."""
    rows = argument(function, "rows")
    back = argument(function, "n") if rows is None else rows - 1
    return max(1, 0 if looks_of(function) == "next" else back or 0)


def _parts(
    args: Args, item: Row, output: Row
) -> tuple[tuple[Named, ...], tuple[Named, ...]] | None:
    """The aggregates so far that are stored, and how the running ones are made of them."""
    running = tuple(
        (so_far(name) if _by_peers(function) else name, one)
        for name, function in args["functions"]
        if (one := aggregate_of(function)) is not None and argument(function, "rows") is None
    )
    if any(_may_lose_digits(one, item) for _, one in running):
        return None
    if not running:
        return (), ()
    found = Args((("by", args["by"]), ("aggregates", running)))
    if merging(running) is not None:
        return running, ()
    beside = [Field(name, aggregate_type(one, item)) for name, one in running]
    wider = [*output.fields, *(field for field in beside if field.name not in output.names)]
    parts = running_parts(found, item, Row(tuple(wider)))
    if parts is None or merging(parts.given["aggregates"]) is None:
        return None
    return parts.given["aggregates"], parts.made["aggregates"]


def _may_lose_digits(aggregate: Aggregate, item: Row) -> bool:
    types = [argument_type(a, item) for a in aggregate.arguments]
    return any(isinstance(t, Decimal) and t.precision > EXACT for t in types)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
