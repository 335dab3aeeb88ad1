"""Calls of functions on items: compilation, evaluation, and the reason of a failure."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hydro_core.functions.allowed import BUILTINS
from hydro_core.functions.from_tree import (
    ATTRIBUTE,
    FORMATTED,
    LateCall,
    bounded,
    called,
    copied,
    evaluated,
)
from hydro_core.functions.reading.check import check_expression
from hydro_core.functions.result_type import result_type
from hydro_core.functions.tree import Fn
from hydro_core.types.item import UNKNOWN, FieldPath, ItemType, at
from hydro_core.types.json import to_json
from hydro_core.types.routing import shard_of
from hydro_core.types.values import (
    RowItem,
    Struct,
    ValueProblem,
    conform,
    describe,
    is_changeable,
    to_item,
)

# Reasons of a failed call of a function, with help; the words are the same in every engine.


_SHOWN = 200

_OWN = "handle such an item in the function, or drop it before: `-> filter(lambda …)`"
_CURES = {
    "ZeroDivisionError": "test the divisor first: `a / b if b else None`",
    "KeyError": "ask with `d.get(key)`, which gives None, or test `key in d` first",
    "IndexError": "test the length first: `x[0] if len(x) > 0 else None`",
    "DivisionByZero": "test the divisor first: `a / b if b else None`",
    "DivisionUndefined": "test the divisor first: `a / b if b else None`",
    "MemoryError": "let the function make less of one item: shorter texts, shorter lists",
    "RecursionError": "let the function call itself less deep, or make it a loop",
}
_OF_NONE = "test for None first, `None if v is None else …`, or drop such items before"
_OF_TYPES = "convert what does not fit, with `int(…)`, `float(…)` or `str(…)`; `hydrotick check` "
_OF_DATES = "bound what is added to a date, or drop such items before: a year has four digits"
_OF_SIZE = "take `float(…)` or `Decimal(…)` where numbers grow beyond 64 bits"
_OF_VALUES = "test the value first: `… if … else None`; or drop such items before"


def kind_of(problem: Exception) -> str:
    """The name of Python's exception; empty for an error of the language alone."""
    return "" if isinstance(problem, ValueProblem) else type(problem).__name__


def shown(item: Any) -> str:
    """An item as a message shows it: as the command line prints it, shortened if it is long."""
    return shortened(json.dumps(to_json(item), ensure_ascii=False, default=str))


def shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def why(kind: str, reason: str) -> str:
    """An exception in a line.

    >>> why("KeyError", "'x'")
    "KeyError: 'x'"
    """
    return ": ".join(filter(None, (kind, reason)))


def cure(kind: str, reason: str) -> str:
    """The help for a function that fails with this exception.

    >>> cure("ZeroDivisionError", "division by zero")
    'test the divisor first: `a / b if b else None`'
    """
    if kind == "OverflowError" and re.search("date|timestamp|days|year", reason):
        return _OF_DATES
    if "characters or elements" in reason:
        return _CURES["MemoryError"]
    if "64 bits" in reason or kind == "OverflowError":
        return _OF_SIZE
    if kind in ("TypeError", "AttributeError"):
        return _OF_NONE if "None" in reason else f"{_OF_TYPES}says which type each field has"
    if kind == "ValueError" or "ConversionSyntax" in reason:
        return _OF_VALUES
    return _CURES.get(kind, _OWN)


# Calls of a text program's lambda: it is compiled on its first call.
#
# The compiled tree is the syntax tree that has passed the check, never a text of it. It is checked
# again before compilation, which may happen in another process. The function reads its parameters,
# the pure builtins and the caller's bindings. No import can be reached from it: functions of this
# package read attributes and format f-strings. The object can be pickled: it has its syntax, not
# its code.


class TextCall(LateCall):
    """A callable that compiles the checked expression."""

    __slots__ = ("_bindings", "_node")

    def __init__(self, node: ast.expr, bindings: Mapping[str, Any]) -> None:
        self._node = node
        self._bindings = {name: bindings[name] for name in sorted(_names(node) & set(bindings))}

    def _make(self) -> Callable[..., Any]:
        made: Callable[..., Any] = compiled(self._node, self._bindings)
        return made

    def __reduce__(self) -> tuple[type, tuple[ast.expr, dict[str, Any]]]:
        return TextCall, (self._node, self._bindings)


def compiled(node: ast.expr, bindings: Mapping[str, Any]) -> Any:
    """The Python value of an expression that passes the check; a lambda is compiled, not called."""
    check_expression(node, bindings)
    return evaluated(_GuardTransformer().visit(copied(node)), {**BUILTINS, **bindings})


class _GuardTransformer(ast.NodeTransformer):
    """Replaces reads of attributes, formats of f-strings and large results by calls of guards."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        return called(ast.Name(ATTRIBUTE, ast.Load()), node.value, ast.Constant(node.attr))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return ast.copy_location(bounded(node), node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        self.generic_visit(node)
        spec = node.format_spec or ast.Constant("")
        conversion = ast.Constant("" if node.conversion < 0 else chr(node.conversion))
        text = called(ast.Name(FORMATTED, ast.Load()), node.value, conversion, spec)
        return ast.FormattedValue(text, -1, None)


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


# Calls of functions on items.
#
# A function of several parameters gets the fields of the tuple or row in their order; in a fold the
# accumulator comes first, then the item or its fields. The result is converted to an item: an
# integer beyond 64 bits, or a value that is no item, is a `ValueProblem`. Items may be routed to
# shards by the result of such a call.


FAILURES = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, ValueProblem)
"""Exceptions that a function may raise on an item; the router then sends the item to the first
shard.
"""


def call_item(fn: Fn, item: Any) -> Any:
    """`fn(item)`, or `fn` of the item's fields where it has several parameters."""
    return to_item(fn.call(*_own(fn, _spread(item, len(fn.params)))))


