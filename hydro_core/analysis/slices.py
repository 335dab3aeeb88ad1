"""Slices: the items of every stream that can matter for some rows of an output, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.partition.steps import FlowStep, Steps, steps_of
from hydro_core.analysis.partition.terms import FieldAt, KeyTerm, TermTable, keeps_value
from hydro_core.catalog.spec import Never, OnAnyField, OnKey, Replicated, State
from hydro_core.errors import ProgramError
from hydro_core.ir.graph import Node, NodeId, behind
from hydro_core.lang.source import did_you_mean
from hydro_core.types.item import FieldPath, ItemType, Order, Tuple, at, leaves
from hydro_core.types.values import canonical

# A demand on an output goes backwards through the program, to demands on the inputs of each
# operator: conditions on the fields of an item, and its largest age in ticks. The rules are read
# off the catalogue's columns, as the partitioning analysis reads them. A slice is an upper bound:
# an item outside it cannot change the demanded rows; an item inside it may have no effect.


FOREVER = 1 << 62
"""The age of items of any tick."""
MOST_NEEDS = 8
"""Most alternatives in the demand on a stream; more are replaced by one that covers all."""
_MOST_VISITS = 40
"""An operator whose demand still grows after so many visits (a cycle) gets a demand for all items.
"""

InputPosition = tuple[NodeId, int]
"""An input of an operator, by its position."""


@dataclass(frozen=True)
class KnownValues:
    """Values that a field may have: the demanded values of `column`."""

    column: str
    values: tuple[Any, ...] = field(compare=False, repr=False)
    forms: frozenset[Hashable] = frozenset()

    @staticmethod
    def of(column: str, values: Iterable[Any]) -> KnownValues:
        """The values of a column of the output."""
        distinct = {canonical(value): value for value in values}
        return KnownValues(column, tuple(distinct.values()), frozenset(distinct))


@dataclass(frozen=True)
class SeenValues:
    """The values that a field has in the items that enter an operator at its other input."""

    edge: InputPosition
    path: FieldPath


Condition = tuple[FieldPath, KnownValues | SeenValues]


class ItemDemand(NamedTuple):
    """Demanded items: those that satisfy all conditions and are at most `age` ticks old."""

    conditions: frozenset[Condition]
    age: int


Needs = frozenset[ItemDemand]
"""Alternatives; the empty set demands nothing."""


@dataclass(frozen=True)
class OutputSlice:
    """The demand on every stream, for some rows of an output."""

    steps: Steps
    output: str
    where: Mapping[FieldPath, KnownValues]
    """The demand on the output: values of fields of its rows."""
    edges: Mapping[InputPosition, Needs]
    """The demands on the inputs of operators; an absent input has none."""
    streams: Mapping[NodeId, Needs]

    @property
    def inputs(self) -> Mapping[str, Needs]:
        """The demand on each input of the program, in their order."""
        sources = self.steps.sources
        return {s.name: self.streams.get(node, frozenset()) for node, s in sources.items()}

    @cached_property
    def recent(self) -> int | None:
        """The number of past ticks that must be replayed one by one; of earlier ticks only those
        with rows, and the first. None: all ticks must be replayed, since some stored state grows or
        changes without input.
        """
        found = 0
        for node, needs in self.streams.items():
            spec = self.steps.of[node].node.spec
            ages = [need.age for need in needs]
            if FOREVER in ages and (spec.state is not State.NONE or not spec.zero):
                return None
            found = max([found, *(age for age in ages if age < FOREVER)])
        return found

    @cached_property
    def past_at_once(self) -> bool:
        """True if all rows before the ticks of `recent` may be replayed in one tick, the first.

        Every operator that reads them gives for their sum what it gives tick by tick.
        """
        old = [n for n, needs in self.streams.items() if any(n.age == FOREVER for n in needs)]
        types = self.steps.typed.types
        ordered = {end.node for end, stream in types.items() if stream.order is not Order.NONE}
        return self.recent is not None and all(
            (step := self.steps.of[node]).adds_up
            and step.node.spec.time_invariant
            and node not in ordered
            for node in old
        )

    def upstream(self, edge: InputPosition) -> frozenset[NodeId]:
        """The operators upstream of the edge."""
        node, position = edge
        return frozenset(behind(self.steps.typed.graph, [self.steps.of[node].inputs[position]]))

    def before(self, edge: InputPosition) -> frozenset[str]:
        """The inputs of the program upstream of the edge."""
        found = self.upstream(edge)
        return frozenset(s.name for node, s in self.steps.sources.items() if node in found)

    def blocker(self, name: str) -> Node | None:
        """The operator that makes all items of an input matter; None if there is none."""
        start = next(node for node, s in self.steps.sources.items() if s.name == name)
        if all(need.conditions for need in self.streams.get(start, ())):
            return None
        seen, todo = {start}, [start]
        while todo:
            reads = todo.pop(0)
            for (node, i), needs in self.edges.items():
                if self.steps.of[node].inputs[i] != reads or all(n.conditions for n in needs):
                    continue
                asked = self.streams.get(node, frozenset())
                if all(need.conditions for need in asked):
                    return self.steps.of[node].node
                if node not in seen:
                    seen.add(node)
                    todo.append(node)
        return None


def slice_of(
    typed: Typed, output: str, where: Mapping[FieldPath, KnownValues], steps: Steps | None = None
) -> OutputSlice:
    """The slice for the rows of an output that have one of the given values in each of the fields.

    Args:
        typed: the program.
        output: the name of one of its outputs.
        where: values, by the fields of the output's items; a field is a leaf.
        steps: the steps of the program, if they are computed already; several slices may share
            them.
    """
    steps = steps or steps_of(typed)
    conditions = frozenset(where.items())
    found = _Backwards(steps, typed)
    for sink in typed.graph.sinks[output]:
        there = typed.types[sink.inputs[0]].item
        item = typed.outputs[output].item
        kept = frozenset(
            (path, known)
            for path, known in conditions
            if keeps_value(at(item, path), at(there, path))
        )
        found.ask((sink.id, 0), [ItemDemand(kept, 0)])
    found.settle()
    return OutputSlice(steps, output, where, found.edges, found.streams)


def all_columns(typed: Typed, output: str) -> Mapping[FieldPath, KnownValues]:
    """A condition on every field of an output; the values are not known yet."""
    return {path: KnownValues(".".join(path), ()) for path, _ in leaves(typed.outputs[output].item)}


class _Backwards:
    """Demands on all streams, grown to the least fixpoint."""

    def __init__(self, steps: Steps, typed: Typed) -> None:
        self._steps, self._typed = steps, typed
        self.edges: dict[InputPosition, Needs] = {}
        self.streams: dict[NodeId, Needs] = {}
        self._todo: dict[NodeId, None] = {}
        self._visits = Counter[NodeId]()

    def ask(self, edge: InputPosition, more: Iterable[ItemDemand]) -> None:
        """Adds to the demand on an input of an operator, and so on the stream that enters."""
        known = self.edges.get(edge, frozenset())
        new = _fewest([*known, *more])
        if new == known:
            return
        self.edges[edge] = new
        reads = self._steps.of[edge[0]].inputs[edge[1]]
        before = self.streams.get(reads, frozenset())
        asked = _fewest([*before, *new])
        if asked != before:
            self.streams[reads] = asked
            self._todo[reads] = None

    def settle(self) -> None:
        while self._todo:
            name = next(iter(self._todo))
            del self._todo[name]
            self._visits[name] += 1
            step = self._steps.of[name]
            for need in sorted(self.streams[name], key=repr):
                too_often = self._visits[name] > _MOST_VISITS
                for edge, wanted in _back(step, need):
                    self.ask(edge, [ItemDemand(frozenset(), FOREVER) if too_often else wanted])


def _back(step: FlowStep, need: ItemDemand) -> Iterator[tuple[InputPosition, ItemDemand]]:
    """The demand on each input of an operator, from one demand on its output."""
    age = _aged(step.node, need.age)
    found = [_conditions(step, i, need.conditions) for i in range(len(step.inputs))]
    for i, conditions in enumerate(found):
        met = _met(step, i, found)
        yield (step.node.id, i), ItemDemand(conditions | met, age)


def _conditions(step: FlowStep, i: int, conditions: frozenset[Condition]) -> frozenset[Condition]:
    """Conditions on an item of an input that takes part in an item with the given conditions.

    Where every item of the output comes from one item of the input, conditions on copied fields
    apply. Where items of one key are combined, conditions on fields of the key apply.
    """
    found: set[Condition] = set()
    if step.adds_up or (step.linear[i] and len(step.inputs) > 1):
        found |= _rewritten(conditions, step.backward[i])
    if step.key is not None:
        back = {out: (name,) for name, outs in step.key.output.items() for out in outs}
        of_key = _rewritten(conditions, back)
        found |= _rewritten(of_key, step.key.fields[i])
    return frozenset(found)


def _met(step: FlowStep, i: int, found: list[frozenset[Condition]]) -> frozenset[Condition]:
    """The condition that an item has matched items on the other side, where it has no effect
    without.

    Without a match the item has no effect if the operator is linear in the other side: an empty
    side gives an empty result, key by key.
    """
    if step.key is None or step.adds_up or len(step.inputs) < 2:
        return frozenset()
    fields = step.key.fields
    there = {path for path, _ in found[i]}
    open_names = [name for name in fields[i] if there.isdisjoint(_paths(fields[i][name]))]
    if not open_names:
        return frozenset()
    for j, known in enumerate(found):
        if j != i and step.linear[j] and (len(known), -j) > (len(found[i]), -i):
            return frozenset(
                (mine, SeenValues((step.node.id, j), other))
                for name in open_names
                for mine in _paths(fields[i][name])
                for other in _paths(fields[j][name])
            )
    return frozenset()


def _rewritten(conditions: Iterable[Condition], table: TermTable) -> set[Condition]:
    return {
        (before, values)
        for path, values in conditions
        for before in _paths(table.get(FieldAt(path), ()))
    }


def _paths(terms: Iterable[KeyTerm]) -> list[FieldPath]:
    """The fields among the terms."""
    return [term.path for term in terms if isinstance(term, FieldAt)]


def _aged(node: Node, age: int) -> int:
    """The largest age of items of the input for items of the output that are at most `age` ticks
    old.
    """
    match node.spec.state:
        case State.NONE:
            more = 0
        case State.WINDOW:
            more = node.args["n"] - 1
        case State.LAST:
            more = 1
        case State.HISTORY | State.RESULT | State.RECENT:
            return FOREVER
    return min(age + more, FOREVER)


def _fewest(needs: Iterable[ItemDemand]) -> Needs:
    """The alternatives that no other one covers; of too many, one that covers all."""
    distinct = frozenset(needs)
    least = frozenset(
        need
        for need in distinct
        if not any(
            o != need and o.conditions <= need.conditions and o.age >= need.age for o in distinct
        )
    )
    if len(least) <= MOST_NEEDS:
        return least
    common = frozenset.intersection(*(need.conditions for need in least))
    return frozenset([ItemDemand(common, max(need.age for need in least))])


# Slices in words: the rows of each input that can matter, and the reason where all can.


@dataclass(frozen=True, slots=True)
class SliceAnswer:
    """For rows of an output with given values in some columns: the rows of each input that can
    matter.
    """

    slice: OutputSlice
    columns: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """For each input its alternatives: the columns whose values each one demands.

        An input whose rows all can matter has `{}`; an input without effect has no alternatives.
        """
        return {
            name: [
                {path_name(path): _source(of) for path, of in sorted(need.conditions, key=repr)}
                for need in sorted(needs, key=repr)
            ]
            for name, needs in self.slice.inputs.items()
        }

    def __str__(self) -> str:
        head = f"What can matter for rows of {self.slice.output} with given {_and(self.columns)}:"
        inputs = self.slice.inputs
        return "\n".join([head, *(f"  {name}: {in_words(self.slice, name)}" for name in inputs)])


def slice_answer(typed: Typed, output: str, columns: Sequence[str]) -> SliceAnswer:
    """The slice for rows of an output with given values in some columns, for any values.

    Raises:
        ProgramError: there is no such output, or no such column (code `name`).
    """
    paths = [column_of(typed, output, column) for column in columns]
    known = all_columns(typed, output)
    where = {path: known[path] for path in paths}
    return SliceAnswer(slice_of(typed, output, where), tuple(columns))


def column_of(typed: Typed, output: str, column: str) -> FieldPath:
    """The field of an output's items that a column's name says: `user`, `_1`, `_2.city`, `item`.

    Raises:
        ProgramError: there is no such output, or no such column (code `name`).
    """
    if output not in typed.outputs:
        listed = ", ".join(f"`{name}`" for name in typed.outputs)
        cure = did_you_mean(output, typed.outputs) or f"the outputs are {listed}"
        raise ProgramError.of("name", f"there is no output `{output}`", help=cure)
    names = {
        path_name(path, typed.outputs[output].item): path for path in all_columns(typed, output)
    }
    if column not in names:
        listed = ", ".join(f"`{name}`" for name in names)
        cure = did_you_mean(column, names) or f"its columns are {listed}"
        message = f"the output `{output}` has no column `{column}` that holds one value"
        raise ProgramError.of("name", message, help=cure)
    return names[column]


def path_name(path: FieldPath, item: ItemType | None = None) -> str:
    """The name of a field as a column; positions in tuples, where the item is known, count from
    `_1`.
    """
    parts: list[str] = []
    for i, step in enumerate(path):
        is_place = item is not None and isinstance(at(item, path[:i]), Tuple)
        parts.append(f"_{int(step) + 1}" if is_place else step)
    return ".".join(parts) or "item"


def in_words(found: OutputSlice, name: str) -> str:
    """The rows of an input that can matter, in words."""
    needs = sorted(found.inputs[name], key=repr)
    if not needs:
        return "none of its rows can matter"
    item = next(s.item for s in found.steps.sources.values() if s.name == name)
    blocker = found.blocker(name)
    if not all(need.conditions for need in needs):
        age = max(need.age for need in needs)
        because = "" if blocker is None else f": {_reason(blocker)}"
        return f"all rows{_since(age)} can matter{because}"
    return "; or ".join(f"rows{_since(n.age)} {_in_words(found, n, item)}" for n in needs)


def _in_words(found: OutputSlice, need: ItemDemand, item: ItemType) -> str:
    parts, looked = [], dict[NodeId, list[str]]()
    for path, of in sorted(need.conditions, key=repr):
        name = f"`{path_name(path, item)}`"
        if isinstance(of, KnownValues):
            parts.append(_known(name, of))
        else:
            looked.setdefault(of.edge[0], []).append(name)
    known = [f"with {_and(parts)}"] if parts else []
    asked = [
        f"whose {_and(names)} {_who(found.steps.of[node].node)} looks for"
        for node, names in looked.items()
    ]
    return _and([*known, *asked])


def _known(name: str, of: KnownValues) -> str:
    match of.values:
        case ():
            return f"that {name}"
        case (value,):
            return f"{name} = {'null' if value is None else value}"
        case _:
            return f"one of {len(of.values)} values of {name}"


def _source(of: Any) -> str:
    return of.column if isinstance(of, KnownValues) else f"looked for by {of.edge[0]}"


def _since(age: int) -> str:
    if age == 0:
        return " of the tick"
    return " of any tick up to it" if age >= FOREVER else f" of the last {age + 1} ticks"


def _reason(node: Node) -> str:
    """The reason why any result of the operator can need all items."""
    who = _who(node)
    match node.spec.partition:
        case Never(why):
            return f"{who}: {why}"
        case Replicated(port):
            return f"{who} needs the whole of its input `{port}`"
        case OnKey() | OnAnyField():
            key = node.args.get("by") or node.args.get("on") or ()
            named = f" {_and([f'`{name}`' for name in key])}" if key else " its key"
            return f"{who} brings together what is equal in{named}, and no value is asked for there"
        case _:
            return f"{who} computes what is asked for, so its input cannot be told apart by it"


def _and(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _who(node: Node) -> str:
    place = "" if node.span is None else f" in line {node.span.line}"
    return f"`{node.op.name}`{place}"
