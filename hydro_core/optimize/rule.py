"""Rules as lines over shapes: a name, an equation, its conditions, and why it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from hydro_core.catalog import combine
from hydro_core.catalog.aggregates import AGGREGATES
from hydro_core.catalog.classes import (
    ClassFacts,
    ItemEffect,
    OpClass,
    OrderedByKey,
    Ordering,
    PassedItems,
    PastExtent,
    PerItem,
    RunningResult,
    Sum,
    is_itemwise,
)
from hydro_core.catalog.group import aggregates
from hydro_core.catalog.spec import NO_ARGS, Args, Barrier, OpSpec, OrderRule
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Node
from hydro_core.ir.sexpr import Atom, SExpr, read
from hydro_core.types.item import Order

# Shapes: operators as the rules see them, typed by whether their streams are bags or sequences.
#
# Equal streams without an order are equal as bags, those with a total order as sequences. The two
# are different sorts, so a rule that holds for bags does not apply to a sequence. A sequence
# becomes a bag through the shape `bag`, wherever an operator does not observe the order.


class Sort(Enum):
    """The meaning of equality of two streams."""

    BAG = "B"
    SEQUENCE = "Q"


GLOBAL = ":global"
"""Suffix of an operator that gives a result for no items, unlike its usual form."""
SINGLE = ":single"
"""Suffix of an operator that gives at most one item, unlike its usual form."""


@dataclass(frozen=True, slots=True)
class FeedbackShape(ClassFacts):
    """Feedback within a tick: the fixpoint of a stream."""

    new: bool = False
    """True for only the items that the ticks before did not have."""
    passes: ClassVar[PassedItems] = PassedItems.NONE
    holds: ClassVar[PastExtent] = PastExtent.INPUTS


ShapeClass = OpClass | FeedbackShape


@dataclass(frozen=True, slots=True)
class Shape:
    """An operator with the columns that rules rely on; `name` is unique within a problem."""

    name: str
    inputs: tuple[Sort, ...]
    cls: ShapeClass
    output: Sort = Sort.BAG
    payload: bool = False
    """True if a node of the shape has arguments."""
    op: OpSpec | None = None
    linear: tuple[bool, ...] = ()
    zero: bool = True
    time_invariant: bool = True
    strict: tuple[bool, ...] = ()
    """By input: true if the output at a tick depends on the input only through earlier ticks."""
    monotone: bool = False
    single: bool = False

    @property
    def flat(self) -> str:
        """The name of the shape on bags."""
        return self.name.removesuffix("!")

    @property
    def plain(self) -> str:
        """The name of the operator in programs and messages."""
        return self.flat.removesuffix(GLOBAL).removesuffix(SINGLE)

    @property
    def is_itemwise(self) -> bool:
        """True if the operator is row-wise."""
        return not isinstance(self.cls, FeedbackShape) and is_itemwise(self.cls)

    @property
    def makes_aggregates(self) -> bool:
        """True if the operator computes named aggregates, of all items or of new ones."""
        return not isinstance(self.cls, FeedbackShape) and aggregates(self.cls)

    @property
    def is_bags(self) -> bool:
        return self.output is Sort.BAG and Sort.SEQUENCE not in self.inputs


BAG = Shape(
    "bag", (Sort.SEQUENCE,), Ordering(sorts=False), linear=(True,), strict=(False,), monotone=True
)
"""Forgets the order of a sequence."""
INTEGRATE = Shape(
    "integrate", (Sort.BAG,), PerItem(ItemEffect.SAME), linear=(True,), strict=(False,)
)
"""The values of the same stream, from its changelog: no operator."""
CHAIN = combine.CHAIN.name
UNION = combine.UNION.name


def two(name: str, sort: Sort) -> Shape:
    """The sum of two streams of a sort: `chain` by rules, `union` (`chain!`) by the program."""
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
    """A pattern variable for each input of the shape; a large cycle has many."""
    letters = "abcdefghij"
    more = (f"a{number}" for number in range(len(letters), len(shape.inputs)))
    return tuple(f"?{name}" for name in (*letters[: len(shape.inputs)], *more))


def call(shape: Shape, inputs: Sequence[str]) -> str:
    """The text of a pattern: a node of the shape with these inputs, its arguments named `?f`."""
    payload = ["?f"] if shape.payload else []
    return f"({' '.join((shape.name, *payload, *inputs))})"


def sort_of(order: Order) -> Sort:
    """The meaning of equality for a stream of this order."""
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
    """True if the node's result, as a stream of order `output`, depends on the order of an ordered
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
    """The operator's name, with suffixes for the columns that differ from its usual form."""
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
    """True if the operator uses the order of all rows, or of a key that is not columns."""
    of = cls.of if isinstance(cls, RunningResult) else cls
    return isinstance(of, OrderedByKey) and not of.keyed


