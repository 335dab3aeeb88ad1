"""Facts about arguments that conditions of rules ask for: folds, keys, matches, functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from hydro_core.catalog.aggregates import MERGES
from hydro_core.catalog.classes import ByKey, ItemEffect, KeyMatch, Summary, is_itemwise
from hydro_core.catalog.combine import ANTI_JOIN, DIFFERENCE, JOIN
from hydro_core.catalog.ordered import OVER, with_tails
from hydro_core.catalog.registry import CATALOG
from hydro_core.catalog.spec import Args, functions_of
from hydro_core.errors import TypeProblem
from hydro_core.functions.result_type import result_type
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Endpoint, Node
from hydro_core.optimize.calls import FunctionUses
from hydro_core.optimize.columns import columns_of_aggregate
from hydro_core.optimize.egraph import Problem
from hydro_core.optimize.load import LoadedProblem
from hydro_core.optimize.rule import Line, Payload, Sort, lines
from hydro_core.optimize.rules.aggregates import facts_of
from hydro_core.optimize.rules.algebra import unfilled_streams
from hydro_core.optimize.rules.filters import (
    earlier_filters,
    equal_to_single,
    first_of_pairs,
    kept_rows,
)
from hydro_core.optimize.rules.ordered import made_of_sorted, of_one_key
from hydro_core.types.item import ItemType, Row, StreamType, Tuple, is_known
from hydro_core.types.values import ValueProblem, conform

# Facts about arguments: folds that accumulate, keys of updated results, and merging of aggregates.


EARLIER = frozenset(
    {"join_left", "join_right", "cross_left", "cross_right", "on_keys", "composed", "conjunct"}
)
"""Facts that let a filter go before an operator, or be split."""


@dataclass(slots=True)
class _Facts:
    """The facts of a program, and the items that rules may call functions with."""

    loaded: LoadedProblem
    payloads: dict[Payload, int]
    found: dict[tuple[str, tuple[int | str, ...]], None] = field(default_factory=dict)
    uses: FunctionUses = field(default_factory=FunctionUses)

    def add(self, name: str, *args: Args | int | str) -> None:
        """Adds a fact about streams, by their names, and arguments."""
        self.found.setdefault((name, tuple(map(self._key, args))))

    def _key(self, arg: Args | int | str) -> int | str:
        if isinstance(arg, Args):
            return self.payloads.setdefault(Payload(arg), len(self.payloads))
        return arg

    def asked(self, stream: Endpoint, *args: Args) -> None:
        """Rules may call the functions in arguments with the items of a stream."""
        item, there = self.loaded.typed.types[stream].item, stream.node in self.loaded.solid
        for fn in (fn for some in args for fn in functions_of(some)):
            self.uses.add(fn, item, there=there)


def with_facts(loaded: LoadedProblem) -> Problem:
    """The problem with all facts about its arguments."""
    problem = loaded.problem
    facts = _Facts(loaded, {p: i for i, p in enumerate(problem.payloads)})
    for payload, nodes in _by_payload(loaded, facts.payloads).items():
        # an incremental fold has the same arguments
        folds = [n for n in nodes if isinstance(n.cls, ByKey) and n.cls.is_fold]
        if folds and all(_accumulates(loaded, n) for n in folds):
            facts.add("accumulates", payload)
        if all(_absorbs(n) for n in nodes):
            facts.add("absorbs", payload)
    alike = tuple(_of_one_type(loaded))
    for node in alike:
        _of_node(node, facts)
    for name, filters in earlier_filters(loaded, alike, facts.uses):
        facts.add(name, *filters)
    for name, args in made_of_sorted(loaded):
        facts.add(name, *args)
        for fn in functions_of(args[0]) if name == "itself" else ():
            facts.uses.add(fn, fn.over[0], there=False)
    has_matches = any(isinstance(node.cls, KeyMatch) for node in loaded.origins.values())
    _of_single(facts, has_matches=has_matches)
    _of_uses(facts, has_matches=has_matches)
    _of_streams(facts)
    return replace(problem, payloads=tuple(facts.payloads), facts=tuple(facts.found))


def _of_single(facts: _Facts, *, has_matches: bool) -> None:
    """Facts about comparisons with a single item, which semi and anti joins may go before."""
    found = list(kept_rows(facts.loaded)) if has_matches else []
    for name, kept, columns in found:
        facts.add("kept", name, kept, columns)
        facts.add("moves", kept)
    equal = list(equal_to_single(facts.loaded))
    for args in equal:
        facts.add("equates" if len(args) == 2 else "equates_as", *args)
    for node in facts.loaded.origins.values() if found or equal else ():
        if first_of_pairs(node):
            facts.add("first", node.args)
            facts.add("total", node.args)


def _of_streams(facts: _Facts) -> None:
    """Streams that never have an item, each with an equal literal: no items, of its type."""
    loaded, problem = facts.loaded, facts.loaded.problem
    unfilled = unfilled_streams(problem)
    sorts = {d.name: problem.shapes[d.shape].output for d in problem.definitions}
    for end, stream in loaded.typed.types.items():
        name = loaded.names.get(str(end))
        if name is not None and sorts[name] is Sort.BAG and is_known(stream.item):
            facts.add("itemless", name, Args((("items", ()), ("schema", stream.item))))
            if name in unfilled:
                facts.add("empty", name)


def _of_uses(facts: _Facts, *, has_matches: bool) -> None:
    """Arguments whose functions have a value for every item that they may be called with."""
    for node in facts.loaded.origins.values():
        if len(node.inputs) == 1:
            facts.asked(node.inputs[0], node.args)
    for payload, number in facts.payloads.items():
        fns = tuple(functions_of(payload.args))
        if fns and facts.uses.are_total(fns):
            facts.add("total", number)
    # There are too many orders of filters. One may go before another only if it can then move
    # further, and any before a match.
    moving = {args[0] for name, args in facts.found if name in EARLIER}
    for number in facts.payloads.values():
        if ("total", (number,)) in facts.found and (has_matches or number in moving):
            facts.add("passes", number)


def _of_node(node: Node, facts: _Facts) -> None:
    """Facts about a node's arguments, which are used on items of one type."""
    types = facts.loaded.typed.types
    if _aggregates(node):
        item, output = types[node.inputs[0]].item, types[Endpoint(node.id)].item
        for name, args in facts_of(node.args, item, output):
            facts.add(name, *args)
            facts.asked(node.inputs[0], *args)
    elif node.op is OVER:
        stream = node.inputs[0]
        item, output = types[stream].item, types[Endpoint(node.id)].item
        of_one = of_one_key(node.args, item, output)
        if of_one is not None:
            facts.add("one_key", *of_one)
            for fn in (fn for args in of_one[1:3] for fn in functions_of(args)):
                facts.uses.add(fn, fn.over[0], there=stream.node in facts.loaded.solid)
        tails = with_tails(node.args, item, output)
        if tails is not None:
            facts.add("tails", node.args, *tails)
            facts.asked(stream, tails[0])
    elif node.op is JOIN and isinstance(node.cls, KeyMatch):
        rest = (("suffix", None), ("where", None))
        ways = (Args((("on", node.args["on"]), ("how", how), *rest)) for how in ("semi", "anti"))
        facts.add("opposite", *ways)


