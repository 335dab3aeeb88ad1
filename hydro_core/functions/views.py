"""Functions of one item seen as functions of another: a filter of joined rows as one of a side.

A view builds the item that a function expects out of the item that there is; what it cannot know is
missing. A function that touches nothing missing may be asked earlier, if asking cannot fail: it
would see items that the program never shows it, those without a partner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from hydro_core.functions.allowed import visible
from hydro_core.functions.evaluate import call_item
from hydro_core.functions.fields import made_field
from hydro_core.functions.fn import Fn
from hydro_core.functions.fold import nodes
from hydro_core.functions.from_tree import function_of, is_complete
from hydro_core.functions.tree import Bind, Const, Expr, IfElse, Make, Op, Param, Part, Spread
from hydro_core.types.item import ItemType, Row, Tuple
from hydro_core.types.values import RowItem, Struct

ITEM = "x"
MISSING = Op("?missing", ())


@dataclass(frozen=True, slots=True)
class View:
    """How to build an item out of another: itself, a field of it, null, or a tuple or row of such
    parts.
    """

    path: tuple[int | str, ...] = ()
    """The way to a field: one step in each item on it."""
    parts: tuple[View, ...] = ()
    names: tuple[str, ...] = ()
    missing: bool = False
    whole: bool = False

    def __str__(self) -> str:
        if self.whole:
            return ITEM
        if self.missing:
            return "missing"
        if self.path:
            return "".join((ITEM, *(f"[{step!r}]" for step in self.path)))
        if self.names:
            named = zip(self.names, self.parts, strict=True)
            return f"{{{', '.join(f'{name!r}: {part}' for name, part in named)}}}"
        return f"({', '.join(map(str, self.parts))},)"

    def __call__(self, item: Any) -> Any:
        """The item that is built."""
        if self.whole:
            return item
        if self.missing:
            return None
        if self.path:
            for step in self.path:
                item = None if item is None else item[step]
            return item
        made = [part(item) for part in self.parts]
        return RowItem(zip(self.names, made, strict=True)) if self.names else Struct(made)

    def tree(self) -> Expr:
        """The same as an expression of the parameter `x`."""
        if self.whole:
            return Param(ITEM)
        if self.missing:
            return MISSING
        if self.path:
            found: Expr = Param(ITEM)
            for step in self.path:
                found = field_of(found, step)
            return found
        made = tuple(part.tree() for part in self.parts)
        return Make("row" if self.names else "tuple", made, self.names)


NO_VIEW = View(missing=True)


@dataclass(frozen=True, slots=True)
class ViewedCall:
    """The call of a function on what a view makes of an item."""

    fn: Fn
    view: View

    def __call__(self, item: Any) -> Any:
        """The function's result."""
        return call_item(self.fn, self.view(item))


def field_of(item: Expr, step: int | str) -> Expr:
    """A field of an item, null of a null item."""
    # a function may read a column of any name by an index, but not by an attribute
    named = isinstance(step, str) and step.isidentifier() and visible(step)
    there = Part(item, step, named)
    return IfElse(Op("is", (item, Const(None))), Const(None), there)


def row_view(row: Row, known: Mapping[str, str]) -> View:
    """A row of that type, its columns from the columns that `known` names."""
    parts = tuple(View(path=(known[f.name],)) if f.name in known else NO_VIEW for f in row.fields)
    return View(parts=parts, names=row.names)


def through(fn: Fn, view: View, item: ItemType) -> Fn | None:
    """The function on what there is before the view, items of type `item`; None if it needs more,
    or cannot be read.
    """
    tree = seen(fn, view)
    if tree is None or touches_missing(tree):
        return None
    if is_complete(tree) and not _makes_rows(tree, view):
        return replace(function_of(tree, (ITEM,), like=fn), name=fn.name, over=(item,))
    # the text of the function says what it is, and the view what it is applied to
    source = f"{fn.source}\nof {view}"
    called = ViewedCall(fn, view)
    return replace(
        fn, source=source, params=(ITEM,), call=called, tree=tree, over=(item,), pure=False
    )


def applied(fn: Fn, view: View, item: ItemType) -> Fn:
    """The function on what there is before the view, which has all that it may ask for."""
    found = through(fn, view, item)
    if found is not None:
        return replace(found, over=())
    source = f"{fn.source}\nof {view}"
    return replace(
        fn, source=source, params=(ITEM,), call=ViewedCall(fn, view), tree=None, pure=False
    )


def _makes_rows(tree: Expr, view: View) -> bool:
    """Whether the expression takes a row whole that the view makes: it is no row that it writes."""
    made = [part.tree() for part in _rows_of(view)]
    return bool(made) and any(part in made for part in nodes(tree))


def _rows_of(view: View) -> Iterator[View]:
    if view.names:
        yield view
    for part in view.parts:
        yield from _rows_of(part)


def seen(fn: Fn, view: View) -> Expr | None:
    """The function's expression over the parameter `x`, which the view is built from."""
    if fn.tree is None:
        return None
    whole = view.tree()
    bound: Mapping[str, Expr] = {fn.params[0]: whole}
    if len(fn.params) > 1:
        made = whole.fields if isinstance(whole, Make) else None
        parts = () if made is None else tuple(made.values())
        if len(parts) != len(fn.params):
            return None
        bound = dict(zip(fn.params, parts, strict=True))
    return substituted(fn.tree, bound)


def substituted(tree: Expr, bound: Mapping[str, Expr]) -> Expr:
    """The expression with parameters replaced; fields of what is made on the spot are taken."""
    match tree:
        case Param(name):
            return bound.get(name, tree)
        case Bind(names=names, value=value):
            inner: Bind = _inside(tree, {n: e for n, e in bound.items() if n not in names})
            return replace(inner, value=substituted(value, bound))
        case _:
            return _taken(_inside(tree, bound))


def touches_missing(tree: Expr) -> bool:
    """Whether something missing is asked for."""
    return any(part == MISSING for part in nodes(tree))


def _inside(tree: Any, bound: Mapping[str, Expr]) -> Any:
    """The expression with its parts replaced."""
    changes = {}
    for f in (f for f in fields(tree) if f.compare):
        value = getattr(tree, f.name)
        changed = _part(value, bound)
        if changed is not value:
            changes[f.name] = changed
    return replace(tree, **changes) if changes else tree


def _part(value: Any, bound: Mapping[str, Expr]) -> Any:
    if isinstance(value, tuple):
        return tuple(_part(v, bound) for v in value)
    if isinstance(value, Spread):
        return Spread(substituted(value.value, bound))
    if is_dataclass(value) and not isinstance(value, type):
        return substituted(value, bound)  # type: ignore[arg-type]
    return value


def _taken(tree: Expr) -> Expr:
    """A field of a tuple or row that is made on the spot is what it is made of."""
    found: Expr
    match tree:
        case Part():
            found = made_field(tree) or tree
            return found
        case Op("is" | "is not" as op, (Make("tuple" | "row"), Const(None))):
            return Const(op == "is not")
        case IfElse(Const(bool() as test), then, otherwise):
            return then if test else otherwise
        case _:
            return tree


def side_view(
    joined: ItemType, side: ItemType, on: tuple[str, ...] | None, left: bool
) -> View | None:
    """The item of a join out of that of one side; None where their keys have other types."""
    if on is None:
        match joined, side:
            case Tuple((key, _)), Tuple((own, _)) if key == own:
                value, other = View(path=(1,)), NO_VIEW
                pair = (value, other) if left else (other, value)
                return View(parts=(View(path=(0,)), View(parts=pair)))
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
