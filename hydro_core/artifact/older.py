"""Types and nodes of trees as deployments have them that were written before format 7.

A name with a value, a loop and a function had a node each then; before format 6, tuples, rows and
lists, and before format 5, each kind of operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hydro_core.functions.kinds import Place
from hydro_core.functions.reading.expressions import part_of
from hydro_core.functions.tree import (
    Bind,
    BindKind,
    Const,
    Expr,
    Make,
    Op,
    Part,
    Spread,
    function_node,
)
from hydro_core.functions.views import MISSING, at_path
from hydro_core.types import item as items
from hydro_core.types.ddl import parse_stored
from hydro_core.types.item import ItemType

Keywords = tuple[tuple[str, Expr], ...]


def type_of(record: Any, types: Sequence[ItemType]) -> ItemType:
    """A type, given those that were read before it."""
    match record:
        case str():
            return parse_stored(record)
        # So it was up to format 3, which did not say of columns that they are `not null`.
        case {"decimal": [precision, scale]}:
            return items.Decimal(precision, scale)
        case {"tuple": parts}:
            return items.Tuple(tuple(types[i] for i in parts))
        case {"row": columns}:
            return items.Row(tuple(items.Field(name, types[i]) for name, i in columns))
        case _:
            return items.Array(types[record["array"]])


def view_of(record: Sequence[Any]) -> Expr:
    """What a view makes, which was no tree."""
    path, parts, names, missing, _ = record
    if missing:
        return MISSING
    made = tuple(map(view_of, parts))
    return Make("row" if names else "tuple", made, tuple(names)) if made else at_path(path)


def _row(parts: tuple[tuple[str, Expr] | Spread, ...], place: Place) -> Make:
    names = tuple(None if isinstance(p, Spread) else p[0] for p in parts)
    made = tuple(p if isinstance(p, Spread) else p[1] for p in parts)
    return Make("row", made, names, place)


def _slice(base: Expr, *bounds: Expr | None, place: Place) -> Op:
    given = {letter: b for letter, b in zip("lhs", bounds, strict=True) if b is not None}
    step = ":s" if "s" in given else ""
    name = f"[{'l' if 'l' in given else ''}:{'h' if 'h' in given else ''}{step}]"
    return Op(name, (base, *given.values()), place=place)


def _compare(first: Expr, rest: tuple[tuple[str, Expr], ...], place: Place) -> Op:
    return Op(",".join(op for op, _ in rest), (first, *(right for _, right in rest)), place=place)


def _text(parts: tuple[str | tuple[Expr, str, str], ...], place: Place) -> Op:
    made = (
        Const(p) if isinstance(p, str) else Op("{}", (p[0], Const(p[1]), Const(p[2])))
        for p in parts
    )
    return Op("f-string", tuple(made), place=place)


def _unary(op: str, operand: Expr, place: Place) -> Op:
    return Op(op if op == "not" else f"{op}x", (operand,), place=place)


def _method(base: Expr, name: str, args: tuple[Expr, ...], keywords: Keywords, place: Place) -> Op:
    return Op(f".{name}", (base, *args), keywords, place)


def _loop(
    kind: BindKind,
    element: Expr,
    targets: tuple[str, ...],
    source: Expr,
    conditions: tuple[Expr, ...],
    place: Place,
) -> Bind:
    return Bind(kind, targets, source, element, conditions, place)


NODES: Mapping[str, Callable[..., Expr]] = {
    "Attribute": lambda base, name, place: Part(base, name, True, place),
    "Index": part_of,
    "Slice": _slice,
    "Unary": _unary,
    "Binary": lambda op, left, right, place: Op(op, (left, right), place=place),
    "Compare": _compare,
    "BoolOp": Op,
    "Call": Op,
    "Method": _method,
    "Opaque": lambda name, args, keywords, place: Op(f"?{name}", args, keywords, place),
    "FString": _text,
    "MakeTuple": lambda parts, place: Make("tuple", parts, place=place),
    "MakeList": lambda parts, kind, place: Make(kind, parts, place=place),
    "MakeRow": _row,
    "Let": lambda name, value, body, place: Bind("let", (name,), value, body, place=place),
    "Comprehension": _loop,
    "Inner": function_node,
}
"""What makes the node of today of such a one, given its parts in their order, and its place."""