def _aggregates(node: Node) -> bool:
    cls = node.cls
    return isinstance(cls, ByKey) and cls.summary is Summary.AGGREGATES


def _of_one_type(loaded: LoadedProblem) -> Iterator[Node]:
    """The nodes for which a fact about one holds for all nodes with the same arguments."""
    types = loaded.typed.types
    uses: dict[object, set[object]] = {}
    nodes = [n for n in loaded.origins.values() if Endpoint(n.id) in types]
    for node in nodes:
        name, used = _use(node, node.args, types)
        uses.setdefault(name, set()).add(used)
    for node in nodes:
        name, _ = _use(node, node.args, types)
        if len(uses[name]) == 1:
            yield node


def _use(node: Node, args: Args, types: Mapping[Endpoint, StreamType]) -> tuple[object, object]:
    """The identity of facts about these arguments, and the types that they depend on.

    Facts about an aggregate depend on the columns that it reads. Other facts are about filters,
    each called with items of one type: those of the node's output.
    """
    items = tuple(types[e].item for e in node.inputs)
    output = types[Endpoint(node.id)].item
    if not node.spec.args:
        return node.id, (items, output)
    if not _aggregates(node):
        return (node.op, args, output), items
    columns = columns_of_aggregate(args)
    if columns is None or not isinstance(items[0], Row):
        return (node.op, args), (items, output)
    looked_at = tuple((f.name, f.type) for f in items[0].fields if f.name in columns)
    return (node.op, args), (looked_at, output)