@dataclass(frozen=True, slots=True)
class Payload:
    """The arguments of a node in the e-graph: `port` for an operator with several outputs, `own`
    for a sink, which is its id.

    Sinks of one name add up: two with equal streams are two, each with its own copies.
    """

    args: Args = NO_ARGS
    port: str = ""
    own: str = ""


# Rules as lines: a name, an equation between patterns, its conditions, and why it holds.
#
#     delta-persist: (delta (persist ?a)) => ?a
#         the new items of a history are the batch
#
# A pattern is a variable `?a` or `(shape ?payload pattern …)`; a shape with arguments names them
# first. `when` has equations `?x = (chain (prev ?x) ?b)` and facts `(growing ?n)`. A rule whose
# conclusion is a fact derives it.


Line = tuple[str, ...]
"""A rule as text: its name, its equation, why it holds, and its conditions."""

FACTS: Mapping[str, str] = {
    "growing": "S",
    "empty": "S",
    "itemless": "SP",
    "accumulates": "P",
    "absorbs": "P",
    "mergeable": "P",
    "moves": "P",
    "parts": "PPP",
    "moving": "PPP",
    "tails": "PPP",
    "first_of_key": "PPP",
    "first_of_all": "PPP",
    "itself": "P",
    "steps_in_order": "PPP",
    "one_key": "PPPP",
    "distinct_of": "PPP",
    "apart": "PPPPP",
    "opposite": "PP",
    "join_left": "PPP",
    "join_right": "PPP",
    "cross_left": "PP",
    "cross_right": "PP",
    "on_keys": "PPP",
    "composed": "PPP",
    "conjunct": "PPP",
    "total": "P",
    "passes": "P",
    "joined": "SPPSS",
    "kept": "SPP",
    "first": "P",
    "equates": "PP",
    "equates_as": "PPP",
}
"""The facts besides equations, with the kinds of their arguments: streams (S) and arguments (P)."""


@dataclass(frozen=True, slots=True)
class Var:
    """A variable for a stream, or for the arguments of a node."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True, slots=True)
class Pat:
    """A node: the name of its shape, the variable of its arguments, and its inputs."""

    shape: str
    payload: Var | None
    inputs: tuple[Pattern, ...]

    def __str__(self) -> str:
        payload = () if self.payload is None else (self.payload,)
        return f"({' '.join((self.shape, *map(str, (*payload, *self.inputs))))})"


Pattern = Var | Pat


@dataclass(frozen=True, slots=True)
class EqualClasses:
    """A condition: both patterns are in one class."""

    left: Pattern
    right: Pattern

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact besides equations: `(growing ?n)`, `(opposite ?s ?t)`."""

    name: str
    args: tuple[Var, ...]

    def __str__(self) -> str:
        return f"({' '.join((self.name, *map(str, self.args)))})"


@dataclass(frozen=True, slots=True)
class Rule:
    """`lhs` may be replaced by `rhs` where `when` holds; a `rhs` that is a fact is derived."""

    name: str
    lhs: Pattern
    rhs: Pattern | Fact
    because: str
    when: tuple[EqualClasses | Fact, ...] = ()
    subsume: bool = False
    """True if the left side need not be matched again."""

    def __str__(self) -> str:
        conditions = f" when {', '.join(map(str, self.when))}" if self.when else ""
        return f"{self.lhs} => {self.rhs}{conditions}"

    def patterns(self) -> Iterator[Pattern]:
        yield from self._needed()
        if not isinstance(self.rhs, Fact):
            yield self.rhs

    def _needed(self) -> Iterator[Pattern]:
        """The patterns that must match for the rule to fire."""
        for condition in self.when:
            if isinstance(condition, EqualClasses):
                yield from (condition.left, condition.right)
        yield self.lhs

    def shapes(self) -> frozenset[str]:
        """The names of the shapes that must exist for the rule to fire."""
        return frozenset(s for pattern in self._needed() for s in shapes_in(pattern))

    def makes(self) -> frozenset[str]:
        """The names of the shapes that the rule introduces."""
        return frozenset() if isinstance(self.rhs, Fact) else frozenset(shapes_in(self.rhs))

    def variables(self) -> Mapping[str, str]:
        """The variables with their kinds: S for a stream, P for arguments."""
        found: dict[str, str] = {}
        for condition in self.when:
            if isinstance(condition, Fact):
                for var, kind in zip(condition.args, FACTS[condition.name], strict=True):
                    found.setdefault(var.name, kind)
        for pattern in self.patterns():
            _kinds(pattern, found)
        return found


