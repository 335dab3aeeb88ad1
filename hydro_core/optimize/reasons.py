"""Reasons why a node of a plan is not incremental, and what to write instead."""

from __future__ import annotations

from typing import NamedTuple, assert_never

from hydro_core.catalog.aggregates import (
    AGGREGATES,
    merging,
    moves,
    resumes,
    splits_by_type,
    why_no_parts,
    why_not_moving,
)
from hydro_core.catalog.classes import (
    AsOf,
    ByKey,
    DistinctItems,
    KeyMatch,
    Linear,
    MatchCondition,
    OrderedByKey,
    Ordering,
    OverTime,
    PerKey,
    PerPosition,
    Product,
    RunningResult,
    StreamEnd,
    Summary,
    TickDifference,
)
from hydro_core.catalog.spec import Args
from hydro_core.optimize.rule import FeedbackShape, Shape

IN_SMALLER_PARTS = "do it on what is new (`-> delta()` or `-> changes()`), or over a `window(n)`"
BOTH_WAYS = "`-> changes()` after it gives what comes and what leaves"
_STORED = ", ".join(f"`{a}`" for a, s in AGGREGATES.items() if resumes(a) and not s.internal)


class Advice(NamedTuple):
    """A reason, and the help: what to write instead."""

    why: str
    cure: str


def could_go_on(shape: Shape, args: Args) -> bool:
    """True if the node would be incremental if its input only grew."""
    match shape.cls:
        case ByKey(Summary.AGGREGATES):
            return all(resumes(a.function) for _, a in args.get("aggregates", ()))
        case ByKey(Summary.FOLD | Summary.REDUCTION):
            return args.get("f") is not None and bool(args["f"].algebra.commutative)
        case ByKey() | DistinctItems() | KeyMatch(wanted=False) | TickDifference(signed=False):
            return True
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return any(shape.linear)
        case FeedbackShape():
            return any(shape.linear)
        case _:
            assert_never(shape.cls)


def of_changing_input(before: str) -> Advice:
    """The node is not incremental because of its input."""
    return Advice(
        f"it reads what `{before}` makes, and that is made anew in each tick",
        f"make `{before}` incremental first",
    )


def of_state(shape: Shape) -> Advice:
    """The node reads all rows of a running result."""
    if shape.cls == Ordering():
        return Advice(
            "all of them are brought into an order, in which a new one may come between any two",
            "leave out the order where nobody asks for it, or sort what changed (`-> delta()`)",
        )
    return Advice(
        "any of its rows may have changed since the tick before",
        "do it on what changed (`-> delta()` or `-> changes()`), or aggregate the history itself",
    )


def of_single(single: str) -> Advice:
    """The node compares all rows with one that changes."""
    return Advice(
        f"`{single}` is one item that changes, and every row is brought together with it",
        f"compare what is new or changed alone (`-> delta()` or `-> changes()` before it), or take"
        f" `{single}` as it was in the tick before, or by key",
    )


def of_window(shape: Shape, args: Args) -> Advice:
    """The node reads all rows of a window."""
    cure = "a shorter window is cheaper; what counts and adds exact numbers moves with the window"
    if not shape.makes_aggregates or isinstance(shape.cls, RunningResult):
        called = _called(shape)
        why = f"`{called}` has no inverse: it cannot be told what it was without what leaves"
        return Advice(why, cure)
    functions = [a.function for _, a in args.get("aggregates", ())]
    stays = [f for f in functions if not moves(f, exact=True)]
    rounded = [f for f in functions if not moves(f, exact=False)]
    if stays:
        return Advice(why_not_moving(stays[0]), cure)
    if rounded:
        cure = "sum integers or decimals: these are exact, and what leaves can be taken out again"
        return Advice(why_not_moving(rounded[0]), cure)
    return Advice("its rows are counted anew", cure)


def of_history(shape: Shape, args: Args) -> Advice:  # noqa: C901, PLR0911 - a closed set of cases
    """The node reads all rows of a history."""
    match shape.cls:
        case KeyMatch(wanted=False, compares=compares):
            why = "rows leave when their first match comes, so the result does not only grow"
            if compares is MatchCondition.KEYS:
                return Advice(why, BOTH_WAYS)
            cure = "`-> delta()` after it gives what comes, if the negative side only grows"
            return Advice(why, cure)
        case Product(keeps=keeps) if keeps:
            why = "a padded row leaves when its first match comes, so the result does not only grow"
            return Advice(why, BOTH_WAYS)
        case ByKey(Summary.FOLD | Summary.REDUCTION):
            return _of_fold(args)
        case ByKey(Summary.AGGREGATES):
            return _of_aggregate(args)
        case TickDifference(signed=False):
            return Advice(
                "its input may lose items, so what is new cannot be told from the batch alone",
                "`-> changes()` also tells what goes, where the rules know it",
            )
        case FeedbackShape():
            return Advice(
                "it is a cycle inside a tick, which starts again in each tick",
                "let what the cycle reads be histories (`persist()`), joined and mapped, end in"
                " `unique()`, and lose nothing",
            )
        case Ordering():
            return Advice(
                "a new item may come between any two old ones",
                "sort what is new (`-> delta() -> sort()`), or take `latest`, `min_by` or `max_by`",
            )
        case OrderedByKey():
            return Advice(
                f"a new row moves others in `{_called(shape)}`, and their key is no column",
                "name the columns of a key, `by=…`, which `with_columns` may make before",
            )
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return _of_other(shape)
        case _:
            assert_never(shape.cls)


def _of_other(shape: Shape) -> Advice:
    if isinstance(shape.cls, AsOf) and not shape.cls.keyed:
        return Advice(
            "without a key each row of one side may be the nearest of each of the other",
            "name columns of a key, `on=…`: then rows of the keys that come are looked up",
        )
    if any(shape.linear):
        return Advice("its input is not a history that only grows", IN_SMALLER_PARTS)
    why = f"`{_called(shape)}` has no rule that carries its result from tick to tick"
    return Advice(why, IN_SMALLER_PARTS)


def _called(shape: Shape) -> str:
    return shape.plain if shape.op is None else shape.op.called


def _of_fold(args: Args) -> Advice:
    fn = args.get("f")
    if fn is not None and not fn.algebra.commutative:
        return Advice(
            "its function is not declared to be commutative, so the order of all items counts",
            "if the order does not matter, say `commutative=True`",
        )
    return Advice(
        "its function does not go on from a stored result of the same type",
        "let the start and every result have one type, the same as the output's",
    )


def _of_aggregate(args: Args) -> Advice:
    aggregates = args.get("aggregates", ())
    whole = [a.function for _, a in aggregates if not resumes(a.function)]
    if whole:
        cure = f"these go on from what is stored: {_STORED}; or take a `window(n)`"
        return Advice(why_no_parts(whole[0]), cure)
    by_type = any(splits_by_type(a.function) for _, a in aggregates)
    if merging(aggregates) is not None or not by_type:
        return Advice("its input is not a history that only grows", IN_SMALLER_PARTS)
    return Advice(
        "a mean of decimals of so many digits would be rounded twice",
        "take `sum` and `count`, or the mean of a number of at most 14 digits",
    )
