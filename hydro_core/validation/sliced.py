"""Slices of a program run over landed rows, and made smaller to the rows that matter."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any, NamedTuple

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.slices import (
    InputPosition,
    ItemDemand,
    KnownValues,
    OutputSlice,
    SeenValues,
)
from hydro_core.compile import CompiledProgram, stratified
from hydro_core.errors import HydroError
from hydro_core.ir.graph import Graph, Node
from hydro_core.reference.bag import EMPTY, Bag
from hydro_core.reference.interpreter import Hooks, Keep, run_ticks
from hydro_core.settings import Settings
from hydro_core.ticks.tick import Outputs, TickInput
from hydro_core.ticks.wanted import (
    CanonicalValues,
    FieldTests,
    TooManyError,
    WantedRows,
    field_of,
    meets,
    meets_one,
)
from hydro_core.types.item import FieldPath
from hydro_core.types.values import canonical
from hydro_core.validation.random_ticks import same_items

ItemsByTick = Mapping[str, Mapping[int, Sequence[Any]]]
"""Items by input and tick."""
ReadRows = Callable[[WantedRows], Mapping[int, Sequence[Any]]]
"""Gives rows of an input by their ticks: all that are wanted, maybe others; or `TooManyError`."""
Tick = Callable[[int, Mapping[str, Sequence[Any]]], TickInput]
"""Makes what comes in at a tick of its number and its batches."""


@dataclass
class SlicedRun:
    """A slice at the ticks `first` to `last`; `load` comes before `run`."""

    program: CompiledProgram
    slice: OutputSlice
    first: int
    last: int
    tick: Tick = field(default=lambda _, batches: TickInput(batches))
    settings: Settings | None = None
    rows: dict[str, Mapping[int, Sequence[Any]]] = field(default_factory=dict)
    """The rows that can matter, by input and tick."""
    wanted: dict[str, WantedRows] = field(default_factory=dict)
    too_many: set[str] = field(default_factory=set)
    """The inputs of which more can matter than was to be loaded."""
    _seen: dict[SeenValues, CanonicalValues] = field(default_factory=dict)
    _tests: dict[InputPosition, list[tuple[int, FieldTests]]] = field(default_factory=dict)
    """Conditions on the input of each operator, and its least tick, as far as they are known."""

    def first_wanted(self) -> Mapping[str, WantedRows]:
        """Wanted rows of the inputs for which they are known before anything is read."""
        needs = self.slice.inputs
        return {name: self._wanted(name) for name in needs if needs[name] and not self._open(name)}

    def load(self, read: ReadRows) -> None:
        """Reads what can matter of every input; first those that tell what of others can."""
        needs = self.slice.inputs
        left = [name for name in needs if needs[name]]
        while left:
            ready = [name for name in left if not self._open(name)] or left[:1]
            left = [name for name in left if name not in ready]
            for name in ready:
                self.wanted[name] = wanted = self._wanted(name)
                try:
                    self.rows[name] = wanted.among(read(wanted))
                except TooManyError:
                    self.too_many.add(name)
            self._look(left)

    def run(self, rows: ItemsByTick | None = None) -> list[list[Any]]:
        """The rows that were asked for, of each of the ticks `first` to `last`.

        Args:
            rows: others than those that were loaded: some of them.
        """
        test = [(path, known.forms) for path, known in self.slice.where.items()]
        outputs = self._outputs(self.rows if rows is None else rows, self._keep)
        asked = [tick[self.slice.output] for number, tick in outputs if number >= self.first]
        return [[item for item in items if meets(item, test)] for items in asked]

    def _outputs(self, rows: ItemsByTick, keep: Keep) -> Iterator[tuple[int, Outputs]]:
        rows = self._past_at_once(rows)
        program, numbers = self._program, self._numbers(rows)
        ticks = (
            replace(
                self.tick(number, {name: of[number] for name, of in rows.items() if number in of}),
                number=number,
            )
            for number in numbers
        )
        hooks = Hooks(keep=keep)
        found = run_ticks(program.typed, program.strata, ticks, self.settings, hooks=hooks)
        return zip(numbers, found, strict=True)

    @cached_property
    def _program(self) -> CompiledProgram:
        asked = {node for node, _ in self.slice.edges} | self.slice.streams.keys()
        typed = self.program.typed
        kept = Graph.of(node for node in typed.graph if node.id in asked)
        types = {end: of for end, of in typed.types.items() if end.node in kept.nodes}
        return stratified(Typed(kept, types))

    def _numbers(self, rows: ItemsByTick) -> list[int]:
        """The ticks to run: without those in which nothing happens, where that is sure."""
        last = self.last + 1
        recent = self.slice.recent
        if recent is None:
            return list(range(last))
        there = {number for of in rows.values() for number in of if number < last}
        return sorted({0} | there | set(range(max(0, self.first - recent), last)))

    def _past_at_once(self, rows: ItemsByTick) -> ItemsByTick:
        """The rows, those of ticks that are long past as rows of the first, where that is the same:
        a tick without much to do costs more than its rows.
        """
        if not self.slice.past_at_once:
            return rows
        until = self.first - (self.slice.recent or 0)
        found = {}
        for name, of in rows.items():
            past = [item for number in sorted(of) if number < until for item in of[number]]
            found[name] = {number: items for number, items in of.items() if number >= until}
            if past:
                found[name][0] = past
        return found

    def _open(self, name: str) -> list[SeenValues]:
        """Values that must be seen before the wanted rows of an input are known."""
        conditions = {of for need in self.slice.inputs[name] for _, of in need.conditions}
        return [of for of in conditions if isinstance(of, SeenValues) and of not in self._seen]

    def _look(self, left: Collection[str]) -> None:
        """Sees at the operators' inputs what is complete there, for the inputs that are left."""
        open_ = {seen for name in left for seen in self._open(name)}
        there = self.rows.keys() | {n for n, needs in self.slice.inputs.items() if not needs}
        ready = [seen for seen in open_ if self.slice.before(seen.edge) <= there]
        if not ready:
            return
        found: dict[SeenValues, dict[Hashable, Any]] = {seen: {} for seen in ready}
        watched: dict[InputPosition, list[SeenValues]] = {}
        for seen in ready:
            watched.setdefault(seen.edge, []).append(seen)
        upstream = frozenset().union(*map(self.slice.upstream, watched))

        def keep(node: Node, i: int, tick: int, bag: Bag) -> Bag:
            edge = (node.id, i)
            if node.id not in upstream and edge not in watched:
                return EMPTY
            kept = self._keep(node, i, tick, bag)
            for seen in watched.get(edge, ()):
                for item in kept:
                    value = field_of(item, seen.path)
                    found[seen].setdefault(canonical(value), value)
            return kept if node.id in upstream else EMPTY

        for _ in self._outputs(self.rows, keep):
            pass
        self._seen |= found
        self._tests.clear()

    def _wanted(self, name: str) -> WantedRows:
        needs = self.slice.inputs[name]
        alternatives = tuple(self._known(need) for need in sorted(needs, key=repr))
        oldest = max((need.age for need in needs), default=0)
        return WantedRows(name, alternatives, max(0, self.first - oldest))

    def _known(self, need: ItemDemand) -> Mapping[FieldPath, CanonicalValues]:
        found: dict[FieldPath, CanonicalValues] = {}
        for path, of in need.conditions:
            values = self._values(of)
            if values is not None:
                both = found.get(path, values).keys() & values.keys()
                found[path] = {form: values[form] for form in both}
        return found

    def _values(self, of: KnownValues | SeenValues) -> CanonicalValues | None:
        if isinstance(of, SeenValues):
            return self._seen.get(of)
        return {canonical(value): value for value in of.values}

    def _keep(self, node: Node, i: int, tick: int, bag: Bag) -> Bag:
        """Items of an operator's input that the slice needs at the tick."""
        if not bag.items:
            return bag
        edge = (node.id, i)
        if edge not in self._tests:
            needs = self.slice.edges.get(edge, frozenset())
            self._tests[edge] = [(need.age, self._test(need)) for need in needs]
        tests = [test for age, test in self._tests[edge] if tick >= self.first - age]
        return bag if not all(tests) else Bag(filter(meets_one(tests), bag))

    def _test(self, need: ItemDemand) -> FieldTests:
        return tuple((path, values) for path, values in self._known(need).items())


