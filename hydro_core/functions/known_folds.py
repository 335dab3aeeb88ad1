"""Folds that are sums, minima and maxima, or tuples and rows of these: an engine has aggregates for
them.

A function `f(acc, x)` is known if each part of its result is that part of the accumulator,
unchanged or with a value of the item added to it, or the smaller or larger of the two. Such a fold
does not depend on the order of the items, and the results for two bags are merged by the same
aggregates. Integers are added exactly: only a final sum beyond 64 bits is an error, never a partial
sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from hydro_core.functions.library.entry import AggregateStep
from hydro_core.functions.library.registry import operation
from hydro_core.functions.tree import Expr, Fn, IfElse, Make, Op, Param, Part, mentions, step_in

ExtremeKind = Literal["least", "greatest"]


@dataclass(frozen=True, slots=True)
class StartKept:
    """The start."""


@dataclass(frozen=True, slots=True)
class Total:
    """The start, and the sum of `value` over the items for which `where` is true."""

    value: Expr
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class Extreme:
    """The least or greatest of the start and of `value` over the items."""

    kind: ExtremeKind
    value: Expr


@dataclass(frozen=True, slots=True)
class FoldParts:
    """A tuple (`names` is None) or a row of folds."""

    parts: tuple[KnownFold, ...]
    names: tuple[str, ...] | None = None


KnownFold = StartKept | Total | Extreme | FoldParts


def known_fold(fn: Fn) -> KnownFold | None:
    """The fold of `fn` by aggregates, None if it is no known fold; values are over `fn.params[1:]`.

    >>> import ast
    >>> from hydro_core.functions.read import read_function
    >>> f = read_function(ast.parse("lambda a, x: (a[0] + x, max(a[1], x))", mode="eval").body, {})
    >>> [type(p).__name__ for p in known_fold(f).parts]
    ['Total', 'Extreme']
    """
    if fn.tree is None or len(fn.params) < 2:
        return None
    return _known(fn.tree, Param(fn.params[0]), fn.params[0])


def known_reduce(fn: Fn) -> KnownFold | None:
    """The aggregates of `reduce(fn)`, None if it is no known fold; `fn` gets two items."""
    if fn.tree is None or len(fn.params) != 2:
        return None
    acc, item = fn.params
    found = _known(fn.tree, Param(acc), acc)
    # The first item is the accumulator: each part must read that same part of the item.
    return found if found is not None and _takes(found, Param(item), fn) else None


def value_of(fn: Fn, expression: Expr) -> Fn:
    """A value of a known fold as a function of the item alone."""
    return replace(fn, params=fn.params[1:], tree=expression, returns=None)


def _known(expr: Expr, acc: Expr, name: str) -> KnownFold | None:
    if _same(expr, acc):
        return StartKept()
    match expr:
        case Make("tuple" | "row", parts) if expr.fields and len(expr.fields) == len(parts):
            return _parts(expr, expr.fields, acc, name)
        case Op(args=(_, _), keywords=()):
            return _step(expr, acc, name)
        case IfElse(Op(family="comparison") as test, then, otherwise) if chosen := _chosen(
            test, then, otherwise
        ):
            return _extreme(chosen, test.args, acc, name)
        case IfElse(test, then, otherwise) if not mentions(test, name):
            # `acc + x if test else acc`, or with the branches exchanged.
            if not _same(otherwise, acc):
                test, then, otherwise = Op("not", (test,)), otherwise, then
            found = _known(then, acc, name) if _same(otherwise, acc) else None
            if isinstance(found, Total) and found.where is None:
                return replace(found, where=test)
            return None
        case _:
            return None


def _parts(made: Make, fields: Mapping[Any, Expr], acc: Expr, name: str) -> KnownFold | None:
    known = []
    for key, part in fields.items():
        found = _known(part, Part(acc, key), name)
        if found is None:
            return None
        known.append(found)
    return FoldParts(tuple(known), tuple(fields) if made.kind == "row" else None)


def _step_of(expr: Op) -> AggregateStep | None:
    entry = operation(expr.name)
    return None if entry is None else entry.step


def _step(expr: Op, acc: Expr, name: str) -> KnownFold | None:
    """An operation of two operands, by the aggregate that its entry names as its step."""
    step = _step_of(expr)
    match step:
        case "plus" | "minus":
            return _total(expr, acc, name)
        case "least" | "greatest":
            return None if expr.family == "comparison" else _extreme(step, expr.args, acc, name)
        case None:
            return None


def _chosen(test: Op, then: Expr, otherwise: Expr) -> ExtremeKind | None:
    """Which of its two operands a comparison chooses: `a if a < b else b` is the least."""
    match _step_of(test):
        case "least" | "greatest" as step if test.args == (then, otherwise):
            return step
        case "least" | "greatest" as step if test.args == (otherwise, then):
            return "greatest" if step == "least" else "least"
        case _:
            return None


def _total(expr: Expr, acc: Expr, name: str) -> Total | None:
    """`acc + x`, `acc + x - y`: the accumulator once, and terms without it."""
    terms = list(_terms(expr, negative=False))
    mine = [negative for term, negative in terms if _same(term, acc)]
    others = [(term, negative) for term, negative in terms if not _same(term, acc)]
    if mine != [False] or not others or any(mentions(term, name) for term, _ in others):
        return None
    (value, negative), *rest = others
    value = Op("-x", (value,)) if negative else value
    for term, subtracted in rest:
        value = Op("-" if subtracted else "+", (value, term))
    return Total(value)


def _terms(expr: Expr, *, negative: bool) -> list[tuple[Expr, bool]]:
    match expr:
        case Op(args=(left, right), keywords=()):
            step = _step_of(expr)
            if step in ("plus", "minus"):
                flipped = negative != (step == "minus")
                return [*_terms(left, negative=negative), *_terms(right, negative=flipped)]
    return [(expr, negative)]


def _extreme(kind: ExtremeKind, pair: tuple[Expr, ...], acc: Expr, name: str) -> Extreme | None:
    a, b = pair
    other = b if _same(a, acc) else a if _same(b, acc) else None
    return None if other is None or mentions(other, name) else Extreme(kind, other)


def _same(expr: Expr, reference: Expr) -> bool:
    """True if the expression reads the part of the accumulator that `reference` names."""
    match expr, reference:
        case Param(a), Param(b):
            return a == b
        case Part(base), Part(other, wanted):
            kind = "row" if isinstance(wanted, str) else "tuple"
            return step_in(kind, expr) == wanted and _same(base, other)
        case _:
            return False


def _takes(fold: KnownFold, item: Expr, fn: Fn) -> bool:
    match fold:
        case FoldParts(parts, names):
            keys: tuple[Any, ...] = names if names is not None else tuple(range(len(parts)))
            pairs = zip(parts, keys, strict=True)
            return all(_takes(p, Part(item, k), fn) for p, k in pairs)
        case Total(value, where):
            return where is None and _same(value, item)
        case Extreme(_, value):
            return _same(value, item)
        case StartKept():
            # The two items may be exchanged, so both must give the same.
            return fn.algebra.commutative
