"""Differences between the active deployment and the program that is to replace it.

Both programs and their plans are compared as one. A stream that is proved equal keeps its table,
whatever it is called and however it is computed now. Other tables are computed from tables that
hold a stream on the way there, or from the landed past. Nothing is changed by asking.

A program in other words goes on by the active plan, where that keeps more than its own. All outputs
are the same, so either plan gives them. What each stores may differ in the order of columns, or in
the streams on the way: by the new plan it would be recomputed, for nothing. Where the new plan is
to be active, it gives rows with their columns in the order of the stored tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from hydro_core.analysis.infer import Typed, infer
from hydro_core.artifact.deployment import Deployment, ProgramMeaning, program_meaning
from hydro_core.artifact.make import tables_of
from hydro_core.catalog.forms import Form
from hydro_core.catalog.itemwise import SELECT, SINK
from hydro_core.catalog.spec import Args
from hydro_core.ir.graph import Endpoint, Graph, Node, add_node
from hydro_core.optimize.compare import (
    NORMAL_FORM,
    ComparedStream,
    Comparison,
    compare,
    proofs,
    without_rules,
)
from hydro_core.plan.planner import Bootstrap, Leaf, WantedTables, bootstrap, plan_of
from hydro_core.plan.tick_plan import StateSlot, longer
from hydro_core.types.item import Order, Row

OutputChange = Literal["same", "columns", "changed", "new", "gone"]
StateChange = Literal["kept", "derived", "rebuilt", "dropped"]

OLD, OLD_PLAN, NEW, NEW_PLAN = range(4)
"""The numbers of the compared programs; outputs with some of their columns follow them."""


@dataclass(frozen=True, slots=True)
class ChangedState:
    """A state table of either plan, and how the new plan comes by it."""

    change: StateChange
    table: str | None = None
    """The stored table, where it is kept or dropped."""
    was: str | None = None
    """Its name in the old plan, where that is another one."""
    tables: tuple[str, ...] = ()
    """The tables that it is computed from."""
    inputs: tuple[str, ...] = ()
    """The inputs whose landed past it is computed from."""


@dataclass(frozen=True, slots=True)
class ChangedOutput:
    change: OutputChange
    columns: tuple[str, ...] = ()
    """The columns that are added or dropped; also of an output that changes beside that."""


@dataclass(frozen=True, slots=True)
class LedgerTable:
    """A table of the active deployment, as the ledger has it."""

    name: str
    role: str
    of: str
    """The slot's id, or the output's name."""
    kind: str
    """E: the rows of each tick; H: what each tick adds; G: what it changes."""
    ordered: bool
    is_mixed: bool = False
    """Whether its earlier ticks are of another program."""


@dataclass(frozen=True, slots=True)
class DisprovedOutput:
    """Outputs and states that were proved the same, and differ when they are run."""

    outputs: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    """By the ids of the new plan's state tables."""


