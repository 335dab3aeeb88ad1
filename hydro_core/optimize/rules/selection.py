"""Selection of the rules that a program needs: their shapes occur in it, or other rules introduce
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType

from hydro_core.catalog.combine import DIFFERENCE, JOIN
from hydro_core.catalog.group import UNIQUE
from hydro_core.catalog.internal import AGGREGATE_RESULT
from hydro_core.catalog.itemwise import RENAME, SELECT, SOURCE_ITER
from hydro_core.catalog.spec import Args, OpSpec, OrderRule
from hydro_core.catalog.state import DELTA, OLD, PERSIST, PREV, WINDOW
from hydro_core.ir.graph import Endpoint, Node
from hydro_core.optimize.rule import BAG, CHAIN, UNION, Line, Rule, Shape, Sort, rule, shape_of, two
from hydro_core.optimize.rules import aggregates, algebra, derived, facts, ordered
from hydro_core.types.item import Order

LINES: tuple[Line, ...] = (
    *algebra.STATE,
    *algebra.GROWING,
    *algebra.EMPTY,
    *algebra.UNIQUE,
    *algebra.IDENTITIES,
    *algebra.BAGS,
    *aggregates.RUNNING,
    *aggregates.BY_HAND,
    *aggregates.MOVING,
    *algebra.ORDERS,
    *ordered.IN_ORDER,
    *ordered.ONE_KEY,
    *facts.MATCHES,
    *facts.FILTERS,
)
INTRODUCED: tuple[tuple[OpSpec, Mapping[str, object]], ...] = (
    (SOURCE_ITER, {}),
    (PERSIST, {}),
    (OLD, {}),
    (PREV, {}),
    (DELTA, {}),
    (WINDOW, {"n": 1}),
    (UNIQUE, {}),
    (DIFFERENCE, {}),
    (JOIN, {"how": "inner"}),
    (JOIN, {"how": "semi"}),
    (JOIN, {"how": "anti"}),
    (SELECT, {}),
    (RENAME, {"renames": ()}),
    (AGGREGATE_RESULT, {}),
    *aggregates.INTRODUCED,
    *ordered.INTRODUCED,
    *ordered.INTRODUCED_FOR_ONE_KEY,
)
"""Operators that rules introduce, with arguments that select their shapes."""


def rules_for(
    given: Mapping[str, Shape],
    more: Mapping[str, Shape] = MappingProxyType({}),
    own: tuple[Rule, ...] = (),
) -> tuple[tuple[Rule, ...], Mapping[str, Shape]]:
    """The rules that may fire on a program of these shapes, and all shapes that may then occur.

    `own` are rules of this program alone, which introduce the shapes `more`.
    """
    known = {**introduced(), **unordered(given), **more, **given}
    candidates: list[Rule] = []
    for name, text, because, *when in LINES:
        with suppress(KeyError):  # rules with shapes that the program cannot have
            candidates += rule(name, text, because, known, *when)
    candidates += [*derived.derived({n: s for n, s in known.items() if n not in more}), *own]
    there = set(given)
    chosen: dict[str, Rule] = {}
    changed = True
    while changed:
        changed = False
        for found in candidates:
            if found.name in chosen and chosen[found.name] is not found:
                raise ValueError(f"two rules are called {found.name!r}")
            if found.name not in chosen and found.shapes() <= there:
                chosen[found.name] = found
                there |= found.makes()
                changed = True
    rules = tuple(r for r in candidates if chosen.get(r.name) is r)
    return rules, {name: shape for name, shape in known.items() if name in there}


def introduced() -> Mapping[str, Shape]:
    """The shapes that rules may introduce."""
    shapes = {BAG.name: BAG, CHAIN: two(CHAIN, Sort.BAG), UNION: two(UNION, Sort.BAG)}
    for op, args in INTRODUCED:
        given = Args(tuple({**{a.name: a.default for a in op.args}, **args}.items()))
        inputs = tuple(Endpoint("x") for _ in op.inputs)
        shape = shape_of(Node(op.name, op, given, inputs), (Order.NONE,) * len(inputs), Order.NONE)
        shapes[shape.name] = shape
    return shapes


def unordered(given: Mapping[str, Shape]) -> Mapping[str, Shape]:
    """The shapes on bags that correspond to these shapes on sequences."""
    found = {}
    for shape in given.values():
        op = shape.op
        if op is None or op.order is not OrderRule.KEEPS or shape.output is not Sort.SEQUENCE:
            continue
        if op.outputs == "none" or any(p.needs is Order.TOTAL for p in op.inputs):
            continue
        bags = (Sort.BAG,) * len(shape.inputs)
        flat = replace(shape, name=shape.flat, inputs=bags, output=Sort.BAG)
        found[flat.name] = flat
    return found
