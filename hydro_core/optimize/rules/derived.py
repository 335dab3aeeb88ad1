"""Rules that follow from a column of the catalogue, for every shape that has the property.

- linear in a port: the shape distributes over the old and the new items there;
- zero and time-invariant: the shape of earlier streams is the earlier stream of the shape;
- monotone: the output of growing inputs grows;
- idempotent: twice is once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hydro_core.catalog.classes import KeyMatch, MatchCondition, PassedItems
from hydro_core.catalog.spec import State
from hydro_core.optimize.rule import Rule, Shape, Sort, call, lines, rule, variables
from hydro_core.optimize.rules.algebra import BY_HAND, rules_of_empty


def derived(shapes: Mapping[str, Shape]) -> Iterator[Rule]:
    for shape in shapes.values():
        if shape.op is not None and shape.op.outputs == "none":
            continue
        if shape.is_bags:
            yield from rules_of_empty(shape, shapes)
        if shape.is_bags and shape.inputs and shape.name not in BY_HAND:
            yield from _on_bags(shape, shapes)
        if shape.output is Sort.SEQUENCE:
            yield from _as_bag(shape, shapes)


def _on_bags(shape: Shape, shapes: Mapping[str, Shape]) -> Iterator[Rule]:
    yield from _linear(shape, shapes)
    if shape.zero and shape.time_invariant:
        before = [f"(prev {v})" for v in variables(shape)]
        text = f"{call(shape, before)} => (prev {call(shape, variables(shape))})"
        why = f"{shape.name} does the same in every tick, and nothing of nothing"
        yield from rule(f"{shape.name}-before", text, why, shapes)
    if shape.monotone and shape.time_invariant and _is_stateless(shape):
        grow = [f"(growing {v})" for v in variables(shape)]
        equation = f"?x = {call(shape, variables(shape))}"
        why = f"{shape.name} of more gives no less"
        yield from rule(f"growing-{shape.name}", "?x => (growing ?x)", why, shapes, equation, *grow)
    if shape.op is not None and shape.op.idempotent and len(shape.inputs) == 1:
        once = call(shape, variables(shape))
        why = f"{shape.name} twice is {shape.name} once"
        text = f"{call(shape, [once])} => {once}"
        yield from rule(f"{shape.name}-idempotent", text, why, shapes, subsume=True)
    if isinstance(shape.cls, KeyMatch) and not shape.cls.wanted:
        yield from _negation(shape, shape.cls, shapes)
    if shape.is_itemwise and shape.cls.passes is PassedItems.SOME:
        text = f"(delta {call(shape, ['?a'])}) => {call(shape, ['(delta ?a)'])}"
        why = f"{shape.name} keeps all copies of an item or none"
        yield from rule(f"delta-{shape.name}", text, why, shapes)
    if shape.linear == (True,) and _is_stateless(shape) and shape.zero and shape.time_invariant:
        text = f"{call(shape, ['(window ?n ?a)'])} => (window ?n {call(shape, ['?a'])})"
        why = f"{shape.name} goes item by item, so it may go before the window"
        yield from rule(f"{shape.name}-window", text, why, shapes)


def _linear(shape: Shape, shapes: Mapping[str, Shape]) -> Iterator[Rule]:
    for port, linear in enumerate(shape.linear):
        if not linear:
            continue
        whole, before, new = (list(variables(shape)) for _ in range(3))
        whole[port] = "(chain (prev ?p) ?q)"
        before[port], new[port] = "(prev ?p)", "?q"
        text = f"{call(shape, whole)} => (chain {call(shape, before)} {call(shape, new)})"
        side = "" if len(shape.inputs) == 1 else ("-left", "-right")[port]
        why = f"{shape.name} is linear in this input: what was before and what is new, apart"
        yield from rule(f"{shape.name}-split{side}", text, why, shapes)


def _negation(shape: Shape, cls: KeyMatch, shapes: Mapping[str, Shape]) -> Iterator[Rule]:
    name, once, some = (
        shape.name,
        call(shape, ["?a", "?b"]),
        call(shape, ["(unique ?a)", "?b"]),
    )
    # without the next rule, the part split off a history would be split again in every round
    yield from rule(
        f"{name}-again",
        f"{call(shape, [once, '?b'])} => {once}",
        "what has no match has none when it is asked again",
        shapes,
        subsume=True,
    )
    first = f"""
{name}-first: ?y => (unique ?x)
    when ?x = {call(shape, ["?a", "(old ?x)"])}
    when ?y = (difference (unique ?x) (old ?y))
    by induction over ticks: what is there for the first time has no match before
"""
    others = f"""
{name}-of-distinct: (unique {some}) => {some}
    some of distinct items are distinct
{name}-distinct: {call(shape, ["?a", "(unique ?b)"])} => {once}
    how often an item is on the negative side does not matter
{name}-distinct-before: {call(shape, ["?a", "(prev ?b)"])} => {call(shape, ["?a", "(prev ?u)"])}
    when ?u = (unique ?b)
    how often an item is on the negative side does not matter
delta-{name}: (delta ?x) => {call(shape, ["(delta ?a)", "?b"])}
    when ?x = {once}
    when (growing ?b)
    where the negative side grows, only new items of the positive one are new
"""
    same_items = cls.compares is not MatchCondition.BARE_KEYS
    for title, text, because, *when in lines(first * same_items + others):
        yield from rule(title, text, because, shapes, *when)


def _as_bag(shape: Shape, shapes: Mapping[str, Shape]) -> Iterator[Rule]:
    """An ordered stream's bag is that of its input's, for shapes that exist on bags, too."""
    flat = shapes.get(shape.flat)
    if flat is None or flat.op is not shape.op or shape.inputs[:1] != (Sort.SEQUENCE,):
        return
    if not flat.is_bags or flat.op is None:
        return
    inner = [
        f"(bag {v})" if sort is Sort.SEQUENCE else v
        for v, sort in zip(variables(shape), shape.inputs, strict=True)
    ]
    text = f"(bag {call(shape, list(variables(shape)))}) => {call(flat, inner)}"
    why = f"{flat.name} gives the same items in whatever order its input comes"
    yield from rule(f"bag-{flat.name}", text, why, shapes)


def _is_stateless(shape: Shape) -> bool:
    return shape.op is None or shape.op.state is State.NONE
