"""The one form of a program between its text and its plan: an immutable graph of operators.

A node names what it reads, in the order of its operator's ports; sharing is two nodes that read
one endpoint, and a cycle is a chain of readings that comes back. Node ids are printable and
stable: the name of the statement for the operator that it stands for (the last one if the name is
read, else the first), the name of an output for its sink, else the operator and a number
(`join_1`), so plans and errors read as the program does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from hydro_core.catalog.classes import OpClass
from hydro_core.catalog.io import SINK, SOURCE
from hydro_core.catalog.spec import NO_ARGS, Args, OpSpec, Port
from hydro_core.errors import Diagnostic, Span
from hydro_core.types.records import NAME

NodeId = str


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """An output of a node; `port` is empty unless the node has several."""

    node: NodeId
    port: str = ""

    def __str__(self) -> str:
        return f"{self.node}[{self.port}]" if self.port else self.node


@dataclass(frozen=True, slots=True)
class Node:
    """One operator of the program; `inputs` stand in the order of `op.inputs`."""

    id: NodeId
    op: OpSpec = field(metadata={NAME: "operator"})
    args: Args = field(default=NO_ARGS, metadata={NAME: "arguments"})
    inputs: tuple[Endpoint, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def spec(self) -> OpSpec:
        """The operator's columns as they are under this node's arguments."""
        return self.op.at(self.args)

    @property
    def cls(self) -> OpClass:
        """What the operator is to time, keys and order under this node's arguments."""
        return self.op.class_of(self.args)

    def port_of(self, position: int) -> Port:
        """The port at which the input at `position` enters."""
        ports = self.spec.inputs
        return ports[0] if self.op.variadic else ports[position]

    def reads(self) -> Iterator[tuple[Port, Endpoint]]:
        """What the node reads, each with the port at which it enters."""
        ports = self.spec.inputs
        for position, endpoint in enumerate(self.inputs):
            yield ports[0] if self.op.variadic else ports[position], endpoint

    def with_(self, **changes: Any) -> Node:
        """A copy with some fields replaced."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Graph:
    """A program. `nodes` are in the order of the text; sources and sinks are nodes like any other.

    A `source` node has the argument `name`, and `schema` where it is declared; a `sink` node has
    `name`.
    """

    nodes: Mapping[NodeId, Node]
    name: str = "flow"
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False)

    @staticmethod
    def of(nodes: Iterable[Node], name: str = "flow", warnings: Iterable[Diagnostic] = ()) -> Graph:
        """The graph of these nodes; their ids must differ."""
        table = {}
        for node in nodes:
            if node.id in table:
                raise ValueError(f"two nodes are called {node.id!r}")
            table[node.id] = node
        return Graph(MappingProxyType(table), name, tuple(warnings))

    def with_nodes(self, nodes: Iterable[Node]) -> Graph:
        """The graph of other nodes, outputs last, called as this one and with its warnings."""
        last_sinks = sorted(nodes, key=lambda node: node.op.outputs == "none")
        return Graph.of(last_sinks, self.name, self.warnings)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    def __getitem__(self, node: NodeId) -> Node:
        return self.nodes[node]

    def readers(self, node: NodeId) -> tuple[Node, ...]:
        """The nodes that read some output of `node`."""
        return tuple(self._readers.get(node, ()))

    @cached_property
    def _readers(self) -> Mapping[NodeId, list[Node]]:
        found: dict[NodeId, list[Node]] = {}
        for reader in self:
            for read in dict.fromkeys(endpoint.node for endpoint in reader.inputs):
                found.setdefault(read, []).append(reader)
        return found

    def named(self, op: str) -> tuple[Node, ...]:
        """The nodes of the operator called `op`: for sources and sinks."""
        return tuple(n for n in self if n.op.name == op)

    @cached_property
    def sources(self) -> Mapping[str, Node]:
        """The input streams by their names."""
        return {n.args["name"]: n for n in self.named(SOURCE.name)}

    @cached_property
    def sinks(self) -> Mapping[str, tuple[Node, ...]]:
        """The sinks by the outputs' names, in the order of the text; those of one name add up."""
        table: dict[str, list[Node]] = {}
        for node in self.named(SINK.name):
            table.setdefault(node.args["name"], []).append(node)
        return {name: tuple(sinks) for name, sinks in table.items()}
