"""What deploying another program means for what is stored: found before anything happens.

Both programs and their plans are compared as one. A stream that is proved equal keeps its table,
whatever it is called and however it is computed now; what is left has to be made, from tables that
hold a stream on the way there, or from the landed past.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from hydro_core.analysis.infer import Typed
from hydro_core.deploy.columns import narrowed_to
from hydro_core.deploy.deployment import Deployment
from hydro_core.ir.graph import Endpoint
from hydro_core.optimize.compare import Comparison, Stream, compare
from hydro_core.plan.bootstrap import Bootstrap, Leaf, Wanted, bootstrap
from hydro_core.plan.tick_plan import Mode, StateSlot
from hydro_core.types.item import Row
from hydro_core.types.stream import Order

OutputChange = Literal["same", "columns", "changed", "new", "gone"]
StateChange = Literal["kept", "derived", "rebuilt", "dropped"]

OLD, OLD_PLAN, NEW, NEW_PLAN = range(4)
"""The programs that are compared; what comes after them are outputs cut to some of their columns.
"""


@dataclass(frozen=True, slots=True)
class State:
    """What becomes of a stored state."""

    change: StateChange
    table: str | None = None
    """The table that it keeps."""
    was: str | None = None
    """What it was called before, where that was something else."""
    tables: tuple[str, ...] = ()
    """The tables that it is made from."""
    inputs: tuple[str, ...] = ()
    """The inputs of which the landed past is read to make it."""


@dataclass(frozen=True, slots=True)
class Output:
    """What becomes of an output."""

    change: OutputChange
    columns: tuple[str, ...] = ()
    """The columns that are added, or that go."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A table of the deployment that serves, as the ledger has it."""

    name: str
    role: str
    of: str
    """The slot's id, or the output's name."""
    kind: str
    """E: the rows of each tick; H: what each tick adds; G: what it changes."""
    ordered: bool


def stored_tables(tables: Mapping[str, Mapping[str, Any]]) -> tuple[Stored, ...]:
    """The tables of a commit, from the records that the ledger keeps of them."""
    return tuple(
        Stored(name, r["role"], r["of"], r["kind"], r["ordered"]) for name, r in tables.items()
    )


