"""What is known of arguments: which folds resume, on what keys results are updated, how aggregates
combine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hydro_core.catalog.internal import MERGES
from hydro_core.catalog.spec import Args
from hydro_core.errors import TypeProblem
from hydro_core.functions.fn import Fn
from hydro_core.functions.result_type import result_type
from hydro_core.ir.graph import Endpoint, Node
from hydro_core.optimize.load import Loaded
from hydro_core.optimize.shape import Payload
from hydro_core.optimize.space import Problem
from hydro_core.optimize.views import NOTHING, View, is_total, row_view, side_view, through
from hydro_core.types.item import ItemType, Row, Tuple
from hydro_core.types.values import ValueProblem, conform

MAX_FILTERS = 60
"""Filters, the program's and moved ones, that are looked at."""
KEYED = frozenset({"latest", "fold_keyed", "reduce_keyed", "aggregate"})
FOLDS = frozenset({"fold", "fold_keyed", "reduce", "reduce_keyed"})


@dataclass(slots=True)
class _Facts:
    problem: Problem
    payloads: dict[Payload, int]
    found: dict[tuple[str, tuple[int | str, ...]], None]

    def number(self, payload: Payload) -> int:
        """The number of these arguments."""
        return self.payloads.setdefault(payload, len(self.payloads))

    def numbers_of(self, node: Node) -> tuple[int, ...]:
        """The number of the node's arguments, nothing for an operator without."""
        return (self.number(Payload(node.args)),) if node.op.args else ()

    def add(self, name: str, *args: int) -> None:
        """Something is known."""
        self.found.setdefault((name, args))


def with_facts(loaded: Loaded) -> Problem:
    """The problem with all that is known of its arguments."""
    problem = loaded.problem
    numbers = {p: i for i, p in enumerate(problem.payloads)}
    facts = _Facts(problem, numbers, {})
    for payload, nodes in _by_payload(loaded, numbers).items():
        first = nodes[0]
        if all(n.op.name in FOLDS and _resumes(loaded, n) for n in nodes):
            facts.add("resumable", payload)
        if first.op.name in KEYED and (first.args["by"] or first.op.name != "aggregate"):
            how = Args((("on", first.args["by"]), ("how", "semi"), ("suffix", None)))
            facts.add("semi_on", payload, facts.number(Payload(how)))
        if first.op.name == "aggregate":
            functions = {a.function for _, a in first.args["aggregates"]}
            if functions <= MERGES.keys():
                facts.add("mergeable", payload)
    _earlier_filters(loaded, facts)
    return replace(problem, payloads=tuple(facts.payloads), facts=tuple(facts.found))


def _earlier_filters(loaded: Loaded, facts: _Facts) -> None:
    """Which filters may go before which joins and which keyed results, and as what functions."""
    types = loaded.typed.types
    filters = [n for n in loaded.origins.values() if n.op.name == "filter"]
    waiting = [(n.args, types[n.inputs[0]].item) for n in filters]
    nodes = tuple(_of_one_type(loaded))
    done: set[int] = set()
    while waiting:
        args, item = waiting.pop()
        number = facts.number(Payload(args))
        if number in done or len(done) > MAX_FILTERS:
            continue
        done.add(number)
        for node in nodes:
            output = types.get(Endpoint(node.id))
            if output is None or output.item != item:
                continue
            for fact, fn, inner in _before(
                node, args["f"], tuple(types[e].item for e in node.inputs), item
            ):
                moved = Args((("f", fn),))
                other = facts.numbers_of(node)
                facts.add(fact, number, *other, facts.number(Payload(moved)))
                waiting.append((moved, inner))


def _of_one_type(loaded: Loaded) -> Iterator[Node]:
    """The nodes whose arguments are used on items of one type: what holds of one holds of all."""
    types = loaded.typed.types
    uses: dict[object, set[object]] = {}
    nodes = [n for n in loaded.origins.values() if Endpoint(n.id) in types]
    for node in nodes:
        used = (*(types[e].item for e in node.inputs), types[Endpoint(node.id)].item)
        uses.setdefault((node.op, node.args) if node.op.args else node.id, set()).add(used)
    for node in nodes:
        if len(uses[(node.op, node.args) if node.op.args else node.id]) == 1:
            yield node


def _before(
    node: Node, fn: Fn, inputs: tuple[ItemType, ...], output: ItemType
) -> Iterator[tuple[str, Fn, ItemType]]:
    """The facts that let the filter go before the node: as what function, on which items."""
    label = f"{node.op.name} {node.args.get('on') or node.args.get('by') or ''}".strip()
    if node.op.name in {"join", "cross"}:
        on = node.args.get("on")
        how = node.args.get("how", "inner")
        for left, side in ((True, "left"), (False, "right")):
            if how not in {"inner", side}:
                continue
            item = inputs[0] if left else inputs[1]
            view = _side(node, output, item, on, left)
            moved = through(fn, view, f"the {side} of {label}") if view else None
            # it would see items without a partner, so it must have a value for every item
            if moved is not None and moved.tree is not None and is_total(moved.tree):
                yield f"{node.op.name}_{side}", moved, item
    elif node.op.name in KEYED and node.args["by"]:
        view = (
            row_view(output, {k: k for k in node.args["by"]}) if isinstance(output, Row) else None
        )
        moved = through(fn, view, f"the keys of {label}") if view else None
        if moved is not None:
            yield "on_keys", moved, inputs[0]


def _side(
    node: Node, output: ItemType, item: ItemType, on: tuple[str, ...] | None, left: bool
) -> View | None:
    if node.op.name == "join":
        return side_view(output, item, on, left)
    whole = View(whole=True)
    return View(parts=(whole, NOTHING) if left else (NOTHING, whole))


def _by_payload(loaded: Loaded, numbers: Mapping[Payload, int]) -> Mapping[int, list[Node]]:
    """The nodes that have the same arguments."""
    found: dict[int, list[Node]] = {}
    for node in loaded.origins.values():
        number = numbers.get(Payload(node.args))
        if number is not None and node.inputs:
            found.setdefault(number, []).append(node)
    return found


def _resumes(loaded: Loaded, node: Node) -> bool:
    types = loaded.typed.types
    return _is_resumable(node, types[node.inputs[0]].item, types[Endpoint(node.id)].item)


def _is_resumable(node: Node, item: ItemType, output: ItemType) -> bool:
    """Whether the stored result is the accumulator itself, as it is: nothing is widened when it is
    stored.
    """
    fn = node.args["f"]
    by = node.args.get("by")
    keyed = node.op.name.endswith("_keyed")
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
