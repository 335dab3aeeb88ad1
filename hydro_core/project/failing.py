"""A program that goes on where a function fails on an item: the item goes to the quarantine.

Before each operator that calls functions with its items stand two that the program cannot name:
one hands the items on for which they have a result, the other says what the rest are. So the
program means what it meant, of the items that are left; and each engine, range and shard does with
the two what it does with every operator.

Which items a fold's function fails on, or one of two inputs, is open, since another plan calls it
with others: such functions are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import assert_never

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.classes import (
    ItemEffect,
    Linear,
    OverTime,
    PerItem,
    PerKey,
    PerPosition,
    Product,
    StreamEnd,
)
from hydro_core.catalog.internal import FAILING, FITTING
from hydro_core.catalog.itemwise import SINK
from hydro_core.catalog.spec import Arg, Args, OpSpec, functions_of
from hydro_core.catalog.state import DELTA
from hydro_core.errors import Diagnostic
from hydro_core.functions.call import Use
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId, free_name
from hydro_core.optimize.calls import is_total
from hydro_core.plan.tick_plan import Kind, kinds_of
from hydro_core.types.item import QUARANTINE, STRING, Field, Row

ROWS = Row(tuple(Field(name, STRING) for name in ("source", "place", "reason", "row")))
"""The rows of the quarantine."""
_CURE = (
    "compute what may fail before, in `map`, `with_columns` or another operator that goes item by "
    "item; or leave `on_error` of the flow out"
)


def without_failing(typed: Typed) -> Graph:
    """The program, whose items on which functions fail go to the output `quarantine`.

    `refused` says which functions it may not have.
    """
    made = _ProgramDraft(typed, kinds_of(typed, ()), {*typed.graph.nodes})
    return Graph.of(made.nodes(), typed.graph.name, typed.graph.warnings)


def refused(typed: Typed) -> Iterator[Diagnostic]:
    """The functions that may fail on something else than an item of one input."""
    for node in typed.graph:
        for fn, arg in _functions(node):
            if not _is_of_an_item(node, arg):
                what = "an accumulator" if arg.leading else "items of two inputs"
                yield Diagnostic(
                    "config",
                    f"`{node.op.called}`: the function {fn.name} is called with {what}, so no item "
                    "can be put in quarantine where it fails",
                    fn.span or node.span,
                    node.op.name,
                    help=_CURE,
                )


@dataclass(slots=True)
class _ProgramDraft:
    typed: Typed
    kinds: Mapping[NodeId, Kind]
    taken: set[str]
    added: list[Node] = field(default_factory=list)

    def nodes(self) -> Iterator[Node]:
        for node in self.typed.graph:
            calls = self._calls(node)
            yield self._guarded(node, calls) if calls else node
        yield from self.added

    def _calls(self, node: Node) -> tuple[tuple[str, Fn], ...]:
        """The functions that may fail on an item that enters the node."""
        found = dict.fromkeys(fn for fn, arg in _functions(node) if _is_of_an_item(node, arg))
        if not found:
            return ()
        item, plain = self.typed.types[node.inputs[0]].item, _use(node) in (Use.ITEM, Use.TEST)
        doubtful = (f for f in found if not (plain and f.returns is None and is_total(f, item)))
        return tuple((f"f{number}", fn) for number, fn in enumerate(doubtful, 1))

    def _guarded(self, node: Node, calls: tuple[tuple[str, Fn], ...]) -> Node:
        args = (("calls", calls), ("use", str(_use(node))), ("ports", node.args.get("ports", ())))
        reads, span = node.inputs, node.span
        fitting = self._node(FITTING, f"{node.id}_fitting", reads, args)
        # Where the first of the functions stands.
        at = calls[0][1].span or span
        place = f"{PurePath(at.file).name}, line {at.line}" if at is not None else ""
        of = [("source", f"{node.op.called}()"), ("schema", ROWS), ("place", place)]
        described = (*args, *of)
        failing = self._node(FAILING, f"{node.id}_failing", reads, described)
        found = [fitting.with_(span=span), failing.with_(span=span)]
        if self.kinds[reads[0].node] is not Kind.E:
            # What is there in many ticks is wrong once: in the tick in which it comes.
            found.append(self._node(DELTA, f"{node.id}_failed", (Endpoint(failing.id),), ()))
        name = (("name", QUARANTINE),)
        found.append(self._node(SINK, QUARANTINE, (Endpoint(found[-1].id),), name))
        self.added += found
        return node.with_(inputs=(Endpoint(fitting.id), *reads[1:]))

    def _node(
        self, op: OpSpec, called: str, reads: Sequence[Endpoint], args: Sequence[tuple[str, object]]
    ) -> Node:
        free = free_name(called, self.taken)
        self.taken.add(free)
        return Node(free, op, Args(tuple(args)), tuple(reads))


def _functions(node: Node) -> Iterator[tuple[Fn, Arg]]:
    for arg in node.op.args:
        for fn in functions_of(node.args.get(arg.name)):
            yield fn, arg


def _is_of_an_item(node: Node, arg: Arg) -> bool:
    """True if a function takes an item of the only input, and nothing else."""
    return len(node.inputs) == 1 and not arg.leading and arg.kind != "value"


def _use(node: Node) -> Use:
    cls = node.cls
    match cls:
        case PerItem(ItemEffect.SAME | ItemEffect.SOME):
            return Use.TEST
        case PerItem(ItemEffect.SEVERAL):
            return Use.PARTS
        case PerItem(ItemEffect.ROUTED):
            return Use.PORT
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return Use.ITEM
        case _:
            assert_never(cls)
