"""Functions of one item seen as functions of another: a filter of joined rows as one of a side.

A view is an expression that builds the item that a function expects from the item that is
available. It is that item itself, a field of it, or a tuple or row of such; unknown parts are
missing. A function that touches no missing part may be evaluated earlier if it cannot fail: it
would see items that the program never shows it, those without a partner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from hydro_core.functions.allowed import visible
from hydro_core.functions.call import call_item
from hydro_core.functions.from_tree import TreeCall, function_of, is_complete
from hydro_core.functions.tree import (
    Const,
    Expr,
    Fn,
    IfElse,
    Make,
    Op,
    Param,
    Part,
    children,
    mentions,
    nodes,
    step_in,
    substituted,
)
from hydro_core.types.item import ItemType, Row, Tuple
from hydro_core.types.values import RowItem, Struct

ITEM = "x"
MISSING = Param("missing")


@dataclass(frozen=True, slots=True)
class ViewedCall:
    """The call of a function on the result of a view of an item."""

    fn: Fn
    view: Expr
    made: TreeCall = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "made", TreeCall(self.view, (ITEM, MISSING.name)))

    def __call__(self, item: Any) -> Any:
        return call_item(self.fn, _as_item(self.made(item, None)))


def _as_item(made: Any) -> Any:
    """The result of a view as an item."""
    if type(made) is tuple:
        return Struct(map(_as_item, made))
    if type(made) is dict:
        return RowItem((name, _as_item(value)) for name, value in made.items())
    return made


def field_of(item: Expr, step: int | str) -> Expr:
    """A field of an item, null of a null item."""
    # A function may read a column of any name by an index, but not by an attribute.
    named = isinstance(step, str) and step.isidentifier() and visible(step)
    there = Part(item, step, named)
    return IfElse(Op("is", (item, Const(None))), Const(None), there)


def at_path(path: Iterable[int | str]) -> Expr:
    """The value at the end of a path into the item."""
    whole: Expr = Param(ITEM)
    return reduce(field_of, path, whole)


def row_view(row: Row, known: Mapping[str, str]) -> Make:
    """A row of that type, its columns from the columns that `known` names."""
    parts = (at_path([known[n]]) if n in known else MISSING for n in row.names)
    return Make("row", tuple(parts), row.names)


def _shown(view: Expr) -> str:
    """The text that identifies functions of views."""
    match view:
        case Param(name):
            return name
        case IfElse(_, _, Part(base, step)):
            return f"{_shown(base)}[{step!r}]"
        case Make("row", names=names):
            named = zip(names, children(view), strict=True)
            return f"{{{', '.join(f'{name!r}: {_shown(part)}' for name, part in named)}}}"
        case _:
            return f"({', '.join(map(_shown, children(view)))},)"


def through(fn: Fn, view: Expr, item: ItemType) -> Fn | None:
    """The function of the item before the view, of type `item`; None if it needs missing parts, or
    cannot be read.
    """
    tree = seen(fn, view)
    if tree is None or touches_missing(tree):
        return None
    if is_complete(tree) and not _makes_rows(tree, view):
        return replace(function_of(tree, (ITEM,), like=fn), name=fn.name, over=(item,))
    # The text of the function is its identity, together with the view.
    source = f"{fn.source}\nof {_shown(view)}"
    called = ViewedCall(fn, view)
    return replace(
        fn, source=source, params=(ITEM,), call=called, tree=tree, over=(item,), pure=False
    )


def applied(fn: Fn, view: Expr, item: ItemType) -> Fn:
    """The function of the item before the view, which has all parts that it reads."""
    found = through(fn, view, item)
    if found is not None:
        return replace(found, over=())
    source = f"{fn.source}\nof {_shown(view)}"
    return replace(
        fn, source=source, params=(ITEM,), call=ViewedCall(fn, view), tree=None, pure=False
    )


def _makes_rows(tree: Expr, view: Expr) -> bool:
    """True if the expression uses a whole row that the view builds: its text has no such row."""
    made = [part for part in nodes(view) if isinstance(part, Make) and part.kind == "row"]
    return bool(made) and any(part in made for part in nodes(tree))


def seen(fn: Fn, view: Expr) -> Expr | None:
    """The function's expression over the parameter `x`, which the view is built from."""
    if fn.tree is None:
        return None
    bound: Mapping[str, Expr] = {fn.params[0]: view}
    if len(fn.params) > 1:
        made = view.fields if isinstance(view, Make) else None
        parts = () if made is None else tuple(made.values())
        if len(parts) != len(fn.params):
            return None
        bound = dict(zip(fn.params, parts, strict=True))
    return substituted(fn.tree, bound, _taken)


def touches_missing(tree: Expr) -> bool:
    return mentions(tree, MISSING.name)


def _taken(tree: Expr) -> Expr:
    """The field of a tuple or row that the expression builds is the part itself."""
    match tree:
        case Part(Make("tuple" | "row" as kind) as made) if made.fields is not None:
            return made.fields.get(step_in(kind, tree), tree)
        case Op("is" | "is not" as op, (Make("tuple" | "row"), Const(None))):
            return Const(op == "is not")
        case IfElse(Const(bool() as test), then, otherwise):
            return then if test else otherwise
        case _:
            return tree


def side_view(
    joined: ItemType, side: ItemType, on: tuple[str, ...] | None, left: bool
) -> Expr | None:
    """The item of a join, built from that of one side; None if their keys have different types."""
    if on is None:
        match joined, side:
            case Tuple((key, _)), Tuple((own, _)) if key == own:
                pair = (at_path([1]), MISSING)
                values = Make("tuple", pair if left else pair[::-1])
                return Make("tuple", (at_path([0]), values))
            case _:
                return None
    if not isinstance(joined, Row) or not isinstance(side, Row):
        return None
    if any(joined.column(k) != side.column(k) for k in on):
        return None
    mine = [n for n in side.names if n not in on]
    rest = [n for n in joined.names if n not in on]
    taken = rest[: len(mine)] if left else rest[len(rest) - len(mine) :]
    return row_view(joined, dict(zip(taken, mine, strict=True)) | {k: k for k in on})