@dataclass(frozen=True)
class Difference:
    """The change of every output and state, and the plan that computes the missing ones."""

    before: Deployment
    after: Deployment
    tables: tuple[LedgerTable, ...]
    """The tables of the active deployment."""
    streams: Comparison
    programs: tuple[Typed, ...]
    """The compared programs, by their numbers in `streams`."""
    probes: Mapping[str, int] = field(default_factory=dict)
    """Of outputs that both have, with different columns or with the same in another order: the
    number of the program whose output has the columns of the narrower, in its order.
    """
    disproved: DisprovedOutput = field(default_factory=DisprovedOutput)

    @cached_property
    def outputs(self) -> Mapping[str, ChangedOutput]:
        """By the outputs' names, those of the new program first."""
        mine, theirs = self.after.program.typed, self.before.program.typed
        found = {name: self._output(name) for name in mine.graph.sinks}
        return found | {n: ChangedOutput("gone") for n in theirs.graph.sinks if n not in found}

    @property
    def turned(self) -> tuple[str, ...]:
        """The outputs that are the same but for the order of their columns in the new plan."""
        before, after = self.before.plan.typed.outputs, self.after.plan.typed.outputs
        return tuple(
            name
            for name, output in self.outputs.items()
            if output.change == "same" and before[name].item != after[name].item
        )

    @cached_property
    def proofs(self) -> Mapping[str, tuple[str, ...]]:
        """The rules by which an output is `same`, or has other `columns`, by its name."""
        wanted = {
            name: pairs
            for name, output in self.outputs.items()
            if output.change in {"same", "columns"} and (pairs := self._pairs(name))
        }
        texts = {n: without_rules(self.programs, pairs) for n, pairs in wanted.items()}
        alike = {
            name: (text,)
            for name, text in texts.items()
            if text != NORMAL_FORM and self._is_written_alike(name)
        }
        others = {name: pairs for name, pairs in wanted.items() if name not in alike}
        return {**alike, **proofs(self.programs, others)}

    @cached_property
    def states(self) -> Mapping[str, ChangedState]:
        """By the ids of the state tables, those of the new plan first."""
        states = {slot.id: self._state(slot) for slot in self.after.plan.slots}
        kept = {state.table for state in states.values()}
        dropped = {
            t.of if t.of not in states else f"{t.of} (before)": ChangedState("dropped", t.name)
            for t in self.tables
            if t.role == "state" and t.name not in kept
        }
        return states | dropped

    @cached_property
    def kept_streams(self) -> Mapping[str, tuple[Endpoint, Endpoint]]:
        """The streams that the old and the new plan store, by the ids of states that are kept."""
        old = {slot.id: slot.stream for slot in self.before.plan.slots}
        new = {slot.id: slot.stream for slot in self.after.plan.slots}
        return {name: (old[table.of], new[name]) for name, table in self._kept.items()}

    @cached_property
    def wanted(self) -> WantedTables:
        """The tables that have to be computed."""
        return WantedTables(
            frozenset(n for n, s in self.states.items() if s.change in {"derived", "rebuilt"}),
            frozenset(
                name
                for name, output in self.outputs.items()
                if output.change in {"columns", "changed", "new"}
                or (output.change == "same" and not self._stored_alike(name))
            ),
        )

    @cached_property
    def made_by(self) -> Bootstrap:
        return bootstrap(self.after.plan, self.wanted, self.leaves)

    @property
    def is_nothing(self) -> bool:
        """Whether no table changes."""
        return (
            not self.wanted
            and all(output.change == "same" for output in self.outputs.values())
            and all(state.change == "kept" for state in self.states.values())
        )

    @cached_property
    def leaves(self) -> Mapping[Endpoint, Leaf]:
        """The streams of the new plan of which a table has every tick."""
        stored = dict(self._stored_streams())
        leaves = {}
        for endpoint, of in self.after.plan.typed.types.items():
            cls = self.streams.classes.get(ComparedStream(NEW_PLAN, endpoint))
            if cls is not None and of.order is Order.NONE and (cls, of.item) in stored:
                leaves[endpoint] = stored[cls, of.item]
        return leaves

    def _stored_streams(self) -> Iterator[tuple[tuple[int, Any], Leaf]]:
        """By class and item type; states come last, since outputs hold more."""
        plan = self.before.plan
        for table in sorted(self.tables, key=lambda t: t.role):
            if table.ordered or table.is_mixed or table.kind == "G":
                continue
            if table.role == "output":
                sinks = plan.graph.sinks.get(table.of, ())
                ends = [sink.inputs[0] for sink in sinks] if len(sinks) == 1 else []
                grows = table.kind == "H"
            else:
                slots = [s for s in plan.slots if s.id == table.of]
                ends = [
                    s.stream
                    for s in slots
                    if s.form is Form.GROWTH and s.keep is None and s.bound is None
                ]
                grows = False
            for end in ends:
                cls = self.streams.classes.get(ComparedStream(OLD_PLAN, end))
                of = plan.typed.types.get(end)
                if cls is not None and of is not None:
                    yield (cls, of.item), Leaf(table.name, grows)

    def _output(self, name: str) -> ChangedOutput:
        mine, theirs = self.after.program.typed, self.before.program.typed
        if name not in theirs.graph.sinks:
            return ChangedOutput("new")
        new, old = mine.outputs[name].item, theirs.outputs[name].item
        columns = self._columns(name)
        if name in self.disproved.outputs or not self._pairs(name):
            return ChangedOutput("changed", columns)
        if name in self.probes:
            # The order of its columns is the table's, which the new program keeps.
            return ChangedOutput("columns", columns) if columns else ChangedOutput("same")
        return ChangedOutput("same" if new == old else "changed")

    def _pairs(self, name: str) -> tuple[tuple[ComparedStream, ComparedStream], ...]:
        """The parts of an output that are proved equal, old and new; none where some are not, or
        where one program may fail in a tick that the other completes.

        Of an output with other columns they are those of the narrower and of what the wider one is
        without them.
        """
        old, new = (self._parts(number, name) for number in (OLD, NEW))
        if self._is_written_alike(name):
            return tuple(zip(old, new, strict=True))
        ends = sorted(old, key=self._class), sorted(new, key=self._class)
        if name in self.probes:
            probe = self.probes[name]
            narrowed = (ComparedStream(probe, Endpoint(PROBE)),)
            if _is_as_wide(self.programs[NEW], self.programs[OLD], name):
                new = narrowed
            else:
                old = narrowed
        by_class = [sorted(parts, key=self._class) for parts in (old, new)]
        if len(old) != len(new) or not all(map(self.streams.same, *by_class)):
            return ()
        columns = self._columns(name)
        if not columns and not all(map(self.streams.fail_alike, *ends)):
            return ()
        return tuple(zip(*by_class, strict=True))

    def _is_written_alike(self, output: str) -> bool:
        """True if the output has one meaning by its text, whatever the rules find of it.

        Saturation may end before cycles are found equal, and depends on the rest of the program.
        """
        old, new = (self._meanings[number].outputs.get(output) for number in (OLD, NEW))
        return old == new

    @cached_property
    def _meanings(self) -> Mapping[int, ProgramMeaning]:
        return {number: program_meaning(self.programs[number]) for number in (OLD, NEW)}

    def _class(self, stream: ComparedStream) -> int:
        return self.streams.classes.get(stream, -1)

    def _columns(self, name: str) -> tuple[str, ...]:
        """The columns of an output that one of the programs has."""
        new, old = (self.programs[number].outputs[name].item for number in (NEW, OLD))
        if not isinstance(new, Row) or not isinstance(old, Row):
            return ()
        return tuple(sorted({*new.names} ^ {*old.names}))

    def _parts(self, number: int, name: str) -> tuple[ComparedStream, ...]:
        return tuple(ComparedStream(number, end) for end in _ends(self.programs[number], name))

    def _stored_alike(self, output: str) -> bool:
        """True if both plans store the output in the same way."""
        old, new = (
            [
                (t.item, t.kind, t.ordered)
                for t in d.tables
                if (t.role, t.name) == ("output", output)
            ]
            for d in (self.before, self.after)
        )
        return old == new

    def _state(self, slot: StateSlot) -> ChangedState:
        kept = self._kept.get(slot.id)
        if kept is not None:
            return ChangedState("kept", kept.name, kept.of if kept.of != slot.id else None)
        by = bootstrap(self.after.plan, WantedTables(slots=frozenset({slot.id})), self.leaves)
        tables = tuple(leaf.table for leaf in by.tables.values())
        return ChangedState("rebuilt" if by.inputs else "derived", tables=tables, inputs=by.inputs)

    @cached_property
    def _kept(self) -> Mapping[str, LedgerTable]:
        """The tables that are kept, by the ids of the new states: its own for each if it can."""
        old = {slot.id: slot for slot in self.before.plan.slots}
        slots = [s for s in self.after.plan.slots if s.id not in self.disproved.states]
        states = [t for t in self.tables if t.role == "state" and t.of in old]
        pairs = [(s, t) for s in slots for t in states if self._fits(old[t.of], s)]
        kept: dict[str, LedgerTable] = {}
        for slot, table in sorted(pairs, key=lambda pair: pair[0].id != pair[1].of):
            if slot.id not in kept and table not in kept.values():
                kept[slot.id] = table
        return kept

    def _fits(self, old: StateSlot, new: StateSlot) -> bool:
        """Whether the stored table of one state is that of the other."""
        alike = (old.item, old.ordered, old.form) == (new.item, new.ordered, new.form)
        long_enough = old.keep is None or (new.keep is not None and new.keep <= old.keep)
        long_enough &= old.bound is None or longer((old.bound, new.bound)) == old.bound
        equal = self.streams.same(
            ComparedStream(OLD_PLAN, old.stream), ComparedStream(NEW_PLAN, new.stream)
        )
        return alike and long_enough and (equal or old.semantic_hash == new.semantic_hash)