def _by_payload(loaded: LoadedProblem, numbers: Mapping[Payload, int]) -> Mapping[int, list[Node]]:
    """By number of arguments: the nodes that have them."""
    found: dict[int, list[Node]] = {}
    for node in loaded.origins.values():
        number = numbers.get(Payload(node.args))
        if number is not None and node.inputs:
            found.setdefault(number, []).append(node)
    return found


def _absorbs(node: Node) -> bool:
    """True if the result may stand for the items that it was computed from, in any order."""
    if not isinstance(node.cls, ByKey) or "init" in node.args:
        return False
    if "aggregates" in node.args:
        return all(
            MERGES.get(a.function) == a.function and a.arguments == (name,)
            for name, a in node.args["aggregates"]
        )
    f = node.args.get("f")
    return f is None or (f.algebra.associative and f.algebra.commutative)


def _accumulates(loaded: LoadedProblem, node: Node) -> bool:
    """True if the stored result of a fold is the accumulator itself, without coercion."""
    types = loaded.typed.types
    item, output = types[node.inputs[0]].item, types[Endpoint(node.id)].item
    fn, by = node.args["f"], node.args.get("by")
    keyed = isinstance(node.cls, ByKey) and node.cls.keyed
    pair = isinstance(item, Tuple) and len(item.fields) == 2
    if not isinstance(fn, Fn) or not fn.algebra.commutative or (keyed and by is None and not pair):
        return False
    value = item.fields[1] if keyed and by is None and isinstance(item, Tuple) else item
    if "init" not in node.args:
        return output == item and _step(fn, value, value) == value
    init = node.args["init"]
    acc = _accumulator(output, by, init) if keyed else output
    if acc is None or _step(fn, acc, value) != acc:
        return False
    try:
        return repr(conform(init, acc)) == repr(init)
    except ValueProblem:
        return False


def _step(fn: Fn, acc: ItemType, value: ItemType) -> ItemType | None:
    """The type of one step's result."""
    try:
        return result_type(fn, (acc, value), spread=False)
    except TypeProblem:
        return None


def _accumulator(output: ItemType, by: tuple[str, ...] | None, init: object) -> ItemType | None:
    """The type of the accumulator in a keyed result."""
    match output:
        case Tuple((_, value)) if by is None:
            return value
        case Row(fields) if by is not None:
            rest = tuple(f for f in fields if f.name not in by)
            if isinstance(init, dict):
                return Row(rest)
            return rest[0].type if len(rest) == 1 and not isinstance(rest[0].type, Row) else None
        case _:
            return None


# Rules that call a filter earlier than the program does, so that state stays small.


