"""Rules about time, distinct items, orders, and empty streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from hydro_core.catalog.classes import EmptyStream, KeyMatch, MatchCondition, PassedItems, Sum
from hydro_core.catalog.itemwise import SOURCE_ITER
from hydro_core.catalog.state import OLD, PERSIST, PREV
from hydro_core.optimize.egraph import ClassId, Problem, Space
from hydro_core.optimize.rule import CHAIN, Rule, Shape, call, lines, rule, variables

# Rules about distinct items, orders, and operators that change nothing.


UNIQUE = lines("""
unique-split: (unique (chain (prev ?a) ?b))
    => (chain (unique (prev ?a)) (difference (unique ?b) (prev ?a)))
    an item is new if it is in the new part and was not there before
unique-of-history: (unique (persist ?a)) => (unique ?a)
    when (growing ?a)
    what grows has all its history's items in it
""")
IDENTITIES = lines("""
identity: (identity ?a) => ?a
    identity changes nothing
identity-ordered: (identity! ?a) => ?a
    identity changes nothing
stratum: (next_stratum ?a) => ?a
    the end of a stratum changes no item
stratum-ordered: (next_stratum! ?a) => ?a
    the end of a stratum changes no item
""")
BAGS = lines("""
bag-sort: (bag (sort! ?a)) => ?a
    sorting changes the order alone
bag-sort-by: (bag (sort_by_key! ?f ?a)) => ?a
    sorting changes the order alone
bag-chain: (bag (chain! ?a ?b)) => (union (bag ?a) (bag ?b))
    the items of both, in whatever order
""")
ORDERS = lines("""
join-order: ?x => (select ?s (join ?j ?a ?b))
    when (joined ?x ?j ?s ?a ?b)
    a tree of joins gives the same along its keys in every order
""")


# Rules about time: equations between `persist`, `old`, `prev`, `delta` and `chain`.
#
# They are directed. A history is split once into "before" and "now"; the split is pushed outwards,
# where the induction rule closes it again. No rule pushes `prev` inwards, which would unroll time
# without end. `chain` is a split by rules; sums of the program are `union`s, and only their parts
# are collected: collecting splits would unroll time, too.


BY_HAND = frozenset({PERSIST.name, OLD.name, PREV.name, CHAIN})
"""The operators whose rules are listed here; no rules are derived from their columns."""
STATE = lines("""
delta-persist: (delta (persist ?a)) => ?a
    what a history has more than the tick before is the batch
persist-split: (persist ?a) => (chain (old ?a) ?a)
    the history is what was there before, then the batch
old-is-prev: (old ?a) <=> (prev (persist ?a))
    what was there before is the history of the tick before
persist-before: (persist (prev ?a)) => (old ?a)
    the history of what comes a tick later is what was there before
induction: ?x => (persist ?b)
    when ?x = (chain (prev ?x) ?b)
    by induction over ticks: what starts empty and grows by b in each is the history of b
persist-injective: ?a => ?b
    when ?x = (persist ?a)
    when ?x = (persist ?b)
    equal histories grow by equal batches
chain-assoc: (chain (chain (prev ?a) ?b) ?c) => (chain (prev ?a) (chain ?b ?c))
    chain is associative; what was before moves to the front
interchange: (union (chain (prev ?a) ?b) (chain (prev ?c) ?d))
    => (chain (prev (union ?a ?c)) (union ?b ?d))
    in a union, what was before and what is new are collected apart
union-prev-left: (union (prev ?a) ?b) => (chain (prev ?a) ?b)
    a union is its parts one after the other
union-prev-right: (union ?b (prev ?a)) => (chain (prev ?a) ?b)
    the order of a union's parts does not matter
""")
GROWING = lines("""
growing-persist: ?x => (growing ?x)
    when ?x = (persist ?a)
    a history never loses an item
growing-old: ?x => (growing ?x)
    when ?x = (old ?a)
    a history never loses an item
growing-prev: ?x => (growing ?x)
    when ?x = (prev ?a)
    when (growing ?a)
    what grows has grown a tick later
growing-chain: ?x => (growing ?x)
    when ?x = (chain ?a ?b)
    when (growing ?a)
    when (growing ?b)
    a sum of what grows grows
""")


# Streams that never have an item: simplified forms of the operators that read them.
#
# Such a stream is equal to a literal list without items. It needs no split into before and now, so
# a node that only forwards items, and would compute an existing stream, is subsumed. Otherwise
# every stream would be the sum of itself and nothing, and sums of sums would be derived without
# end.


T = TypeVar("T")

HANDS_ON = frozenset({PassedItems.ALL, PassedItems.SOME, PassedItems.SO_FAR, PassedItems.EARLIER})
"""Operators that give only items of their first input."""

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
    """The streams that no item ever reaches, by induction over ticks.

    Each stream is given with its shape and inputs, so that none depends on itself within a tick.
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
    """Streams of the program that no item reaches in a plan, if the rules have not found them."""
    chosen = {cls: space.nodes[node] for cls, node in choice.items()}
    found = _never_filled({cls: (node.shape, node.inputs) for cls, node in chosen.items()})
    for name, args in problem.facts:
        if name == "itemless" and isinstance(args[0], str) and space.named[args[0]] in found:
            yield args[0]


def emptied_by(shape: Shape) -> tuple[tuple[int, ...], ...]:
    """Sets of inputs: if all inputs of one set never have an item, neither does the output."""
    cls = shape.cls
    if isinstance(cls, EmptyStream):
        return ((),)
    if not shape.inputs:
        return ()
    if isinstance(cls, KeyMatch) and cls.wanted:
        return ((0,), (1,))
    if not isinstance(cls, Sum) and cls.passes in HANDS_ON:
        return ((0,),)
    alone = tuple((port,) for port, linear in enumerate(shape.linear) if linear)
    return alone or ((tuple(range(len(shape.inputs))),) if shape.zero else ())


def rules_of_empty(shape: Shape, shapes: Mapping[str, Shape]) -> Iterator[Rule]:
    """Rules that simplify a shape on bags with an empty input, or show that its output is empty."""
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
    if isinstance(cls, KeyMatch) and not cls.wanted:
        yield from _leaves(shape, shapes, 1, 0, "nothing has a match there")
        if cls.compares is not MatchCondition.BARE_KEYS:
            same = f"?x = {call(shape, ['?a', '?a'])}"
            why = "every item has a match in its own stream"
            yield from rule(f"{shape.name}-of-itself", "?x => (empty ?x)", why, shapes, same)


def _leaves(
    shape: Shape, shapes: Mapping[str, Shape], empty: int, left: int, because: str
) -> Iterator[Rule]:
    """With one input empty, the output is another input."""
    inputs = variables(shape)
    # a stream that feeds itself through the tick before may have no other node
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
