"""Streams over a range of ticks: changelogs, representations, repeated rows, new pairs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from types import MappingProxyType
from typing import assert_never

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.aggregates import moving_split, running_split
from hydro_core.catalog.classes import (
    AsOf,
    ByKey,
    Commands,
    DistinctItems,
    History,
    KeyMatch,
    Linear,
    OrderedByKey,
    Ordering,
    Output,
    OverTime,
    PairedItems,
    PerKey,
    PerPosition,
    Places,
    PositionalOrder,
    Product,
    RunningResult,
    StreamEnd,
    Sum,
    TickDifference,
    Window,
    is_itemwise,
)
from hydro_core.catalog.forms import Form, given, needed
from hydro_core.catalog.spec import OrderRule, State
from hydro_core.functions.known_folds import FoldParts, KnownFold, StartKept, Total, known_fold
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId, first_inputs
from hydro_core.plan.tick_plan import Kind, StateSlot, TickPlan, is_in_order, result_key
from hydro_core.types.item import Order

# Streams that have a changelog, and readers for which it is enough.
#
# A history is stored as its additions. A running result in tick t + 1 reads its stored rows with
# the keys of new rows and changes only these, so its updates are known by construction. So they are
# for keyed results of a history, for windows, and for rows of histories without a match. Row-wise
# operators forward updates. Where readers need only the updates, the unchanged rows are never read,
# and the stored table of the stream is its changelog.
#
# A history whose readers need only its additions (`delta`, an append-only output) is not computed
# for the ticks before the range. A join of two histories is then the new rows of one side with all
# rows of the other, and the new rows of the other with the past of the first.


def given_as_changes(
    typed: Typed,
    order: Iterable[Collection[NodeId]],
    kinds: Mapping[NodeId, Kind],
) -> frozenset[NodeId]:
    """The changelog streams whose updates have a reader.

    `order` has all components, each after those that it reads.
    """
    graph, known = typed.graph, {n: Form.GROWTH for n, kind in kinds.items() if kind is Kind.H}
    for nodes in order:
        for name in nodes if len(nodes) == 1 else ():
            node = graph[name]
            form = given(node.cls, (known.get(e.node, Form.VALUES) for e in node.inputs))
            cyclic = name in (e.node for e in node.inputs)
            is_general = kinds[name] is Kind.G and typed.of(name).order is not Order.TOTAL
            if form is Form.CHANGES and not cyclic and is_general:
                known[name] = form
    could = {name for name, form in known.items() if form is Form.CHANGES}
    return frozenset(could & _wanted(graph, could))


def _wanted(graph: Graph, could: Collection[NodeId]) -> set[NodeId]:
    """The streams whose updates have a reader: an operator or a stored changelog."""
    found = {n for n in could if graph[n].spec.state is State.RESULT}
    found |= {n.id for n in graph if isinstance(n.cls, Output)}
    for node in graph:
        if node.cls.reads_changes or node.spec.state is State.LAST:
            found |= {e.node for e in node.inputs}
    todo = list(found)
    while todo:
        node = graph[todo.pop()]
        tells = needed(node.cls, Form.CHANGES) is Form.CHANGES
        more = {e.node for e in node.inputs if tells} - found
        found |= more
        todo += more
    return found


def changes_suffice(
    graph: Graph,
    by_changes: Collection[NodeId],
    kinds: Mapping[NodeId, Kind],
    outputs: Collection[str] = (),
) -> set[NodeId]:
    """The changelog and append-only streams whose readers need only updates.

    `outputs` are the names of the outputs for which updates are enough.
    """
    found = {n for n in graph.nodes if n in by_changes or kinds[n] is Kind.H}

    def suffices(reader: Node) -> bool:
        return reader.cls.reads_changes or (reader.id in found and reader.cls.hands_on)

    def is_whole(name: NodeId) -> bool:
        node = graph[name]
        if isinstance(node.cls, Output):
            return node.args["name"] not in outputs
        readers = graph.readers(name)
        return not readers or not all(map(suffices, readers))

    while more := set(filter(is_whole, found)):
        found -= more
    return found


def lacks_changes(node: Node, by_changes: Collection[NodeId], kinds: Mapping[NodeId, Kind]) -> bool:
    """True if an operator reads the changelog of an input that has none."""
    if needed(node.cls, Form.VALUES) is not Form.CHANGES:
        return False
    return any(e.node not in by_changes and kinds[e.node] is not Kind.H for e in node.inputs)


def in_one_form(plan: TickPlan, outputs: Collection[str]) -> frozenset[NodeId]:
    """The nodes whose readers need only updates of changelogs, and only additions to histories.

    `outputs` are the names of the outputs for which that is enough.
    """
    changes = changes_suffice(plan.graph, plan.in_changes, plan.kinds, outputs)
    return additions_only(plan, outputs) | (changes & plan.in_changes)


def additions_only(plan: TickPlan, outputs: Collection[str]) -> frozenset[NodeId]:
    """The nodes of histories whose readers need no rows from before a range.

    `outputs` are the names of the outputs for which additions are enough.
    """
    alone = {c.nodes[0] for c in plan.components if c.how == "once"}
    stored = {slot.stream.node for slot in plan.slots}
    found = {n for n in alone - stored if plan.kinds[n] is Kind.H}
    while whole := {n for n in found if not _suffice(plan, n, found, outputs)}:
        found -= whole
    return frozenset(found)


def _suffice(plan: TickPlan, node: NodeId, found: set[NodeId], outputs: Collection[str]) -> bool:
    """True if additions are enough for all readers of the node."""
    if isinstance(plan.graph[node].cls, Output):
        return plan.graph[node].args["name"] in outputs
    return all(
        isinstance(reader.cls, TickDifference)
        or (reader.id in found and (isinstance(reader.cls, Output) or _goes_row_by_row(reader)))
        for reader in plan.graph.readers(node)
    )


def _goes_row_by_row(node: Node) -> bool:
    """True if every row is derived from one row of the same tick."""
    alone = len(node.inputs) == 1 or node.spec.variadic or node.spec.order is OrderRule.KEEPS_IF_ALL
    return node.spec.state is State.NONE and alone and all(p.linear for p, _ in node.reads())


# Operators that repeat their rows over a range: once for every tick, or for every update.
#
# All others process a row once, however long the range. Rows times ticks grow with the square of
# the number of ticks, so a plan with such operators runs long ranges in parts.


_STANDS = {
    Kind.H: "rows that came before stay",
    Kind.G: "rows stay over several ticks",
}


def repeated(plan: TickPlan) -> Mapping[NodeId, str]:
    """The operators that repeat rows over a range, each with a message that says how and why."""
    alone = {n for c in plan.components if c.how != "tick by tick" for n in c.nodes}
    found = {}
    for node in plan.graph:
        why = _why(plan, node) if node.id in alone else None
        if why is not None:
            found[node.id] = f"`{node.id}` ({node.op.name}) {why}"
    return MappingProxyType(found)


def _why(plan: TickPlan, node: Node) -> str | None:
    kinds = [plan.kinds[e.node] for e in node.inputs]
    stands = next((_STANDS[k] for k in kinds if k is not Kind.E), None)
    if stands is None:
        return None
    ordered = plan.typed.of(node.inputs[0].node).order is Order.TOTAL
    because = _because(node, ordered)
    if because is not None:
        return f"repeats each row at every tick of a range: {stands}, and {because}"
    if isinstance(node.cls, OrderedByKey):
        return f"orders the rows of a key again whenever they change: {stands}"
    obstacle = _obstacle(plan, node, kinds[0]) if isinstance(node.cls, ByKey) else None
    if obstacle is None:
        return None
    if result_key(node) is not None:
        return f"groups the rows of a key again whenever they change: {obstacle}"
    return f"repeats each row at every tick of a range: {obstacle}"


def _because(node: Node, ordered: bool) -> str | None:
    """The reason to process unchanged rows in each tick; None where there is none."""
    cls = node.cls
    match cls:
        case PositionalOrder() | OrderedByKey(keyed=False):
            return "its result depends on the place of an item among all"
        case History() | Window() | RunningResult(changes=False):
            return "what is there is added anew in every tick"
        case Commands():
            return "commands that are there are given anew in every tick"
        case DistinctItems():
            return "it follows their order" if ordered else None
        case ByKey():
            return "it follows their order" if is_in_order(node, ordered) else None
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return None
        case _:
            assert_never(cls)


def _obstacle(plan: TickPlan, node: Node, kind: Kind) -> str | None:
    """The reason why a result is not merged from tick to tick; None where it is."""
    if "aggregates" in node.args:
        item = plan.typed.of(node.inputs[0].node).item
        for name, aggregate in node.args["aggregates"]:
            function = aggregate.function
            if running_split(aggregate, item) is None:
                return f"`{function}` of `{name}` is not merged from the results of ticks"
            if kind is Kind.G and moving_split(aggregate, item) is None:
                return f"rows go again, and `{function}` of `{name}` does not tell what is left"
        return None
    if kind is Kind.H:
        return None
    known = known_fold(node.args["f"]) if "init" in node.args else None
    if known is not None and _is_sum(known):
        return None
    return "rows go again, and the result does not tell what is left"


def _is_sum(known: KnownFold) -> bool:
    match known:
        case Total() | StartKept():
            return True
        case FoldParts(parts):
            return all(map(_is_sum, parts))
        case _:
            return False


# The representations of a plan's outputs and state tables, as messages.


_FORMS = {
    Form.VALUES: "in values",
    Form.CHANGES: "in changes",
    Form.GROWTH: "as a history",
}


@dataclass(frozen=True, slots=True)
class StreamForm:
    """A stream of a plan, its representation, and the reason for it."""

    stream: str
    form: Form
    why: str

    def __str__(self) -> str:
        return f"`{self.stream}` {_FORMS[self.form]}: {self.why}"

    def as_json(self) -> Mapping[str, str]:
        """The stream as `--format json` prints it."""
        return {"stream": self.stream, "form": self.form.name.lower(), "why": self.why}


def stream_forms(plan: TickPlan) -> tuple[StreamForm, ...]:
    """The outputs and the stored streams, each with its representation."""
    outputs = {_output(n): n.inputs[0].node for n in plan.graph if isinstance(n.cls, Output)}
    lines = [_of(plan, name, stream) for name, stream in outputs.items()]
    lines += _stored(plan, set(outputs.values()))
    return tuple(lines)


def written_whole(plan: TickPlan) -> Iterator[str]:
    """Messages for outputs that store all rows in every tick though most rows do not change."""
    for node in plan.graph:
        if isinstance(node.cls, Output):
            stream = node.inputs[0].node
            if plan.form(stream) is Form.VALUES and plan.kinds[stream] is Kind.G:
                yield (
                    f"`{_output(node)}` is stored anew in each tick, all rows of it: nothing tells"
                    " what changes there. `-> changes()` before it stores what changes alone"
                )


def _output(node: Node) -> str:
    return str(node.args.get("name", node.id))


def _stored(plan: TickPlan, outputs: set[NodeId]) -> Iterator[StreamForm]:
    for slot in plan.slots:
        if slot.stream.node in outputs and slot.form is Form.CHANGES:
            continue  # one changelog table is both
        yield StreamForm(str(slot.stream), slot.form, _why_stored(plan, slot))


def _why_stored(plan: TickPlan, slot: StateSlot) -> str:
    readers = " and ".join(f"`{r}`" for r in slot.readers)
    match slot.form:
        case Form.GROWTH if slot.keep is not None:
            ticks = "last tick" if slot.keep == 1 else f"last {slot.keep} ticks"
            return f"stored for {readers}, as far as the {ticks} go back"
        case Form.GROWTH if slot.bound is not None:
            return f"stored for {readers}, as long as {slot.bound.shown}"
        case Form.GROWTH:
            return f"stored for {readers}, from the first tick on"
        case Form.VALUES:
            return f"stored for {readers}, of the last tick"
        case Form.CHANGES | Form.LOOKED_UP:
            return f"stored as a log, {_changing(plan.graph[slot.stream.node])}"


def _of(plan: TickPlan, name: str, stream: NodeId) -> StreamForm:
    form = plan.form(stream)
    match form:
        case Form.CHANGES:
            why = _changing(plan.graph[stream])
        case Form.GROWTH:
            why = "what comes is added, nothing goes"
        case _ if plan.kinds[stream] is Kind.G:
            why = "all its rows are made and stored in each tick"
        case _:
            why = "a tick's rows are there in this tick alone"
    return StreamForm(name, form, why)


def _changing(node: Node) -> str:  # noqa: C901, PLR0911 - a closed set of cases
    """The rows that are inserted and deleted there."""
    cls = node.cls
    match cls:
        case RunningResult(OrderedByKey(gives)):
            return _BY_PLACES[gives]
        case ByKey(keyed=True) | RunningResult(ByKey(keyed=True)):
            return "a key's new result replaces its old one"
        case RunningResult() | Commands(keyed=False):
            return "the new result replaces the old one"
        case Commands():
            return "what a command leaves for a key replaces what was there"
        case Window(timed=timed):
            goes = "its time is too long ago" if timed else "the window has passed it"
            return f"a row comes with its tick, and goes when {goes}"
        case OrderedByKey():
            return "a key's rows go and come again where their places change"
        case AsOf():
            return "a row goes, and comes again, when another is the nearest to it"
        case KeyMatch() | Product():
            return "a row without a match goes when its first match comes"
        case Linear() | Ordering() | Output():
            inputs = " and ".join(f"`{e.node}`" for e in dict.fromkeys(node.inputs))
            return f"what comes and goes in {inputs} does so here"
        case StreamEnd() | PerKey() | PerPosition() | OverTime():
            return "what comes and goes is told"
        case _:
            assert_never(cls)


_BY_PLACES = {
    Places.EACH: "a row comes with its columns, and those behind a late one are made again",
    Places.FIRST: "a row that is among the first drives another one out",
}


# Sums of two products that are all new pairs of two histories.
#
# The product rule turns the additions of `persist a × persist b` into two products, `old a × b` and
# `a × persist b`. A tick, or a range after a past, needs both. A range before which nothing of one
# side is stored needs only one product: all of `a` with all of `b`, each pair at the later of its
# two ticks.


NodeWay = tuple[NodeId, ...]
"""An operator that has the past of a stream, then the row-wise operators behind it."""


@dataclass(frozen=True, slots=True)
class NewPairs:
    """Two products whose sum is all new pairs."""

    product: NodeId
    """The product that can give all of them."""
    other: NodeId
    """The product that is then not needed."""
    sides: tuple[NodeWay, NodeWay]
    """How the histories of the left and of the right side are derived."""


def new_pairs(plan: TickPlan) -> Iterator[NewPairs]:
    """The sums of a plan that are all new pairs, outside of cycles."""
    graph = plan.graph
    alone = {c.nodes[0] for c in plan.components if c.how == "once"}
    for total in graph:
        if not isinstance(total.cls, Sum) or total.id not in alone:
            continue
        read_here = (graph[e.node] for e in total.inputs if len(graph.readers(e.node)) == 1)
        products = [n for n in read_here if _is_of_pairs(n) and plan.kinds[n.id] is Kind.E]
        for one, other in permutations(products, 2):
            sides = _sides(graph, one, other)
            if sides is not None and {one.id, other.id, *sides[0], *sides[1]} <= alone:
                yield NewPairs(other.id, one.id, sides)


def not_needed(plan: TickPlan, chosen: Collection[NewPairs]) -> frozenset[NodeId]:
    """The nodes without a reader once each of these products gives all pairs."""
    stored = {slot.stream.node for slot in plan.slots}
    products = {pairs.product for pairs in chosen}
    gone = {pairs.other for pairs in chosen}
    for node in reversed(list(plan.graph)):
        readers = {reader.id for reader in plan.graph.readers(node.id)}
        if readers and readers <= gone | products and node.id not in stored:
            gone.add(node.id)
    return frozenset(gone)


def _is_of_pairs(node: Node) -> bool:
    cls = node.cls
    return isinstance(cls, Product) and not cls.keeps and cls.meets is not PairedItems.SINGLE


def _sides(graph: Graph, one: Node, other: Node) -> tuple[NodeWay, NodeWay] | None:
    """The histories of both sides, if `one` reads a side as of the tick before; else None."""
    if (one.op, one.args) != (other.op, other.args):
        return None
    for side in (0, 1):
        before = _way(graph, one.inputs[side], other.inputs[side], before=True)
        whole = _way(graph, other.inputs[1 - side], one.inputs[1 - side], before=False)
        if before and whole:
            return (before, whole) if side == 0 else (whole, before)
    return None


def _way(graph: Graph, stream: Endpoint, new: Endpoint, *, before: bool) -> NodeWay:
    """The path from the history of `new`, or from the history `before` it, to a stream; () if there
    is none.
    """
    behind: list[NodeId] = []
    for part, added in zip(first_inputs(graph, stream), first_inputs(graph, new), strict=False):
        node, adds = graph[part.node], graph[added.node]
        if node.cls == History(before=before) and node.inputs == (added,):
            return (node.id, *reversed(behind))
        if isinstance(node.cls, Sum) and added in node.inputs and len(node.inputs) == 2:
            ways = () if before else (_way(graph, e, added, before=True) for e in node.inputs)
            way = next(filter(None, ways), ())
            return (*way, *reversed(behind)) if way else ()
        if not is_itemwise(node.cls) or (node.op, node.args) != (adds.op, adds.args):
            return ()
        behind.append(node.id)
    return ()
