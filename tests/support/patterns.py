"""Rules put to the test: a pattern over inputs as a program that the reference can run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from hydro_core.catalog.column_rules import aggregated
from hydro_core.catalog.internal import RUNNING_OVER, operator
from hydro_core.catalog.spec import NO_ARGS, Aggregate, Args, OpSpec
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Endpoint, Graph, Node
from hydro_core.lang.resolve import parse
from hydro_core.optimize.rule import (
    CHAIN,
    UNION,
    EqualClasses,
    Fact,
    Pat,
    Pattern,
    Rule,
    Shape,
    Sort,
    Var,
    shape_of,
    two,
)
from hydro_core.optimize.rule import rule as make_rule
from hydro_core.optimize.rules import derived
from hydro_core.optimize.rules.aggregates import facts_of
from hydro_core.optimize.rules.selection import LINES, introduced
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import Order
from tests.support.aggregate_patterns import DISTINCT, MIXED, MOVING, RUNNING
from tests.support.ordered_patterns import (
    OF_ORDER,
    known_of_order,
    one_key_of,
    steps_in_order,
    top_arguments,
    with_tails_of,
)

PAIR, ROW, KEY = "(long, long)", "k long, v long", "long"
PARTS = "k long, total decimal(38, 0), n long"
MAPS = (
    "lambda x: (x[1], x[0])",
    "lambda x: (x[0], x[1] % 2)",
    "lambda x: (0, x[0] + x[1])",
    "lambda x: (x[0] % 2, 1)",
)
TESTS = ("lambda x: x[0] != 1", "lambda x: x[1] > 0", "lambda x: x[0] == x[1]", "lambda x: False")
SPREADS = ("lambda x: [x, (x[1], x[0])] if x[0] else []", "lambda x: [x] * x[1]")
SUMS = (
    "lambda s, v: s + v",
    "lambda s, v: max(s, v)",
    "lambda s, v: (s * 3 + v) if False else s + v * v",
)
PAIR_SUMS = ("lambda s, x: s + x[1]", "lambda s, x: max(s, x[0] + x[1])")
PAIR_MAXES = ("lambda x, y: max(x, y)", "lambda x, y: (x[0] + y[0], min(x[1], y[1]))")


def _fn(text: str) -> Fn:
    graph = parse(f"a -> map({text}) -> out")
    fn: Fn = graph.named("map")[0].args["f"]
    return fn


def _commutative(text: str, op: str = "fold") -> Fn:
    start = "0, " if op == "fold" else ""
    graph = parse(f"a -> {op}({start}{text}, commutative=True) -> out")
    fn: Fn = graph.named(op)[0].args["f"]
    return fn


def arguments(op: OpSpec, rng: Random, how: str) -> Args | None:  # noqa: C901, PLR0912
    """Random arguments of an operator on pairs; None for operators that do not go with pairs."""
    given: dict[str, object] = {a.name: a.default for a in op.args}
    if op.name == "join_asof":
        way, how = rng.choice(("backward", "forward", "nearest")), rng.choice(("left", "inner"))
        given |= {"on": ("k",), "at": "v", "since": "v", "suffix": "_r"}
        return Args(tuple((given | {"direction": way, "how": how}).items()))
    name = op.name.removeprefix("running_")
    if name.startswith("sorted_") or name == "scan_keyed":
        return steps_in_order(rng, name)[0 if name == "scan_keyed" else -1]
    if name in {"moving_aggregate", "aggregate_result", "top", "over", *ON_ROWS}:
        return _arguments_on_rows(op, rng, how)
    match name:
        case "map" | "inspect" | "sort_by_key":
            given["f"] = _fn(rng.choice(MAPS))
        case "filter_map":
            given["f"] = _fn("lambda x: None if x[0] == 1 else x")
        case "filter":
            given["f"] = _fn(rng.choice(TESTS))
        case "flat_map":
            given["f"] = _fn(rng.choice(SPREADS))
        case "partition":
            given |= {"f": _fn('lambda x: "p" if x[0] > 0 else "q"'), "ports": ("p", "q")}
        case "fold":
            given |= {"init": rng.choice((0, 5)), "f": _commutative(rng.choice(PAIR_SUMS))}
        case "fold_keyed":
            given |= {"init": rng.choice((0, 5)), "f": _commutative(rng.choice(SUMS))}
        case "reduce":
            given["f"] = _commutative(rng.choice(PAIR_MAXES), "reduce")
        case "reduce_keyed":
            given["f"] = _commutative("lambda x, y: x + y", "reduce")
        case "latest":
            given |= {"by": ("k",), "order": ("v",)}
        case "aggregate":
            aggregates = (("n", "count", ()), ("s", "sum", ("v",)), ("m", "min", ("v",)))
            made = tuple((n, Aggregate(f, a)) for n, f, a in aggregates)
            given |= {"by": None if "global" in how else ("k",), "aggregates": made}
        case "window":
            given["n"] = rng.randint(1, 3)
        case "join":
            given["how"] = how.partition(":")[2] or "inner"
        case "limit":
            given["n"] = 1 if "single" in how else rng.randint(2, 3)
    args = Args(tuple(given.items()))
    return args if op.at(args).args else NO_ARGS


def _arguments_on_rows(op: OpSpec, rng: Random, how: str) -> Args:
    given: dict[str, object] = {a.name: a.default for a in op.args}
    by = None if "global" in how else ("k",)
    if op.name.endswith("over"):
        return one_key_of(rng)[0] if by is None else with_tails_of(rng)[op is RUNNING_OVER]
    if op.name.endswith("top"):
        given |= top_arguments(rng, by)
    elif op.name == "moving_aggregate":
        return dict(_known_of_aggregates(rng, by, moving=True))["moves"][0]
    elif op.name == "aggregate_result":
        made = tuple((f, Aggregate(f, ("total", "n"))) for f in ("sum", "avg"))
        given |= {"by": ("k",), "aggregates": made}
        given["schema"] = parse_ddl("k long, sum long, avg double")
    elif op.name == "rename":
        given["renames"] = (("w", "v"),)
    else:
        given["columns"] = ("k",)
        if op.name != "drop":
            given["computed"] = (("w", _fn("lambda r: (r.v or 0) + 1")),)
    return Args(tuple(given.items()))


SKIPPED = frozenset(
    {
        *("source", "source_iter", "tick", "sink", "null"),
        *("flatten", "zip", "zip_longest", "enumerate", "scan"),
        *("persist_mut", "persist_mut_keyed"),
    }
)


def all_shapes() -> Mapping[str, Shape]:
    """A shape for every operator that rules speak of, on bags and on sequences."""
    from hydro_core.catalog.registry import CATALOG

    found = dict(introduced())
    found |= {CHAIN: two(CHAIN, Sort.BAG), UNION: two(UNION, Sort.BAG)}
    found[f"{CHAIN}!"] = two(f"{CHAIN}!", Sort.SEQUENCE)
    rng = Random(0)
    for op in CATALOG.values():
        if op.name in SKIPPED or op.name in {CHAIN, UNION, "tee"}:
            continue
        hows = [op.name]
        if op.name == "join":
            hows = [f"join:{h}" for h in ("inner", "left", "right", "outer", "semi", "anti")]
        if op.name in VARIANTS:
            hows = [op.name, f"{op.name}:{VARIANTS[op.name]}"]
        for how in hows:
            args = arguments(op, rng, how)
            if args is None:
                continue
            node = Node(op.name, op, args, tuple(Endpoint("x") for _ in op.inputs))
            orders = (Order.NONE,) * len(op.inputs)
            shapes = list(_ordered(node))
            if not any(port.needs is Order.TOTAL for port in node.spec.inputs):
                made = Order.TOTAL if op.name.startswith("sort") else Order.NONE
                shapes.append(shape_of(node, orders, made))
            if op.name in {"fold_keyed", "reduce_keyed"}:
                steps = node.with_(args=steps_in_order(rng, op.name)[0])
                shapes.append(shape_of(steps, (Order.TOTAL,), Order.NONE))
            found |= {shape.name: shape for shape in shapes}
    return found


def _ordered(node: Node) -> Iterator[Shape]:
    from hydro_core.catalog.spec import OrderRule

    if node.spec.order is OrderRule.KEEPS and node.inputs:
        orders = (Order.TOTAL, *(Order.NONE for _ in node.inputs[1:]))
        yield shape_of(node, orders, Order.TOTAL)


def all_rules() -> tuple[Rule, ...]:
    """Every rule that there is."""
    shapes = all_shapes()
    found: list[Rule] = []
    for name, text, because, *when in LINES:
        try:
            found += make_rule(name, text, because, shapes, *when)
        except KeyError as missing:
            raise AssertionError(f"rule {name} names {missing}, which is no shape") from None
    found += derived.derived(shapes)
    return tuple(found)


def of_empty(rule: Rule) -> bool:
    """Whether the rule is about streams that never have an item."""
    facts = (*rule.when, rule.rhs)
    return any(isinstance(f, Fact) and f.name == "empty" for f in facts)


OF_ROWS = ("latest", "aggregate", "top", "over")
ON_ROWS = frozenset({"select", "with_columns", "rename", "drop"})
KNOWN_TOGETHER = {
    *("parts", "moving", "moves", "distinct_of", "apart", "opposite", "itself"),
    *OF_ORDER,
}
HOWS = {"opposite": ("semi", "anti")}
MORE = (("suffix", None), ("where", None))
VARIANTS = {"aggregate": "global", "top": "global", "over": "global", "limit": "single"}


def _known_of_aggregates(
    rng: Random, by: tuple[str, ...] | None, *, moving: bool
) -> Iterator[tuple[str, tuple[Args, ...]]]:
    """Facts of some random aggregates, those of windows apart."""
    for several in (MOVING,) if moving else (RUNNING, DISTINCT, MIXED):
        made = tuple((n, Aggregate(f, a)) for n, f, a in rng.choice(several))
        args = Args((("by", by), ("aggregates", made)))
        row = parse_ddl(ROW)
        yield from facts_of(args, row, aggregated(args, (row,)))


@dataclass
class Instance:
    """A rule over inputs: the graph of its two sides, and its inputs with their schemas."""

    rule: Rule
    rng: Random
    shapes: Mapping[str, Shape]
    nodes: dict[str, Node] = field(default_factory=dict)
    bound: dict[str, Endpoint] = field(default_factory=dict)
    payloads: dict[str, Args] = field(default_factory=dict)
    ports: dict[str, str] = field(default_factory=dict)
    count: int = 0
    known: list[tuple[str, tuple[Args, ...]]] = field(default_factory=list)
    """Facts of some random aggregates."""

    @property
    def schema(self) -> str:
        """What items the rule's operators take."""
        names = {s.removesuffix("!") for s in self._shape_names()}
        if self.rule.name == "aggregate-global-by-hand":
            return "v long"
        rows = {*OF_ROWS, *(f"running_{name}" for name in OF_ROWS), "moving_aggregate"}
        rows |= {f"{r}:global" for r in rows}
        if "aggregate_result" in names and not names & rows:
            return PARTS
        rows |= {*ON_ROWS, *(name for name in names if name.startswith("join_asof"))}
        return ROW if names & rows else PAIR

    def graph(self) -> Graph:
        """The two sides as outputs `left` and `right`; of a derived fact, the stream as `left`."""
        self._facts_first()
        for condition in self.rule.when:
            if isinstance(condition, EqualClasses):
                self._assume(condition)
        left = self._place(self.rule.lhs)
        self._sink("left", left)
        if not isinstance(self.rule.rhs, Fact):
            self._sink("right", self._place(self.rule.rhs))
        return Graph.of(self.nodes.values())

    def _shape_names(self) -> Iterator[str]:
        from hydro_core.optimize.rule import shapes_in

        for pattern in self.rule.patterns():
            yield from shapes_in(pattern)

    def _facts_first(self) -> None:
        for condition in self.rule.when:
            if not isinstance(condition, Fact):
                continue
            if condition.name in KNOWN_TOGETHER:
                self._arguments_of(condition)
            elif condition.name == "absorbs" and "aggregate" in self.rule.name:
                by = None if "global" in self.rule.name else ("k",)
                made = (("v", Aggregate("sum", ("v",))),)
                self.payloads["f"] = Args((("by", by), ("aggregates", made)))
            elif condition.name == "empty":
                name = condition.args[0].name
                source = self._input(name)
                self.bound[name] = self._add("difference", Args(), (source, source))
            elif condition.name == "itemless":
                literal = (("items", ()), ("schema", parse_ddl(self.schema)))
                self.payloads[condition.args[1].name] = Args(literal)
            elif condition.name == "growing":
                name = condition.args[0].name
                defined = any(
                    isinstance(c, EqualClasses) and c.left == condition.args[0]
                    for c in self.rule.when
                )
                if not defined:
                    self.bound[name] = self._add("persist", Args(), (self._input(name),))

    def _arguments_of(self, condition: Fact) -> None:
        """Binds the arguments of which the fact speaks to some of which it is true."""
        names = [a.name for a in condition.args]
        if condition.name in HOWS:
            found = [Args((("on", None), ("how", h), *MORE)) for h in HOWS[condition.name]]
        elif condition.name == "itself":
            return
        elif condition.name in OF_ORDER:
            found = known_of_order(self.rng, condition.name, self.rule.name)
        else:
            by = None if any(":global" in s for s in self._shape_names()) else ("k",)
            moving = "moving" in self.rule.name
            if not self.known:
                self.known = list(_known_of_aggregates(self.rng, by, moving=moving))
                # what is known of the same aggregates over a window comes last
                self.known = self.known[::-1] if moving else self.known
            found = next(list(args) for name, args in self.known if name == condition.name)
        for name, args in zip(names, found, strict=True):
            self.payloads.setdefault(name, args)

    def _assume(self, condition: EqualClasses) -> None:
        """Makes the equation true: its variable is the pattern; one that is in it is a cycle."""
        assert isinstance(condition.left, Var)
        name = condition.left.name
        if name in self.bound:
            # `?x = (persist ?a), ?x = (persist ?b)`: only equal batches have equal histories
            assert isinstance(condition.right, Pat)
            first = next(
                c
                for c in self.rule.when
                if isinstance(c, EqualClasses) and c.left == condition.left
            )
            assert isinstance(first.right, Pat)
            inner, other = first.right.inputs[0], condition.right.inputs[0]
            assert isinstance(inner, Var)
            assert isinstance(other, Var)
            self.bound[other.name] = self.bound[inner.name]
            return
        cycle = Endpoint(f"cycle_{name}")
        self.bound[name] = cycle
        value = self._place(condition.right)
        self.nodes[cycle.node] = Node(cycle.node, operator("union"), Args(), (value,))

    def _place(self, pattern: Pattern) -> Endpoint:
        if isinstance(pattern, Var):
            if pattern.name not in self.bound:
                self.bound[pattern.name] = self._input(pattern.name)
            return self.bound[pattern.name]
        shape = self.shapes[pattern.shape]
        self._fitting(pattern, shape)
        inputs = []
        for child, sort in zip(pattern.inputs, shape.inputs, strict=True):
            if isinstance(child, Var) and sort is Sort.SEQUENCE and child.name not in self.bound:
                source = self._input(child.name)
                self.bound[child.name] = self._add("sort", Args(), (source,))
            inputs.append(self._place(child))
        if pattern.shape == "bag":
            return self._add("union", Args(), tuple(inputs))
        op = shape.op or operator(pattern.shape.removesuffix("!"))
        if op.name == "anti_join":
            key = _fn("lambda x: x[0]")
            keys = self._add("map", Args((("f", key),)), (inputs[1],))
            inputs[1] = keys
        args = self._arguments(pattern, op)
        port = "p" if op.outputs == "ports" else ""
        return self._add(op.name, args, tuple(inputs), port)

    def _fitting(self, pattern: Pat, shape: Shape) -> None:
        """Binds what must be single to a stream that is."""
        name = pattern.shape.removesuffix("!")
        if name != "cross_singleton":
            return
        child, maker = pattern.inputs[1], operator("reduce")
        while isinstance(child, Pat) and child.shape == "prev":
            child = child.inputs[0]
        if isinstance(child, Var) and child.name not in self.bound:
            args = arguments(maker, self.rng, name)
            assert args is not None
            self.bound[child.name] = self._add(maker.name, args, (self._input(child.name),))

    def _arguments(self, pattern: Pat, op: OpSpec) -> Args:
        if pattern.payload is None:
            args = Args(tuple((a.name, a.default) for a in op.args))
            return args if op.at(args).args else NO_ARGS
        name = pattern.payload.name
        if name not in self.payloads:
            made = arguments(op, self.rng, pattern.shape.removesuffix("!"))
            assert made is not None
            self.payloads[name] = made
        return self.payloads[name]

    def _input(self, name: str) -> Endpoint:
        schema = parse_ddl(self.schema)
        args = Args((("schema", schema), ("name", name), ("fds", ())))
        self.nodes[name] = Node(name, operator("source"), args)
        return Endpoint(name)

    def _add(self, op: str, args: Args, inputs: tuple[Endpoint, ...], port: str = "") -> Endpoint:
        self.count += 1
        name = f"n{self.count}"
        self.nodes[name] = Node(name, operator(op), args, inputs)
        return Endpoint(name, port)

    def _sink(self, name: str, end: Endpoint) -> None:
        args = Args((("name", name),))
        self.nodes[f"sink_{name}"] = Node(f"sink_{name}", operator("sink"), args, (end,))