def call_accumulate(fn: Fn, acc: Any, item: Any) -> Any:
    """`fn(acc, item)`, or `fn` of the accumulator and the item's fields, by its parameters."""
    return to_item(fn.call(*_own(fn, (acc, *_spread(item, len(fn.params) - 1)))))


def call_pair(fn: Fn, a: Any, b: Any) -> Any:
    """`fn(a, b)` of two whole items."""
    return to_item(fn.call(*_own(fn, (a, b))))


def _spread(item: Any, parameters: int) -> tuple[Any, ...]:
    if parameters == 1:
        return (item,)
    match item:
        case tuple() if len(item) == parameters:
            return item
        case dict() if len(item) == parameters:
            return tuple(dict.values(item))
        case tuple() | dict():
            problem = f"the item has {len(item)} fields, the function {parameters} parameters"
            raise ValueProblem(problem)
        case _:
            raise ValueProblem(f"{describe(item)} has no fields for {parameters} parameters")


def _own(fn: Fn, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    # A Python function may change the arrays that it gets, and other items may share them.
    if fn.pure or not any(map(is_changeable, arguments)):
        return arguments
    return tuple(map(_copy, arguments))


def _copy(item: Any) -> Any:
    match item:
        case list():
            return [_copy(element) for element in item]
        case tuple():
            return Struct(map(_copy, item))
        case dict():
            return RowItem((name, _copy(value)) for name, value in dict.items(item))
        case _:
            return item


def router(
    by: Sequence[FieldPath], f: Fn | None, item: ItemType, shards: int
) -> Callable[[Any], int]:
    """The function from items to their shards.

    Args:
        by: the fields that items are routed by, if `f` is None.
        f: the function of an item whose value, or tuple of values, items are routed by.
        item: the type of the items.
        shards: the number of shards.
    """

    def by_value(fn: Fn, x: Any) -> int:
        try:
            return shard_of([(call_item(fn, x), UNKNOWN)], shards)
        except FAILURES:
            return 0

    if f is not None:
        return lambda x: by_value(f, x)
    types = [at(item, path) or UNKNOWN for path in by]

    def routed(x: Any) -> int:
        values = (_field(x, path) for path in by)
        return shard_of(zip(values, types, strict=True), shards)

    return routed


def _field(item: Any, path: FieldPath) -> Any:
    for step in path:
        if item is None:
            return None
        item = item[int(step)] if isinstance(item, tuple) else item[step]
    return item


# Tests that the functions of an operator have a result for an item, with the reason if not.
#
# Both engines use this test, so they reject the same items for the same reasons.


class Use(StrEnum):
    """The use that an operator has for the results of its functions."""

    ITEM = "item"
    TEST = "test"
    PARTS = "parts"
    PORT = "port"


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A function that fails on an item, and the reason."""

    fn: Fn
    reason: str


@dataclass(frozen=True, slots=True)
class CallAttempt:
    """The functions of an operator, to be called with an item each."""

    calls: Sequence[tuple[str, Fn]]
    use: Use
    ports: Sequence[str]
    item: ItemType

    @staticmethod
    def of(args: Mapping[str, Any], item: ItemType) -> CallAttempt:
        """From the arguments of `fitting` or `failing` and the type of their items."""
        return CallAttempt(args["calls"], Use(args["use"]), args["ports"], item)

    def on(self, item: Any) -> FailedCall | None:
        """The first function that fails on an item; None if all succeed."""
        for _, fn in self.calls:
            reason = self._reason(fn, item)
            if reason is not None:
                return FailedCall(fn, f"{fn.name}: {reason}")
        return None

    def row(self, item: Any) -> str:
        return json.dumps(to_json(item, self.item), ensure_ascii=False, default=str)

    def result(self, fn: Fn) -> ItemType:
        return result_type(fn, (self.item,), spread=True)

    def _reason(self, fn: Fn, item: Any) -> str | None:
        try:
            found = call_item(fn, item)
            if self.use is Use.TEST:
                bool(found)
                return None
        except Exception as problem:  # noqa: BLE001 - a user's function may raise anything
            return why(kind_of(problem), str(problem))
        if self.use is Use.PORT:
            return self._wrong_port(found)
        if self.use is Use.PARTS and not (found is None or isinstance(found, list | Struct)):
            return f"only arrays and tuples can be spread, not {shown(found)}"
        to = self.result(fn)
        try:
            if to != UNKNOWN:
                conform(found, to)
        except ValueProblem as problem:
            return f"{shown(found)} does not fit the type {to}: {problem}"
        return None

    def _wrong_port(self, port: Any) -> str | None:
        is_label = isinstance(port, str | int) and not isinstance(port, bool)
        if is_label and str(port) in self.ports:
            return None
        return f"there is no port {shown(port)}; there are {', '.join(self.ports)}"