PROBE = "narrowed output"  # no statement has a space in its name
"""The stream of an output with some of its columns, in a program that has just that."""


def difference(
    before: Deployment,
    after: Deployment,
    tables: Mapping[str, Mapping[str, Any]],
    mixed: Collection[str] = (),
) -> Difference:
    """The changes that deploying `after` in the place of `before` makes.

    Args:
        before: the active deployment.
        after: the one that is to be activated.
        tables: the records of its tables in the ledger's last commit, by their names.
        mixed: the tables whose earlier ticks are of another program.
    """
    programs = [before.program.typed, before.plan.typed, after.program.typed, after.plan.typed]
    probes = {}
    for name in after.program.typed.graph.sinks:
        probe = _probe(before.program.typed, after.program.typed, name)
        if probe is not None:
            probes[name] = len(programs)
            programs.append(probe)
    stored = tuple(
        LedgerTable(name, r["role"], r["of"], r["kind"], r["ordered"], name in mixed)
        for name, r in tables.items()
    )
    return Difference(before, after, stored, compare(programs), tuple(programs), probes)


def _probe(old: Typed, new: Typed, name: str) -> Typed | None:
    """The wider program's output with the columns of the narrower one."""
    if len(_ends(old, name)) != 1 or len(_ends(new, name)) != 1:
        return None
    if old.outputs[name].item == new.outputs[name].item:
        return None
    for wide, narrow in ((new, old), (old, new)):
        item = narrow.outputs[name].item
        if isinstance(item, Row) and _is_as_wide(wide, narrow, name):
            return _narrowed_to(wide, _ends(wide, name)[0], item.names, PROBE)
    return None