def lines(text: str) -> tuple[Line, ...]:
    r"""Rules from text: a name and an equation, then its conditions and why it holds.

    >>> lines("injective: ?a => ?b\n  when ?x = (persist ?a)\n  equal histories are equal")
    (('injective', '?a => ?b', 'equal histories are equal', '?x = (persist ?a)'),)
    """
    found: list[list[str]] = []
    for line in filter(str.strip, text.splitlines()):
        part = line.strip()
        if part == line:
            name, _, equation = line.partition(": ")
            found.append([name, equation, ""])
        elif part.startswith("when "):
            found[-1].append(part.removeprefix("when "))
        elif part.startswith(("(", "=>", "?")):
            found[-1][1] = f"{found[-1][1]} {part}".strip()
        else:
            found[-1][2] = f"{found[-1][2]} {part}".strip()
    return tuple(map(tuple, found))


def rule(
    name: str,
    text: str,
    because: str,
    shapes: Mapping[str, Shape],
    *when: str,
    subsume: bool = False,
) -> tuple[Rule, ...]:
    """The rules of one line: `=>` one, `<=>` two, the second named `…-back`."""
    arrow = "<=>" if "<=>" in text else "=>"
    left, right = (_pattern(read(side.strip()), shapes) for side in text.split(arrow))
    conditions = tuple(_condition(w, shapes) for w in when)
    if isinstance(left, Fact):
        raise TypeError(f"rule {name} rewrites a fact")
    forth = Rule(name, left, right, because, conditions, subsume)
    if arrow == "=>" or isinstance(right, Fact):
        return (forth,)
    return (forth, Rule(f"{name}-back", right, left, because, conditions))


def _condition(text: str, shapes: Mapping[str, Shape]) -> EqualClasses | Fact:
    if "=" in text:
        left, right = (_pattern(read(side.strip()), shapes) for side in text.split("="))
        if isinstance(left, Fact) or isinstance(right, Fact):
            raise ValueError(f"{text} is not an equation between streams")
        return EqualClasses(left, right)
    found = _pattern(read(text), shapes)
    if not isinstance(found, Fact):
        raise TypeError(f"{text} is not a fact")
    return found


def shapes_in(pattern: Pattern) -> Iterator[str]:
    if isinstance(pattern, Pat):
        yield pattern.shape
        for child in pattern.inputs:
            yield from shapes_in(child)


def _pattern(tree: SExpr, shapes: Mapping[str, Shape]) -> Pattern | Fact:
    if isinstance(tree, Atom):
        return _variable(tree)
    head, *rest = tree
    if not isinstance(head, Atom):
        raise TypeError(f"{tree} has no shape")
    if head.text in FACTS:
        return Fact(head.text, tuple(_variable(r) for r in rest))
    shape = shapes[head.text]
    payload = _variable(rest.pop(0)) if shape.payload else None
    inputs = tuple(_pattern(r, shapes) for r in rest)
    if len(inputs) != len(shape.inputs) or any(isinstance(i, Fact) for i in inputs):
        raise ValueError(f"{shape.name} does not take these inputs: {tree}")
    return Pat(shape.name, payload, inputs)  # type: ignore[arg-type]


def _variable(tree: SExpr) -> Var:
    if not isinstance(tree, Atom) or not tree.text.startswith("?"):
        raise TypeError(f"{tree} is not a variable")
    return Var(tree.text[1:])


def _kinds(pattern: Pattern, found: dict[str, str]) -> None:
    match pattern:
        case Var(name):
            found.setdefault(name, "S")
        case Pat(_, payload, inputs):
            if payload is not None:
                found.setdefault(payload.name, "P")
            for child in inputs:
                _kinds(child, found)