FILTERS: tuple[Line, ...] = (
    (
        "filter-unique",
        "(filter ?p (unique ?a)) => (unique (filter ?p ?a))",
        "a filter keeps all copies of an item or none",
    ),
    *(
        (
            f"filter-{name}",
            f"(filter ?p {op} ?a ?b)) => {op} {sides})",
            "the filter looks at this side only, and has a value for every item of it",
            f"({fact} ?q)",
        )
        for name, op, sides, fact in (
            ("join-left", "(join ?j", "(filter ?q ?a) ?b", "join_left ?p ?j"),
            ("join-right", "(join ?j", "?a (filter ?q ?b)", "join_right ?p ?j"),
            ("left-join", "(join:left ?j", "(filter ?q ?a) ?b", "join_left ?p ?j"),
            ("right-join", "(join:right ?j", "?a (filter ?q ?b)", "join_right ?p ?j"),
            ("cross-left", "(cross", "(filter ?q ?a) ?b", "cross_left ?p"),
            ("cross-right", "(cross", "?a (filter ?q ?b)", "cross_right ?p"),
        )
    ),
    *(
        (
            f"filter-{op.name.replace('_', '-')}",
            f"(filter ?p ({op.name} ?f ?a)) => ({op.name} ?f (filter ?q ?a))",
            "the filter looks at the key only, and a key's rows stay together",
            "(on_keys ?p ?f ?q)",
        )
        for op in CATALOG.values()
        if isinstance(op.cls, ByKey) and op.cls.keyed
    ),
    *(
        (
            f"filter-{op.name.replace('_', '-')}",
            f"(filter ?p ({op.name} ?f ?a)) => ({op.name} ?f (filter ?q ?a))",
            "what the filter looks at is there before",
            "(composed ?p ?f ?q)",
        )
        for op in CATALOG.values()
        if is_itemwise(op.cls) and op.cls.gives is ItemEffect.ONE
    ),
    *(
        (
            f"filter-{op.replace('join:', '').replace('_', '-')}",
            f"(filter ?p ({op}{payload} ?a ?b)) => ({op}{payload} (filter ?p ?a) ?b)",
            "both keep an item or not by itself, so either may come first",
        )
        for op, payload in (
            ("join:semi", " ?j"),
            ("join:anti", " ?j"),
            (ANTI_JOIN.name, ""),
            (DIFFERENCE.name, ""),
        )
    ),
    *lines("""
filter-and: (filter ?p ?a) => (filter ?r (filter ?q ?a))
    when (conjunct ?p ?q ?r)
    what is true of an item if two things are
filter-swap: (filter ?p (filter ?q ?a)) => (filter ?q (filter ?p ?a))
    when (passes ?p)
    both keep an item or not by itself, and the first has a value for every item
"""),
)


# Rules about matches in a history: which of them are new.


MATCHES: tuple[Line, ...] = (
    *lines("""
semi-split-right: (join:semi ?s ?a (chain (prev ?b) ?c))
    => (chain (join:semi ?s ?a (prev ?b)) (join:semi ?s (join:anti ?t ?a (prev ?b)) ?c))
    when (opposite ?s ?t)
    what had no match before may have one in the new part
semi-before-anti: (join:semi ?s (join:anti ?t ?a ?b) ?c)
    => (join:anti ?t (join:semi ?s ?a ?c) ?b)
    both keep a row or not by its key alone, so either may come first
"""),
    *(
        (
            f"{how}-before-single",
            (
                f"(join:{how} ?j (map ?m (filter ?p (cross_singleton ?a ?u))) ?b) => (map ?m"
                " (filter ?p (cross_singleton (select ?s (aggregate ?c"
                f" (join:{how} ?j ?a ?b))) ?u)))"
            ),
            "a match keeps a row or not by its key alone, and each row is there once",
            "(kept ?a ?c ?s)",
            "(first ?m)",
        )
        for how in ("semi", "anti")
    ),
    *(
        (
            f"equal-to-single{called}",
            f"(map ?m (filter ?p (cross_singleton ?a ?u))) => (join:semi ?j ?a {single})",
            "what equals the one item in a column has a match in it",
            f"({fact} ?p ?j{renames})",
            "(first ?m)",
        )
        for called, fact, renames, single in (
            ("", "equates", "", "?u"),
            ("-renamed", "equates_as", " ?r", "(rename ?r ?u)"),
        )
    ),
)
