"""What is known of arguments: which folds resume, on what keys results are updated, how aggregates combine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hydro_core.catalog.spec import Aggregate, Args
from hydro_core.functions.fn import Fn
from hydro_core.ir.graph import Endpoint, Node
from hydro_core.optimize.load import Loaded
from hydro_core.optimize.shape import Payload
from hydro_core.optimize.space import Problem
from hydro_core.types.common import type_of
from hydro_core.types.item import Decimal, ItemType, Row, Tuple

COMBINES = {
    "count": "sum",
    "count_if": "sum",
    "sum": "sum",
    "min": "min",
    "max": "max",
    "any_value": "any_value",
    "bool_and": "bool_and",
    "bool_or": "bool_or",
}
"""The aggregate that merges partial results of each aggregate, of the same type."""
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

    def add(self, name: str, *args: int) -> None:
        """Something is known."""
        self.found.setdefault((name, args))


def with_facts(loaded: Loaded) -> Problem:
    """The problem with all that is known of its arguments."""
    problem = loaded.problem
    numbers = {p: i for i, p in enumerate(problem.payloads)}
    facts = _Facts(problem, numbers, {})
    for name, node in loaded.origins.items():
        item = _input_type(loaded, node)
        if item is None:
            continue
        payload = numbers.get(Payload(node.args))
        if payload is None:
            continue
        output = loaded.typed.types.get(Endpoint(node.id))
        if node.op.name in FOLDS and output and _is_resumable(node, item, output.item):
            facts.add("resumable", payload)
        if node.op.name in KEYED and (node.args["by"] or node.op.name != "aggregate"):
            how = Args((("on", node.args["by"]), ("how", "semi"), ("suffix", None)))
            facts.add("semi_on", payload, facts.number(Payload(how)))
        if node.op.name == "aggregate" and output:
            combined = _combining(node, output.item)
            if combined is not None:
                facts.add("combined_by", payload, facts.number(Payload(combined)))
    return replace(problem, payloads=tuple(facts.payloads), facts=tuple(facts.found))


def _input_type(loaded: Loaded, node: Node) -> ItemType | None:
    return loaded.typed.types[node.inputs[0]].item if node.inputs else None


def _is_resumable(node: Node, item: ItemType, output: ItemType) -> bool:
    """Whether the stored result is the accumulator itself: nothing is widened when it is stored."""
    fn = node.args["f"]
    if not isinstance(fn, Fn) or not fn.algebra.commutative:
        return False
    acc = _accumulator(node, item, output)
    if acc is None or ("init" in node.args and type_of(_value(node.args["init"])) != acc):
        return False
    return True


def _accumulator(node: Node, item: ItemType, output: ItemType) -> ItemType | None:
    """The type of the accumulator in the result."""
    if node.op.name in {"fold", "reduce"}:
        return output
    by = node.args["by"]
    match output:
        case Tuple((_, value)) if by is None:
            return value
        case Row(fields) if by is not None and node.op.name == "reduce_keyed":
            return output
        case Row(fields) if by is not None:
            init = type_of(_value(node.args["init"]))
            rest = tuple(f for f in fields if f.name not in by)
            if isinstance(init, Row):
                return Row(rest)
            return rest[0].type if len(rest) == 1 else None
        case _:
            return None


def _value(init: object) -> object:
    return init


def _combining(node: Node, output: ItemType) -> Args | None:
    """The arguments of the aggregate that merges partial results; None where some cannot be merged."""
    if not isinstance(output, Row):
        return None
    merged: list[tuple[str, Aggregate]] = []
    for name, aggregate in node.args["aggregates"]:
        function = COMBINES.get(aggregate.function)
        if function is None or isinstance(output.column(name), Decimal):
            return None
        merged.append((name, Aggregate(function, (name,))))
    return Args((("by", node.args["by"]), ("aggregates", tuple(merged))))
