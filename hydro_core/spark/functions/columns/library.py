"""Entries of the library as columns: their expressions, given what they take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Any

from hydro_core.functions.kinds import TIMEDELTA, ExprType
from hydro_core.functions.library.entry import Expression, Operation, Parameter
from hydro_core.functions.library.registry import members_of
from hydro_core.functions.tree import Expr, Op
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.columns import integers, loops, numbers, structs
from hydro_core.spark.functions.columns.value import (
    ColumnScope,
    ColumnValue,
    NotCompilable,
    computed,
    strict,
)
from hydro_core.types.item import LONG, STRING, Array, ItemType, Tuple

_TIMES_READ = 3
"""How often an expression reads what it is given, about."""


def member_of(base: ColumnValue, name: str) -> Operation | None:
    """The entry of a method or property, None where values of that type have none."""
    if base.mixed or not isinstance(base.type, ItemType):
        return None
    return members_of(base.type).get(name)


def property_of(scope: ColumnScope, base: ColumnValue, name: str) -> ColumnValue:
    entry = member_of(base, name)
    if entry is None or entry.takes is not None or entry.column is None:
        raise NotCompilable(f"`.{name}` of {base.type}")
    assert not callable(entry.gives)
    return _computed(entry.gives, entry.column(F, _plain(scope, base).column), (base,))


def method_of(scope: ColumnScope, base: ColumnValue, node: Op) -> ColumnValue:
    name = node.name[1:]
    entry = member_of(base, name)
    if entry is None or entry.column is None or node.keywords:
        raise NotCompilable(f"`.{name}` of {base.type}")
    subject = _plain(scope, base)
    given, of = _arguments(scope, entry.takes or (), name, node.args[1:], _plain)
    found = _found(entry.column, [subject.column, *given], name)
    return _computed(node.type, found, (subject, *of), may_fail=entry.may_fail)


def call_of(scope: ColumnScope, entry: Operation, node: Op) -> ColumnValue:
    if entry.column is None or node.keywords:
        raise NotCompilable(f"`{node.name}` has no column")
    plain = _known if entry.nulls == "strict" else _plain
    given, of = _arguments(scope, entry.takes or (), node.name, node.args, plain)
    found = _found(entry.column, given, node.name)
    if entry.nulls == "strict":
        return _strict(scope, entry, node.type, found, of)
    return _computed(node.type, found, tuple(of), may_fail=entry.may_fail)


def _strict(
    scope: ColumnScope, entry: Operation, gives: ExprType, found: Any, of: list[ColumnValue]
) -> ColumnValue:
    """What a strict function gives: null where it is given one.

    An expression that says in a second column where it knows the result may give null there.
    """
    if not isinstance(gives, ItemType):
        raise NotCompilable(f"{gives} is no item")
    column, known = found if isinstance(found, tuple) else (found, None)
    column = column.cast(spark_type(gives))
    nulls = [value.column.isNull() for value in of if value.nullable]
    if known is not None:
        column = F.when(known, column).otherwise(scope.ask())
    elif entry.may_fail and nulls:
        column = F.coalesce(column, scope.ask())
    if nulls:
        column = F.when(reduce(or_, nulls), F.lit(None)).otherwise(column)
    nullable = bool(nulls) or known is not None
    return computed(
        column,
        gives,
        *of * _TIMES_READ,
        safe=known is None and not (entry.may_fail and nulls),
        nullable=nullable,
        doubtful=entry.may_fail and not nullable,
    )


def _found(expression: Expression, given: Sequence[Any], name: str) -> Any:
    least, most = _takes(expression)
    found = expression(F, *given) if least <= len(given) <= most else None
    if found is None:
        raise NotCompilable(f"`{name}` with such arguments")
    return found


@lru_cache(maxsize=512)
def _takes(expression: Expression) -> tuple[int, int]:
    _, *parameters = inspect.signature(expression).parameters.values()
    return sum(p.default is p.empty for p in parameters), len(parameters)


def _arguments(
    scope: ColumnScope,
    takes: Sequence[Parameter],
    name: str,
    args: Sequence[Expr],
    plain: Callable[[ColumnScope, ColumnValue], ColumnValue],
) -> tuple[list[Any], list[ColumnValue]]:
    if len(args) > len(takes):
        raise NotCompilable(f"`{name}` of {len(args)} arguments")
    given: list[Any] = []
    of: list[ColumnValue] = []
    for parameter, argument in zip(takes, args, strict=False):
        if parameter.given_as == "strings":
            value = loops.array_of(scope, argument)
            if value.type != Array(STRING):
                raise NotCompilable(f"`{name}` of {value.type}")
            given.append(value.column)
            of.append(value)
            continue
        value = scope.compile(argument)
        if parameter.given_as == "constant":
            if value.constant is None:
                raise NotCompilable(f"`{name}` with a computed argument")
            given.append(value.constant[0])
            continue
        fits = isinstance(value.type, ItemType) and parameter.fits(value.type)
        if not fits or numbers.is_decimal(value):
            raise NotCompilable(f"`{name}` of {value.type}")
        several = value.parts if value.parts is not None else (value,)
        parts = [plain(scope, part) for part in several]
        columns = [part.column for part in parts]
        given.append(columns if parameter.given_as == "columns" else columns[0])
        of += parts
    return given, of


def _plain(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """The value, which is not None: a number as a long or a double."""
    return scope.need(_known(scope, value))


def _known(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """The value, which may be None: a number as a long or a double."""
    if value.mixed:
        raise NotCompilable("an int for some items and a float for others is looked into")
    if numbers.is_float(value):
        value = numbers.as_double(value)
    elif integers.is_int(value):
        value = integers.as_long(value)
    return scope.sure(value)


def _computed(
    gives: ExprType, found: Any, of: tuple[ColumnValue, ...], *, may_fail: bool = False
) -> ColumnValue:
    if isinstance(gives, Tuple):
        parts = zip(gives.fields, found, strict=True)
        return structs.make_tuple([_computed(f, c, of, may_fail=may_fail) for f, c in parts])
    column = found.cast("long") if gives in (LONG, TIMEDELTA) else found
    if not isinstance(gives, ItemType):
        raise NotCompilable(f"{gives} is no item")
    return strict(column, gives, *of * _TIMES_READ, doubtful=may_fail)