@dataclass(frozen=True)
class Difference:
    """What becomes of every output and state, and what makes those that are not there yet."""

    before: Deployment
    after: Deployment
    tables: tuple[Stored, ...]
    """The tables of the deployment that serves."""
    streams: Comparison
    probes: Mapping[str, int] = field(default_factory=dict)
    """Of outputs that both have with different columns: where the narrower one of the wider is."""

    @cached_property
    def outputs(self) -> Mapping[str, Output]:
        """By the outputs' names, those of the new program first."""
        mine, theirs = self.after.program.typed, self.before.program.typed
        found = {name: self._output(name) for name in mine.graph.sinks}
        return found | {n: Output("gone") for n in theirs.graph.sinks if n not in found}

    @cached_property
    def states(self) -> Mapping[str, State]:
        """By the slots' ids, those of the new plan first."""
        found = {slot.id: self._state(slot) for slot in self.after.plan.slots}
        kept = {state.table for state in found.values()}
        gone = {
            t.of if t.of not in found else f"{t.of} (before)": State("dropped", t.name)
            for t in self.tables
            if t.role == "state" and t.name not in kept
        }
        return found | gone

    @cached_property
    def wanted(self) -> Wanted:
        """The tables that have to be made."""
        return Wanted(
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
        """What makes them."""
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
        """The streams of the new plan that are stored, every tick's."""
        whole = dict(self._stored_streams())
        found = {}
        for endpoint, of in self.after.plan.typed.types.items():
            cls = self.streams.classes.get(Stream(NEW_PLAN, endpoint))
            if cls is not None and of.order is Order.NONE and (cls, of.item) in whole:
                found[endpoint] = whole[cls, of.item]
        return found

    def _stored_streams(self) -> Iterator[tuple[tuple[int, Any], Leaf]]:
        """By class and item type; states come last, since outputs hold more."""
        plan = self.before.plan
        for table in sorted(self.tables, key=lambda t: t.role):
            if table.ordered or table.kind == "G":
                continue
            if table.role == "output":
                sinks = plan.graph.sinks.get(table.of, ())
                ends = [sink.inputs[0] for sink in sinks] if len(sinks) == 1 else []
                grows = table.kind == "H"
            else:
                slots = [s for s in plan.slots if s.id == table.of]
                ends = [s.stream for s in slots if s.mode is Mode.APPEND and s.keep is None]
                grows = False
            for end in ends:
                cls = self.streams.classes.get(Stream(OLD_PLAN, end))
                of = plan.typed.types.get(end)
                if cls is not None and of is not None:
                    yield (cls, of.item), Leaf(table.name, grows)

    def _output(self, name: str) -> Output:
        mine, theirs = _ends(self.after.program.typed, name), _ends(self.before.program.typed, name)
        if not theirs:
            return Output("new")
        if self._alike((NEW, mine), (OLD, theirs)):
            same_types = _item(self.after, name) == _item(self.before, name)
            return Output("same" if same_types else "changed")
        probe = self.probes.get(name)
        if probe is not None:
            new, old = _item(self.after, name), _item(self.before, name)
            wider = NEW if len(new.names) > len(old.names) else OLD
            other = (OLD, theirs) if wider == NEW else (NEW, mine)
            if self._alike((probe, (Endpoint(PROBE),)), other):
                return Output("columns", tuple(sorted({*new.names} ^ {*old.names})))
        return Output("changed")

    def _alike(
        self, one: tuple[int, tuple[Endpoint, ...]], other: tuple[int, tuple[Endpoint, ...]]
    ) -> bool:
        """Whether the sums of these streams are proved equal: part by part."""
        classes = [
            sorted(self.streams.classes.get(Stream(number, end), -1) for end in ends)
            for number, ends in (one, other)
        ]
        return classes[0] == classes[1] and -1 not in classes[0]

    def _stored_alike(self, output: str) -> bool:
        """Whether both plans store the output in the same way."""
        records = [
            [
                (t.item, t.kind, t.ordered)
                for t in d.tables
                if t.role == "output" and t.name == output
            ]
            for d in (self.before, self.after)
        ]
        return records[0] == records[1]

    def _state(self, slot: StateSlot) -> State:
        for table in self.tables:
            if table.role != "state":
                continue
            old = next((s for s in self.before.plan.slots if s.id == table.of), None)
            if old is not None and self._serves(old, slot):
                was = old.id if old.id != slot.id else None
                return State("kept", table.name, was)
        made = bootstrap(self.after.plan, Wanted(slots=frozenset({slot.id})), self.leaves)
        tables = tuple(leaf.table for leaf in made.tables.values())
        change: StateChange = "rebuilt" if made.inputs else "derived"
        return State(change, tables=tables, inputs=made.inputs)

    def _serves(self, old: StateSlot, new: StateSlot) -> bool:
        """Whether the table of one slot is that of the other."""
        alike = (old.item, old.ordered, old.mode) == (new.item, new.ordered, new.mode)
        long_enough = old.keep is None or (new.keep is not None and new.keep <= old.keep)
        equal = self.streams.same(Stream(OLD_PLAN, old.stream), Stream(NEW_PLAN, new.stream))
        return alike and long_enough and (equal or old.meaning == new.meaning)


PROBE = "narrowed"
"""The stream of an output with some of its columns, in the program that is made to see it."""


def difference(
    before: Deployment, after: Deployment, tables: Mapping[str, Mapping[str, Any]]
) -> Difference:
    """What deploying `after` means where `before` serves with these tables.

    Args:
        before: the deployment that serves.
        after: the one that is to take over.
        tables: what the ledger's last commit says of the tables, by their names.
    """
    programs = [before.program.typed, before.plan.typed, after.program.typed, after.plan.typed]
    probes = {}
    for name in after.program.typed.graph.sinks:
        probe = _probe(before.program.typed, after.program.typed, name)
        if probe is not None:
            probes[name] = len(programs)
            programs.append(probe)
    return Difference(before, after, stored_tables(tables), compare(programs), probes)


def _probe(old: Typed, new: Typed, name: str) -> Typed | None:
    """The wider program's output with the columns of the narrower one."""
    if name not in old.graph.sinks or len(_ends(old, name)) != 1 or len(_ends(new, name)) != 1:
        return None
    before, after = old.outputs[name].item, new.outputs[name].item
    if not isinstance(before, Row) or not isinstance(after, Row):
        return None
    if {*before.names} < {*after.names}:
        return narrowed_to(new, _ends(new, name)[0], before.names, PROBE)
    if {*after.names} < {*before.names}:
        return narrowed_to(old, _ends(old, name)[0], after.names, PROBE)
    return None


def _ends(typed: Typed, output: str) -> tuple[Endpoint, ...]:
    return tuple(sink.inputs[0] for sink in typed.graph.sinks.get(output, ()))


def _item(deployment: Deployment, output: str) -> Any:
    return deployment.program.typed.outputs[output].item
