"""Terms: streams as expressions over operators, and the conversion from graphs, whose cycles and
sharing become names.

Every output is a term of its own, closed except for its inputs, which are `Application`s of
sources. A stream that is read more than once is bound by `LetTerm`, streams that feed each other by
one `LetRec`. A long pipeline is bound by `LetTerm` in pieces. Ids, arguments and spans are
preserved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hydro_core.catalog.itemwise import SINK
from hydro_core.catalog.spec import NO_ARGS, Args, OpSpec
from hydro_core.errors import Span
from hydro_core.ir.graph import Endpoint, Graph, NodeId, components, is_cycle


@dataclass(frozen=True, slots=True)
class Ref:
    """A name that a `LetTerm` or `LetRec` around it binds."""

    name: str


@dataclass(frozen=True, slots=True)
class Application:
    """An operator applied to streams; `port` names the output of an operator with several."""

    op: OpSpec
    args: Args = NO_ARGS
    inputs: tuple[Term, ...] = ()
    port: str = ""
    origin: str = field(default="", compare=False)
    """The id of its node in the graph."""
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LetTerm:
    """`body`, in which `name` is the stream `bound`, computed once."""

    name: str
    bound: Term
    body: Term


@dataclass(frozen=True, slots=True)
class LetRec:
    """`body`, in which each name is the stream bound to it; the bound terms may use the names."""

    bindings: tuple[tuple[str, Term], ...]
    body: Term


Term = Ref | Application | LetTerm | LetRec


def applications(term: Term) -> Iterator[Application]:
    """Every application in the term, from the inside out; shared ones once."""
    while True:
        match term:
            case Application():
                for child in term.inputs:
                    yield from applications(child)
                yield term
                return
            case LetTerm(_, bound, body):
                yield from applications(bound)
                term = body
            case LetRec(bindings, body):
                for _, bound in bindings:
                    yield from applications(bound)
                term = body
            case Ref():
                return


MAX_NESTING = 40
"""The deepest nesting of operators; deeper ones are bound by a `let`."""
Bindings = tuple[tuple[str, Term], ...]


def to_terms(graph: Graph) -> Mapping[NodeId, Term]:
    """The term of every sink, by the sink's id; the sink itself is left out."""
    return {sink.id: to_term(graph, sink.inputs[0]) for sink in graph.named(SINK.name)}


def to_term(graph: Graph, root: Endpoint) -> Term:
    reads = _reads(graph, root)
    ends = {str(e): e for e in reads}
    successors = {str(e): [str(r) for r in rs] for e, rs in reads.items()}
    uses: dict[str, int] = {str(root): 1}
    for read in reads.values():
        for e in read:
            uses[str(e)] = uses.get(str(e), 0) + 1
    work = _Terms(graph, ends, uses)
    nested: dict[str, int] = {}
    layers: list[tuple[bool, Bindings]] = []
    for group in components(successors):
        if is_cycle(group, successors):
            layers.append((True, work.recursive(group, successors)))
            continue
        nested[group[0]] = 1 + max((nested.get(r, 0) for r in successors[group[0]]), default=0)
        is_shared = uses[group[0]] > 1 and graph[ends[group[0]].node].inputs
        if is_shared or nested[group[0]] >= MAX_NESTING:
            nested[group[0]] = 0
            name = work.bind(group[0])
            layers.append((False, ((name, work.application(group[0])),)))
    body = work.term(str(root))
    for is_recursive, bindings in reversed(layers):
        body = LetRec(bindings, body) if is_recursive else LetTerm(*bindings[0], body)
    return body


@dataclass(slots=True)
class _Terms:
    graph: Graph
    ends: Mapping[str, Endpoint]
    uses: Mapping[str, int]
    names: dict[str, str] = field(default_factory=dict)

    def bind(self, end: str) -> str:
        """A name for a stream: its own, if no input has that name."""
        node = self.ends[end].node
        name = node if not self.ends[end].port else f"{node}_{self.ends[end].port}"
        taken = {*self.names.values(), *self.graph.sources, "let", "letrec"}
        while name in taken:
            name += "_"
        self.names[end] = name
        return name

    def recursive(self, group: tuple[str, ...], successors: Mapping[str, list[str]]) -> Bindings:
        """The bindings of a cycle: streams that are read more than once, and one on every cycle."""
        inside = set(group)
        bound = [e for e in group if self.uses[e] > 1] or [group[0]]
        while True:
            left = inside - set(bound)
            within = {end: [e for e in successors[end] if e in left] for end in sorted(left)}
            if not any(is_cycle(part, within) for part in components(within)):
                break
            bound.append(next(e for e in group if e not in bound))
        named = [(self.bind(e), e) for e in group if e in bound]
        return tuple((name, self.application(e)) for name, e in named)

    def term(self, end: str) -> Term:
        """A stream as its readers have it: a name, or its operator."""
        return Ref(self.names[end]) if end in self.names else self.application(end)

    def application(self, end: str) -> Term:
        """A stream as its operator applied to its inputs."""
        endpoint = self.ends[end]
        node = self.graph[endpoint.node]
        inputs = tuple(self.term(str(e)) for e in node.inputs)
        return Application(node.op, node.args, inputs, endpoint.port, node.id, node.span)


def _reads(graph: Graph, root: Endpoint) -> Mapping[Endpoint, tuple[Endpoint, ...]]:
    found: dict[Endpoint, tuple[Endpoint, ...]] = {}
    todo = [root]
    while todo:
        endpoint = todo.pop()
        if endpoint not in found:
            found[endpoint] = graph[endpoint.node].inputs
            todo += reversed(found[endpoint])
    return found
