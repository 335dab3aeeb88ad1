"""What becomes of rows that are wrong: they go to an output of their own, and the flow goes on.

A flow whose asset asks for it is another program than the one that is written: its inputs are read
in a wider type, in which wrong rows are rows, too, and these flow into an output `quarantine`. So
they are late, corrected, restated and rolled back as every row is, and deployed as every output.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from hydro_core.catalog.itemwise import DROP, FILTER, MAP, SELECT, SINK
from hydro_core.catalog.spec import Args, OpSpec
from hydro_core.errors import ProgramError
from hydro_core.functions.read import read_function
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId, free_name
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.types.item import (
    PLACE,
    QUARANTINE,
    REASON,
    ROW,
    WRONG,
    ItemType,
    Row,
    Tuple,
    declared_columns,
    widened,
)

QUARANTINE_COLUMNS: Mapping[str, str] = {
    "source": "the input that the row is of, or the operator whose function fails on it",
    "place": "where the row lies: a file and a line or row of it; or where the function stands",
    "reason": "why it is wrong",
    "row": "the row itself, as it lies in its file, or as JSON",
}
"""The columns of that output, and what they say."""


def asks(flow: FlowAsset) -> bool:
    return flow.on_error is not None or bool(quarantined_inputs(flow))


def quarantined_inputs(flow: FlowAsset) -> Mapping[str, int]:
    """The inputs whose wrong rows are put in quarantine, with how many a tick may have."""
    return {n: of.on_error.quarantine for n, of in flow.landings.items() if of.on_error is not None}


def with_quarantine(flow: FlowAsset, graph: Graph, schemas: Mapping[str, ItemType]) -> Graph:
    """The program of a flow, as it is written, with its quarantine; the same, if its asset asks for
    none. `schemas` types inputs that it does not declare.

    Raises:
        ProgramError: an input or output cannot be what is asked (code `config`).
    """
    if not asks(flow):
        return graph
    if QUARANTINE in graph.sinks:
        raise _wrong(
            flow,
            "on_error",
            f"the program has an output `{QUARANTINE}`, and wrong rows are to go to one",
            "give that output another name",
        )
    made = _ProgramDraft(flow, set(graph.nodes), {}, [])
    for name in quarantined_inputs(flow):
        if name in graph.sources:
            made.widen(graph.sources[name], schemas)
    graph = Graph.of(made.nodes_of(graph), graph.name, graph.warnings)
    if flow.on_error is None:
        return graph
    # What judges functions is not loaded where no flow asks for it.
    from hydro_core.compile import compile_graph
    from hydro_core.project.failing import refused, without_failing

    typed = compile_graph(graph, schemas).typed
    problems = tuple(refused(typed))
    if problems:
        raise ProgramError(*problems)
    return without_failing(typed)


@dataclass(frozen=True, slots=True)
class _ProgramDraft:
    flow: FlowAsset
    taken: set[str]
    instead: dict[NodeId, list[Node]]
    """The nodes in the place of another; the first has its id, and its readers read the last."""
    added: list[Node]

    def widen(self, source: Node, schemas: Mapping[str, ItemType]) -> None:
        """Has an input give the wrong rows, too, and takes them apart from the others."""
        name = source.args["name"]
        item: ItemType | None = source.args["schema"] or schemas.get(name)
        if item is None:
            cure = f'declare it: `{name} = source("…")`, or `schemas: {{{name}: "…"}}`'
            said = "without a type of its rows none of them is wrong"
            raise _wrong(self.flow, f"inputs.{name}.on_error", said, cure)
        columns = _columns(self.flow, name, item)
        wide = source.with_(args=source.args.with_(schema=widened(item)))
        right = self._node(FILTER, f"{name}_right", Endpoint(wide.id), f=_is(REASON, "is None"))
        if isinstance(item, Row):
            rows = self._node(DROP, f"{name}_rows", Endpoint(right.id), columns=WRONG)
        else:
            whole = ", ".join(f'r["{column}"]' for column in columns)
            made = f"({whole},)" if isinstance(item, Tuple) else whole
            rows = self._node(MAP, f"{name}_rows", Endpoint(right.id), f=_fn(f"lambda r: {made}"))
        self.instead[source.id] = [wide, right, rows]
        wrong = self._node(FILTER, f"{name}_wrong", Endpoint(wide.id), f=_is(REASON, "is not None"))
        of = {"place": PLACE, "reason": REASON, "row": ROW}
        told = {"source": repr(name), **{column: f"r.{said}" for column, said in of.items()}}
        computed = tuple((column, _fn(f"lambda r: {said}")) for column, said in told.items())
        described = self._node(
            *(SELECT, f"{name}_in_quarantine", Endpoint(wrong.id)), columns=(), computed=computed
        )
        sink = self._node(SINK, QUARANTINE, Endpoint(described.id), name=QUARANTINE)
        self.added.extend([wrong, described, sink])

    def nodes_of(self, graph: Graph) -> Iterator[Node]:
        read = {node: Endpoint(chain[-1].id) for node, chain in self.instead.items()}
        for node in graph:
            if node.id in self.instead:
                yield from self.instead[node.id]
            else:
                yield node.with_(inputs=tuple(read.get(e.node, e) for e in node.inputs))
        yield from self.added

    def _node(self, op: OpSpec, called: str, reads: Endpoint, **args: object) -> Node:
        free = free_name(called, self.taken)
        self.taken.add(free)
        return Node(free, op, Args(tuple(args.items())), (reads,))


def _columns(flow: FlowAsset, name: str, item: ItemType) -> Collection[str]:
    columns = declared_columns(item) or {}
    clash = next((column for column in WRONG if column in columns), None)
    if clash is not None:
        message = f"it has a column `{clash}`, which says what is wrong with a row"
        cure = "give the column another name where it lands"
        raise _wrong(flow, f"inputs.{name}.on_error", message, cure)
    return columns


def _wrong(flow: FlowAsset, place: str, message: str, cure: str) -> ProgramError:
    at = place if place in flow.places else "on_error"
    return ProgramError(flow.problem_at(place, message, cure, at))


def _is(column: str, test: str) -> Fn:
    return _fn(f"lambda r: r.{column} {test}")


def _fn(text: str) -> Fn:
    return read_function(ast.parse(text, mode="eval").body, {})
