"""Streams that never have an item: what is left of the operators that read them.

Equal to such a stream is a literal list without items. Where one is read, there is nothing to be
split into before and now: a node that only hands items on, and would compute what is there already,
is subsumed. Otherwise every stream would be the sum of itself and nothing, and sums of sums would
be made without end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from hydro_core.catalog.classes import Empty, Matching, Sum
from hydro_core.catalog.io import SOURCE_ITER
from hydro_core.catalog.properties import Passes
from hydro_core.catalog.variants import Compares
from hydro_core.optimize.rule import Rule, lines, rule
from hydro_core.optimize.shape import Shape, call, variables
from hydro_core.optimize.space import ClassId, Problem, Space

T = TypeVar("T")

HANDS_ON = frozenset({Passes.ALL, Passes.SOME, Passes.SO_FAR, Passes.EARLIER})
"""What gives no items but those of its first input."""

EMPTY = lines(f"""
empty-by-induction: ?x => (empty ?x)
    when ?x = (prev ?x)
    by induction over ticks: what starts empty and stays what it was never has an item
empty-added-left: ?x => (empty ?x)
    when ?a = (chain ?x ?a)
    what is added to a stream and leaves it as it is has no item
empty-added-right: ?x => (empty ?x)
    when ?a = (chain ?a ?x)
    what is added to a stream and leaves it as it is has no item
empty-literal: ?x => ({SOURCE_ITER.name} ?f)
    when (empty ?x)
    when (itemless ?x ?f)
    no item ever comes there
""")


def _never_filled(given: Mapping[T, tuple[Shape, Sequence[T]]]) -> frozenset[T]:
    """The streams that no item ever reaches, by induction over ticks: they are given as they are
    made, in such a way that none depends on itself within a tick.
    """
    filled: set[T] = set()
    while True:
        found = {
            stream
            for stream, (shape, inputs) in given.items()
            if all(any(inputs[i] in filled for i in ports) for ports in emptied_by(shape))
        }
        if found == filled:
            return frozenset(given) - filled
        filled = found


def unfilled_streams(problem: Problem) -> frozenset[str]:
    """The streams of the program that no item ever reaches."""
    cuts = problem.cuts
    made = ((d.name, problem.shapes[d.shape], d.inputs) for d in problem.definitions)
    return _never_filled({n: (shape, [cuts.get(i, i) for i in read]) for n, shape, read in made})


def unfilled_in(problem: Problem, space: Space, choice: Mapping[ClassId, int]) -> Iterator[str]:
    """Streams of the program that no item reaches in a plan, if the rules do not say so."""
    chosen = {cls: space.nodes[node] for cls, node in choice.items()}
    found = _never_filled({cls: (node.shape, node.inputs) for cls, node in chosen.items()})
    for name, args in problem.facts:
        if name == "itemless" and isinstance(args[0], str) and space.named[args[0]] in found:
            yield args[0]


def emptied_by(shape: Shape) -> tuple[tuple[int, ...], ...]:
    """Sets of inputs: where all of one never have an item, the shape does not give any either."""
    cls = shape.cls
    if isinstance(cls, Empty):
        return ((),)
    if not shape.inputs:
        return ()
    if isinstance(cls, Matching) and cls.wanted:
        return ((0,), (1,))
    if not isinstance(cls, Sum) and cls.passes in HANDS_ON:
        return ((0,),)
    alone = tuple((port,) for port, linear in enumerate(shape.linear) if linear)
    return alone or ((tuple(range(len(shape.inputs))),) if shape.zero else ())


def rules_of_empty(shape: Shape, shapes: Mapping[str, Shape]) -> Iterator[Rule]:
    """What a shape on bags makes of streams without items, and where it makes such a stream."""
    cls = shape.cls
    nothing = f"{shape.name} gives nothing of nothing"
    is_sum = isinstance(cls, Sum) and len(shape.inputs) == 2
    for ports in () if is_sum else emptied_by(shape):
        if ports == (0,) and cls.passes in HANDS_ON:
            yield from _leaves(shape, shapes, 0, 0, nothing)
        else:
            yield from _is_empty(shape, shapes, ports, nothing)
    if is_sum:
        yield from _leaves(shape, shapes, 0, 1, "nothing is added")
        yield from _leaves(shape, shapes, 1, 0, "nothing is added")
    if isinstance(cls, Matching) and not cls.wanted:
        yield from _leaves(shape, shapes, 1, 0, "nothing has a match there")
        if cls.compares is not Compares.BARE_KEYS:
            same = f"?x = {call(shape, ['?a', '?a'])}"
            why = "every item has a match in its own stream"
            yield from rule(f"{shape.name}-of-itself", "?x => (empty ?x)", why, shapes, same)


def _leaves(
    shape: Shape, shapes: Mapping[str, Shape], empty: int, left: int, because: str
) -> Iterator[Rule]:
    """With one input empty, another one is left as it is."""
    inputs = variables(shape)
    # what feeds itself through the tick before may have no other node
    now = not shape.strict[left]
    side = "" if len(inputs) == 1 else ("-left", "-right")[empty]
    text = f"{call(shape, inputs)} => {inputs[left]}"
    condition = f"(empty {inputs[empty]})"
    name = f"{shape.name}-empty{side}"
    yield from rule(name, text, because, shapes, condition, subsume=now)


def _is_empty(
    shape: Shape, shapes: Mapping[str, Shape], ports: tuple[int, ...], because: str
) -> Iterator[Rule]:
    inputs = variables(shape)
    side = "" if len(ports) == len(inputs) else ("-left", "-right")[ports[0]]
    when = (f"?x = {call(shape, inputs)}", *(f"(empty {inputs[p]})" for p in ports))
    name = f"empty-{shape.name}{side}"
    yield from rule(name, "?x => (empty ?x)", because, shapes, *when)
