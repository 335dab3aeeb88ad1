"""Shapes: operators as the rules see them, typed by whether their streams are bags or sequences.

A class of equal streams of no order is equal as bags, one of a total order is equal as sequences.
The two are different sorts, so a rule that holds on bags cannot be applied to a sequence: rules are
selected by the order type. A sequence becomes a bag through the shape `bag`, wherever an operator
does not look at the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from hydro_core.catalog import combine
from hydro_core.catalog.aggregates import AGGREGATES
from hydro_core.catalog.classes import (
    ClassFacts,
    OpClass,
    OrderedByKey,
    Ordering,
    PerItem,
    Running,
    Sum,
    is_itemwise,
)
from hydro_core.catalog.properties import Holds, Passes
from hydro_core.catalog.results import aggregates
from hydro_core.catalog.spec import NO_ARGS, Args, Barrier, OpSpec, OrderRule
from hydro_core.catalog.variants import Gives
from hydro_core.functions.fn import Fn
from hydro_core.ir.graph import Node
from hydro_core.types.stream import Order


class Sort(Enum):
    """What equality of two streams means."""

    BAG = "B"
    SEQUENCE = "Q"


GLOBAL = ":global"
"""After the name of an operator that has a result of nothing, unlike its usual form."""
SINGLE = ":single"
"""After the name of an operator that gives at most one item, unlike its usual form."""


@dataclass(frozen=True, slots=True)
class FeedbackShape(ClassFacts):
    """Feedback within a tick: what a stream holds in the end."""

    new: bool = False
    """Only what the ticks before did not have."""
    passes: ClassVar[Passes] = Passes.NONE
    holds: ClassVar[Holds] = Holds.INPUTS


ShapeClass = OpClass | FeedbackShape


@dataclass(frozen=True, slots=True)
class Shape:
    """An operator with the columns that rules rely on; `name` is unique within a problem."""

    name: str
    inputs: tuple[Sort, ...]
    cls: ShapeClass
    output: Sort = Sort.BAG
    payload: bool = False
    """Whether a node of the shape carries arguments."""
    op: OpSpec | None = None
    linear: tuple[bool, ...] = ()
    zero: bool = True
    time_invariant: bool = True
    strict: tuple[bool, ...] = ()
    """The inputs on which the output at a tick depends through earlier ticks only."""
    monotone: bool = False
    single: bool = False

    @property
    def flat(self) -> str:
        """The name of the shape on bags."""
        return self.name.removesuffix("!")

    @property
    def plain(self) -> str:
        """What people call it."""
        return self.flat.removesuffix(GLOBAL).removesuffix(SINGLE)

    @property
    def is_itemwise(self) -> bool:
        """Whether it goes item by item."""
        return not isinstance(self.cls, FeedbackShape) and is_itemwise(self.cls)

    @property
    def makes_aggregates(self) -> bool:
        """Whether it makes named aggregates, of items or of what is new."""
        return not isinstance(self.cls, FeedbackShape) and aggregates(self.cls)

    @property
    def is_bags(self) -> bool:
        return self.output is Sort.BAG and Sort.SEQUENCE not in self.inputs


BAG = Shape(
    "bag", (Sort.SEQUENCE,), Ordering(sorts=False), linear=(True,), strict=(False,), monotone=True
)
"""Forgets the order of a sequence."""
INTEGRATE = Shape("integrate", (Sort.BAG,), PerItem(Gives.SAME), linear=(True,), strict=(False,))
"""The same stream, its values by who gives the changes: no operator."""
CHAIN = combine.CHAIN.name
UNION = combine.UNION.name


def two(name: str, sort: Sort) -> Shape:
    """Two streams of a sort added up: `chain` by rules, `union` (`chain!`) by the program."""
    return Shape(
        name=name,
        inputs=(sort, sort),
        cls=Sum(),
        output=sort,
        linear=(False, False),
        strict=(False, False),
        monotone=True,
    )


def variables(shape: Shape) -> tuple[str, ...]:
    """A pattern variable for each input of the shape; a large cycle reads many."""
    letters = "abcdefghij"
    more = (f"a{number}" for number in range(len(letters), len(shape.inputs)))
    return tuple(f"?{name}" for name in (*letters[: len(shape.inputs)], *more))


def call(shape: Shape, inputs: Sequence[str]) -> str:
    """The text of a pattern: a node of the shape over these, its arguments called `?f`."""
    payload = ["?f"] if shape.payload else []
    return f"({' '.join((shape.name, *payload, *inputs))})"


def sort_of(order: Order) -> Sort:
    """What equality means on a stream of this order."""
    return Sort.SEQUENCE if order is Order.TOTAL else Sort.BAG


def shape_of(node: Node, inputs: tuple[Order, ...], output: Order) -> Shape:
    spec = node.spec
    sorts = tuple(
        Sort.SEQUENCE
        if order is Order.TOTAL and observes_order(node, position, output)
        else Sort.BAG
        for position, order in enumerate(inputs)
    )
    out = sort_of(output)
    ports = [node.port_of(i) for i in range(len(inputs))]
    flat = out is Sort.BAG and Sort.SEQUENCE not in sorts
    return Shape(
        name=_variant(node, spec) + ("" if flat else "!"),
        inputs=sorts,
        cls=node.cls,
        output=out,
        payload=bool(spec.args) or node.op.outputs == "ports",
        op=node.op,
        linear=tuple(p.linear and not isinstance(node.cls, Sum) for p in ports),
        zero=spec.zero,
        time_invariant=spec.time_invariant,
        strict=tuple(p.barrier is Barrier.TICK for p in ports),
        monotone=spec.monotone and all(p.barrier is not Barrier.STRATUM for p in ports),
        single=spec.single,
    )


def observes_order(node: Node, position: int, output: Order) -> bool:
    """Whether the node's result, as a stream of order `output`, depends on the order of an ordered
    input.

    In doubt it does.
    """
    spec = node.spec
    if node.port_of(position).needs is Order.TOTAL:
        return True
    match spec.order:
        case OrderRule.KEEPS:
            return position == 0 and output is Order.TOTAL
        case OrderRule.KEEPS_IF_ALL:
            return output is Order.TOTAL
        case OrderRule.GIVES:
            return False
        case OrderRule.LOSES:
            return spec.family == "group" and not _ignores_order(node)


def _ignores_order(node: Node) -> bool:
    for arg in node.op.args:
        value = node.args.get(arg.name)
        if isinstance(value, Fn) and arg.leading and not value.algebra.commutative:
            return False
        if arg.kind == "aggregates" and any(
            AGGREGATES[a.function].follows_order for _, a in value or ()
        ):
            return False
    return True


def _variant(node: Node, spec: OpSpec) -> str:
    """The operator's name, and what tells this use of it from one with other columns."""
    name = spec.name
    choices = [a for a in node.op.args if a.kind == "choice"]
    for choice in choices:
        if node.args[choice.name] != choice.default:
            name += f":{node.args[choice.name]}"
    if spec.state is not node.op.state:
        name += f":{spec.state.name.lower()}"
    if (not spec.zero and node.op.zero) or _orders_all(spec.cls):
        name += GLOBAL
    elif spec.single and not node.op.single:
        name += SINGLE
    return name


def _orders_all(cls: OpClass) -> bool:
    """Whether it goes by the order of all rows, or of what is no key of columns."""
    of = cls.of if isinstance(cls, Running) else cls
    return isinstance(of, OrderedByKey) and not of.keyed


@dataclass(frozen=True, slots=True)
class Payload:
    """The arguments of a node as the e-graph carries them: `port` for an operator with several
    outputs, `own` for a sink, which is its id.

    Sinks of one name add up: two that get equal streams are two, each with its own copies.
    """

    args: Args = NO_ARGS
    port: str = ""
    own: str = ""
