"""Folds that Spark has aggregates for: sums, counts, minima, maxima, and tuples or rows of them.

Such a function makes each part of its accumulator from that part and a value of the item: `acc + v`
or `max(acc, v)`. Only integers are summed, and only integers and texts compared: of these Spark and
Python say exactly the same, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal

from pyspark.sql import Column
from pyspark.sql import functions as F

from hydro_core.functions.fn import Fn
from hydro_core.functions.tree import (
    Attribute,
    Binary,
    Call,
    Const,
    Expr,
    Index,
    MakeRow,
    MakeTuple,
    Param,
)
from hydro_core.spark.columns import NotCompilable, to_column
from hydro_core.spark.lower.failure import fail
from hydro_core.spark.lower.items import at, convert, make_row, make_tuple
from hydro_core.spark.lower.partial import Partial, Running, counted, exact_sum
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import STRING, ItemType, Row, Tuple, is_integer

Op = Literal["+", "max", "min", "keep"]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the accumulator, and how a value, an expression of the item, is added to it."""

    op: Op
    type: ItemType
    value: Expr | None = None


def native_fold(
    step: Step, start: Column, acc: ItemType, wrapped: Column, item: ItemType
) -> Running | None:
    """The fold of the values `wrapped.x` of a group from `start`, if it is native."""
    fn = step.arg("f")
    parts = _parts(fn, acc)
    if parts is None:
        return None
    try:
        values = [_value(fn, part, wrapped, item, step) for part in parts]
    except NotCompilable:
        return None
    starts = _split(start, acc)

    def final(found: Sequence[Column]) -> Column:
        count, *rest = found
        totals, counts = rest[: len(parts)], rest[len(parts) :]
        added = [_added(p, s, t) for p, s, t in zip(parts, starts, totals, strict=True)]
        missing = [
            s.isNull() | (n < count)
            for p, s, n in zip(parts, starts, counts, strict=True)
            if p.op != "keep"
        ]
        return F.when(count == 0, start).otherwise(_checked(step, missing, _joined(added, acc)))

    return Running(_partials(parts, values, wrapped), final)


def native_reduction(step: Step, acc: ItemType, wrapped: Column, item: ItemType) -> Running | None:
    """The reduction of the values `wrapped.x` of a group, if it is native; null of none."""
    fn = step.arg("f")
    parts = _parts(fn, acc)
    if parts is None or not all(_is_same_part(p, i, fn, acc) for i, p in enumerate(parts)):
        return None
    values = _split(convert(wrapped.getField("x"), item, acc), acc)

    def final(found: Sequence[Column]) -> Column:
        one, count, *rest = found
        first = convert(one.getField("x"), item, acc)
        totals, counts = rest[: len(parts)], rest[len(parts) :]
        made = [_total(p, o, t) for p, o, t in zip(parts, _split(first, acc), totals, strict=True)]
        missing = [n < count for p, n in zip(parts, counts, strict=True) if p.op != "keep"]
        return F.when(count < 2, first).otherwise(_checked(step, missing, _joined(made, acc)))

    some = Partial(_first(wrapped), _first)
    return Running((some, *_partials(parts, values, wrapped)), final)


def _first(column: Column) -> Column:
    return F.first(column, ignorenulls=True)


def _partials(parts: list[Part], values: list[Column], wrapped: Column) -> tuple[Partial, ...]:
    """How many values there are, the total of each part, and how many of each are not null."""
    totals = [_OF_ROWS[p.op](v) for p, v in zip(parts, values, strict=True)]
    return (counted(wrapped.isNotNull()), *totals, *(counted(v.isNotNull()) for v in values))


def _parts(fn: Fn, acc: ItemType) -> list[Part] | None:
    """How each part of the accumulator is made; None where that is not known to be native."""
    tree, name = fn.tree, fn.params[0]
    match acc, tree:
        case Tuple(types), MakeTuple(parts) if len(parts) == len(types):
            found = [_part(part, _at(name, i, None), types[i]) for i, part in enumerate(parts)]
        case Row(columns), MakeRow(parts) if [p[0] for p in _named(parts)] == [
            c.name for c in columns
        ]:
            found = [
                _part(part, _at(name, None, column.name), column.type)
                for (_, part), column in zip(_named(parts), columns, strict=True)
            ]
        case ((Tuple() | Row()), _):
            return None
        case _:
            found = [] if tree is None else [_part(tree, [Param(name)], acc)]
    kept = [part for part in found if part is not None]
    return kept if found and len(kept) == len(found) else None


