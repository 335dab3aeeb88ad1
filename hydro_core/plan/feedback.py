"""How a range runs operators that read the tick before of each other.

Three answers, the best first. `first seen`: `x = difference(d, old x)` with d free of x is each
item of d at its first tick; so it is by key with a join that keeps what has no match. `across
ticks`: where no operator waits for the whole of a tick, a range is one fixpoint, in which `prev`
leads to the next tick. `tick by tick`: all others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.classes import Distinct, History, Matching, OpClass, passes_on
from hydro_core.catalog.spec import Barrier, State
from hydro_core.catalog.variants import Compares
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.ir.walk import first_inputs, same_tick
from hydro_core.plan.kinds import Kind
from hydro_core.plan.tick_plan import Component, Execution
from hydro_core.plan.versions import Key, keeps_key
from hydro_core.types.stream import Order

_BEFORE = History(before=True)


def component_with_feedback(
    nodes: tuple[NodeId, ...], parts: tuple[Component, ...], typed: Typed
) -> Component:
    """The component of these nodes; `parts` are what is left of it within a tick."""
    chain = first_seen(nodes, typed.graph)
    if chain:
        return Component(chain, "first seen", parts)
    how: Execution = "tick by tick" if next(_obstacles(nodes, typed), None) else "across ticks"
    return Component(tuple(n for p in parts for n in p.nodes), how, parts)


def first_seen(nodes: Collection[NodeId], graph: Graph) -> tuple[NodeId, ...]:
    """The members, x first, then what each reads after what it reads; () if they are not that."""
    for x in nodes:
        if not _is_without_match(graph[x].cls) or graph[x].inputs[0].node in nodes:
            continue
        way = tuple(_back(graph, graph[x].inputs[1], x))
        key = graph[x].args.get("on")
        reader = graph[_origin(graph, graph[x].inputs[1], key).node]
        if reader.cls != _BEFORE:
            continue
        if _origin(graph, reader.inputs[0], key) == Endpoint(x):
            return (x, *reversed(way)) if {x, *way} == set(nodes) else ()
    return ()


def seen_in(x: Node, typed: Typed) -> Endpoint:
    """In which stream the items of `x` are seen first: each once, if it is not what `x` reads.

    What is distinct holds the items of what it is made of, which need not be made distinct in each
    tick.
    """
    stream, cls = x.inputs[0], x.cls
    source = typed.graph[stream.node]
    by_item = isinstance(cls, Matching) and cls.compares is Compares.ITEMS
    if by_item and isinstance(source.cls, Distinct) and typed.of(x.id).order is not Order.TOTAL:
        return source.inputs[0]
    return stream


def _back(graph: Graph, stream: Endpoint, end: NodeId) -> Iterator[NodeId]:
    """The operators between a stream and `end`, each after the one that reads it."""
    for passed in first_inputs(graph, stream):
        if passed.node == end or not graph[passed.node].inputs:
            return
        yield passed.node


def _is_without_match(cls: OpClass) -> bool:
    """Whether items stay while an item or key of their own type is not on the other side."""
    return isinstance(cls, Matching) and not cls.wanted and cls.compares is not Compares.BARE_KEYS


def _origin(graph: Graph, stream: Endpoint, key: Key | None) -> Endpoint:
    """Where a stream comes from, behind operators that change nothing of which keys are there.

    Without a key these are the items.
    """
    for passed in first_inputs(graph, stream):
        node, stream = graph[passed.node], passed
        as_sets = passes_on(node.cls) or isinstance(node.cls, Distinct)
        if not (as_sets or (key and keeps_key(node, key))):
            break
    return stream


def readers_of_before(component: Component, graph: Graph) -> list[NodeId]:
    """The members that read the tick before of another one."""
    members = set(component.nodes)
    return [
        n
        for n in component.nodes
        if any(e.node in members and not same_tick(port) for port, e in graph[n].reads())
    ]


def settled_execution(
    component: Component, typed: Typed, kinds: Mapping[NodeId, Kind]
) -> Execution:
    """How the component runs when the kinds are known.

    What is read of the tick before only is stored and given as events, and so it must come.
    """
    if component.how != "across ticks":
        return component.how
    graph = typed.graph
    readers = [n for n in component.nodes if graph[n].spec.state is State.LAST]
    events = all(kinds[graph[n].inputs[0].node] is Kind.E for n in readers)
    return "across ticks" if events else "tick by tick"


def note(component: Component, typed: Typed) -> str:
    """Why the component runs tick by tick, for people."""
    graph = typed.graph
    why = next(_obstacles(component.nodes, typed), "")
    if not why:
        why = "the whole of what was there before is read"
    readers = readers_of_before(component, graph)
    return (
        f"{_listing(component.nodes)} run tick by tick, in a range too: each tick needs the result "
        f"of the one before, through {_listing(readers)}, and {why}"
    )


def _obstacles(nodes: Collection[NodeId], typed: Typed) -> Iterator[str]:
    """Why a range is not one fixpoint of these operators."""
    graph = typed.graph
    for n in nodes:
        for port, e in graph[n].reads():
            if e.node in nodes and port.barrier is Barrier.STRATUM:
                yield f"`{n}` ({graph[n].op.name}) waits for all of `{e}`"
    for n in nodes:
        if typed.of(n).order is Order.TOTAL:
            yield f"the items of `{n}` stand in an order"


def _listing(nodes: Sequence[NodeId]) -> str:
    return ", ".join(f"`{n}`" for n in nodes)