class LandedRow(NamedTuple):
    """A row of an input: the tick that it is of, and its place among those of the tick."""

    input: str
    tick: int
    place: int


@dataclass(frozen=True, slots=True)
class ShrunkSlice:
    """Rows that are left of a slice."""

    rows: ItemsByTick
    left_out: int
    is_least: bool
    """Without any one of the rows the answer is another one; else there was no time to try all."""
    runs: int


def shrink(run: SlicedRun, seconds: float) -> ShrunkSlice:
    """Leaves out rows of a slice, as long as its answer at the last tick stays what it is.

    Args:
        run: a slice of one tick whose rows are loaded; it has an answer.
        seconds: after so long no more is tried.
    """
    search = _Search(run, time.monotonic() + seconds)
    everything = list(search.kept)
    # last those inputs whose rows were told apart by values that were asked for
    names = sorted({row.input for row in everything}, key=lambda n: not run.wanted[n].is_all)
    for name in names:
        search.reduce([row for row in everything if row.input == name])
    while search.stale and search.has_time:
        for row in [row for row in search.kept if row in search.stale]:
            search.reduce([row])
    kept = dict(search.kept)
    return ShrunkSlice(
        _rows(run.rows, kept), len(everything) - len(kept), not search.untried, search.runs
    )


@dataclass
class _Search:
    run: SlicedRun
    deadline: float
    kept: dict[LandedRow, None] = field(init=False)
    runs: int = 0
    untried: set[LandedRow] = field(init=False)
    """Rows that may be needed or not."""
    stale: set[LandedRow] = field(default_factory=set)
    """Rows that were needed, but others were left out since."""
    _random: Random = field(default_factory=lambda: Random(0))  # noqa: S311 - no secret
    _answer: Sequence[Any] = field(init=False)

    def __post_init__(self) -> None:
        rows = self.run.rows
        self.kept = {
            LandedRow(name, tick, i): None
            for name, ticks in rows.items()
            for tick, items in ticks.items()
            for i in range(len(items))
        }
        self.untried = set(self.kept)
        self._answer = self.run.run()[-1]

    @property
    def has_time(self) -> bool:
        return time.monotonic() < self.deadline

    def reduce(self, group: Sequence[LandedRow]) -> None:
        """Leaves out of the group what is not needed."""
        if not group or not self.has_time:
            return
        needed = self._is_needed(group)
        if len(group) == 1:
            self._settle(group[0], needed=needed)
            return
        shuffled = self._random.sample(group, len(group))
        halves = shuffled[: len(group) // 2], shuffled[len(group) // 2 :]
        if not needed and self.has_time and not any(map(self._is_needed, halves)):
            self._leave_out(group)
            return
        for half in halves:
            self.reduce(sorted(half))

    def _settle(self, row: LandedRow, *, needed: bool) -> None:
        self.stale.discard(row)
        if needed:
            self.untried.discard(row)
        else:
            self._leave_out([row])

    def _leave_out(self, group: Iterable[LandedRow]) -> None:
        for row in group:
            del self.kept[row]
            self.untried.discard(row)
            self.stale.discard(row)
        # What was needed beside these rows may be needed no more.
        self.stale |= self.kept.keys() - self.untried
        self.untried |= self.stale

    def _is_needed(self, group: Iterable[LandedRow]) -> bool:
        """True if the answer differs without the group."""
        without = dict.fromkeys(self.kept)
        for row in group:
            del without[row]
        self.runs += 1
        try:
            found = self.run.run(_rows(self.run.rows, without))[-1]
        except HydroError:
            return True
        return not same_items(found, self._answer, ordered=False)


def _rows(rows: ItemsByTick, kept: dict[LandedRow, None]) -> ItemsByTick:
    found: dict[str, dict[int, list[Any]]] = {name: {} for name in rows}
    for row in sorted(kept):
        found[row.input].setdefault(row.tick, []).append(rows[row.input][row.tick][row.place])
    return found