def _narrowed_to(typed: Typed, stream: Endpoint, columns: Sequence[str], name: str) -> Typed:
    """The program with the stream `name`: another one, with these columns in this order.

    An aggregate is computed without the others, which is the same; else they are dropped after it.
    """
    graph = typed.graph
    node = graph[stream.node]
    nodes = {n.id: n for n in graph if n.op.outputs != "none"}
    aggregates = node.args.get("aggregates")
    by = node.args.get("by") or ()
    if aggregates is not None and [*by] == [*columns][: len(by)]:
        of = dict(aggregates)
        kept = tuple((column, of[column]) for column in columns[len(by) :] if column in of)
        nodes[name] = node.with_(id=name, args=node.args.with_(aggregates=kept))
    else:
        select = Args().with_(columns=tuple(columns), computed=())
        nodes[name] = Node(name, SELECT, select, (stream,), node.span)
    seen = Node(f"{name}_seen", SINK, Args().with_(name=name), (Endpoint(name),))
    return infer(Graph.of((*nodes.values(), seen), graph.name), typed.schemas)


def _ends(typed: Typed, output: str) -> tuple[Endpoint, ...]:
    return tuple(sink.inputs[0] for sink in typed.graph.sinks.get(output, ()))


def _is_as_wide(one: Typed, other: Typed, output: str) -> bool:
    """Whether an output of the first program has all columns of the other's: more than these, or
    just these, of the same types, in another order.
    """
    wide, narrow = one.outputs[output].item, other.outputs[output].item
    if not isinstance(wide, Row) or not isinstance(narrow, Row):
        return False
    return {*narrow.names} < {*wide.names} or {*narrow.fields} == {*wide.fields}


CHEAPER = 0.99
"""A plan that costs less than this part of the other one is worth recomputing its states."""


def goes_on_by_active_plan(found: Difference) -> bool:
    """Whether the active plan is to be that of the new program, too."""
    before, after = found.before, found.after
    outputs = found.outputs.values()
    return (
        all(output.change == "same" for output in outputs)
        and (bool(found.turned) or any(s.change != "kept" for s in found.states.values()))
        and before.sharding == after.sharding
        and {*before.plan.graph.sources} == {*after.plan.graph.sources}
        # By other statistics than the active plan's, it was chosen since it costs less.
        and after.costs.statistics == before.costs.statistics
        and after.costs.after >= CHEAPER * before.costs.after
    )


def with_active_plan(found: Difference) -> Deployment:
    """The deployment of the new program, by the active plan."""
    before, after = found.before, found.after
    classes = found.streams.classes
    named = {
        classes[s]: end.node
        for end in after.program.typed.types
        if (s := ComparedStream(NEW, end)) in classes
    }
    streams = {
        end.node: named[cls]
        for end in before.plan.typed.types
        if (cls := classes.get(ComparedStream(OLD_PLAN, end))) in named
    }
    return replace(
        after,
        plan=before.plan,
        tables=before.tables,
        costs=replace(after.costs, after=before.costs.after),
        explanation=before.explanation,
        streams=streams,
    )


def with_column_order(before: Deployment, after: Deployment, outputs: Iterable[str]) -> Deployment:
    """A deployment whose plan gives the rows of some outputs with their columns in the order of
    another one's, so that they fit its tables.
    """
    plan = after.plan
    nodes = dict(plan.graph.nodes)
    for name in outputs:
        item = before.plan.typed.outputs[name].item
        assert isinstance(item, Row)
        select = Args().with_(columns=item.names, computed=())
        for sink in plan.graph.sinks[name]:
            turned = Node(f"{sink.id}_as_stored", SELECT, select, sink.inputs, sink.span)
            nodes[sink.id] = sink.with_(inputs=(Endpoint(add_node(nodes, turned)),))
    typed = infer(plan.graph.with_nodes(nodes.values()), plan.typed.schemas)
    plan = plan_of(after.program.typed, typed, after.streams, plan.hashes)
    return replace(after, plan=plan, tables=tuple(tables_of(plan)))