def _named(parts: tuple[Any, ...]) -> list[tuple[str, Expr]]:
    return [part for part in parts if isinstance(part, tuple)]


def _at(name: str, position: int | None, column: str | None) -> list[Expr]:
    """The ways of writing a part of the accumulator."""
    base = Param(name)
    if column is not None:
        return [Attribute(base, column), Index(base, Const(column))]
    return [Index(base, Const(position)), Attribute(base, f"_{(position or 0) + 1}")]


def _part(expr: Any, own: list[Expr], of: ItemType) -> Part | None:
    """An expression as `own + value` and the like; places in the text do not count."""
    if expr in own:
        return Part("keep", of)
    operands: tuple[Any, ...] = ()
    op: Op = "+"
    match expr:
        case Binary(op="+", left=left, right=right) if is_integer(of):
            operands = (left, right)
        case Call(name="max" | "min" as name, args=(left, right), keywords=()) if (
            is_integer(of) or of == STRING
        ):
            operands, op = (left, right), "max" if name == "max" else "min"
    for mine, other in (operands, operands[::-1]) if operands else ():
        if mine in own and not _names(own) & _names([other]):
            return Part(op, of, other)
    return None


def _names(exprs: list[Any]) -> set[str]:
    """The names that expressions mention."""
    return {e.name for expr in exprs for e in _walk(expr) if isinstance(e, Param)}


def _walk(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for each in value:
            yield from _walk(each)
    elif is_dataclass(value):
        yield value
        for field in fields(value):
            yield from _walk(getattr(value, field.name))


def _is_same_part(part: Part, position: int, fn: Fn, acc: ItemType) -> bool:
    """Whether a reduction takes the very same part of both of its items."""
    if part.op == "keep":
        return fn.algebra.commutative
    name = fn.params[1]
    match acc:
        case Tuple():
            return part.value in _at(name, position, None)
        case Row(columns):
            return part.value in _at(name, None, columns[position].name)
        case _:
            return part.value == Param(name)


def _value(fn: Fn, part: Part, wrapped: Column, item: ItemType, step: Step) -> Column:
    """What of an item is added to a part; null for the rows of a group that are no values."""
    if part.value is None:
        return F.lit(None)
    of_item = replace(fn, tree=part.value, params=fn.params[1:], returns=None)
    x = wrapped.getField("x")
    column = to_column(of_item, ((x, item),), result=part.type, tick=step.tick)
    return F.when(wrapped.isNotNull(), column)


def _split(column: Column, acc: ItemType) -> list[Column]:
    if isinstance(acc, Tuple | Row):
        return [at(column, acc, i) for i in range(len(acc.fields))]
    return [column]


def _joined(parts: list[Column], acc: ItemType) -> Column:
    match acc:
        case Tuple():
            return make_tuple(*parts)
        case Row():
            return make_row(zip(acc.names, parts, strict=True))
        case _:
            return parts[0]


_OF_ROWS: Mapping[str, Callable[[Column], Partial]] = {
    # Only the result of a sum must have 64 bits.
    "+": lambda value: exact_sum(value.cast("decimal(20,0)")),
    "max": lambda value: Partial(F.max(value), F.max),
    "min": lambda value: Partial(F.min(value), F.min),
    "keep": lambda value: counted(value.isNotNull()),
}


def _added(part: Part, start: Column, total: Column) -> Column:
    match part.op:
        case "+":
            whole = start.cast("decimal(20,0)") + F.coalesce(total, F.lit(0))
            return whole.cast(str(part.type))
        case "max":
            return F.greatest(start, total)
        case "min":
            return F.least(start, total)
        case "keep":
            return start


def _total(part: Part, one: Column, total: Column) -> Column:
    match part.op:
        case "+":
            return total.cast(str(part.type))
        case "keep":
            return one
        case _:
            return total


def _checked(step: Step, missing: list[Column], whole: Column) -> Column:
    """The result, unless a null was to be added or compared: that fails in Python."""
    if not missing:
        return whole
    condition = missing[0]
    for more in missing[1:]:
        condition = condition | more
    fn = step.arg("f")
    wrong = fail(step.node, f"TypeError: {fn.name} met a None", fn=fn, tick=step.tick)
    return F.when(condition, wrong).otherwise(whole)
