"""What two programs are said to share is seen on random ticks, beside being proved.

Both programs run on the reference interpreter on the same items, which take constants of either, so
that what tells them apart is met. Where one of them fails, they are compared up to there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.itemwise import SINK
from hydro_core.catalog.spec import Args
from hydro_core.compile import CompiledProgram, stratified
from hydro_core.ir.graph import Endpoint, Graph, Node, behind
from hydro_core.program_change.difference import (
    NEW,
    NEW_PLAN,
    OLD,
    OLD_PLAN,
    Difference,
    DisprovedOutput,
)
from hydro_core.ticks.tick import TickInput
from hydro_core.types.item import ItemType, Order, Row
from hydro_core.types.values import RowItem
from hydro_core.validation.random_ticks import (
    TickInputs,
    constants_of,
    outputs_before_failure,
    random_batches,
    same_items,
)

RUNS = 20
SECONDS = 2.0
"""After so long no further run begins."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Streams of two programs that are said to be the same; several add up."""

    before: tuple[Endpoint, ...]
    after: tuple[Endpoint, ...]
    columns: tuple[str, ...] = ()
    """The columns that are compared, where one side has more."""


@dataclass(frozen=True, slots=True)
class ClaimMismatch:
    """A tick at which a claim is wrong, with the items of every input up to it."""

    name: str
    tick: int
    before: Sequence[Any]
    after: Sequence[Any]
    batches: Sequence[Mapping[str, Sequence[Any]]]

    def __str__(self) -> str:
        return (
            f"`{self.name}` is not the same: in tick {self.tick} it was {list(self.before)} and is"
            f" now {list(self.after)}; the inputs of the ticks were {list(self.batches)}"
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """How what is said to be the same was tried, and the first mismatch of what is not."""

    runs: int
    seed: int
    outputs: Mapping[str, ClaimMismatch]
    states: Mapping[str, ClaimMismatch]
    """By the ids of the new plan's slots."""

    def corrected(self, found: Difference) -> Difference:
        """The difference, in which nothing is the same that was seen not to be."""
        wrong = DisprovedOutput(frozenset(self.outputs), frozenset(self.states))
        return replace(found, disproved=wrong)


def try_out(found: Difference, runs: int = RUNS, seed: int = 0, seconds: float = SECONDS) -> Trial:
    """Tries on random ticks what `found` calls the same: outputs, and states that are kept.

    Args:
        found: what becomes of outputs and states.
        runs: how many random runs of a few ticks.
        seed: what the random items are made from.
        seconds: after so long no further run begins.
    """
    names = [n for n, output in found.outputs.items() if output.change in {"same", "columns"}]
    before, after = found.programs[OLD], found.programs[NEW]
    outputs = {name: _claim(before, after, name) for name in names}
    states = {name: Claim((old,), (new,)) for name, (old, new) in found.kept_streams.items()}
    plans = found.programs[OLD_PLAN], found.programs[NEW_PLAN]
    half = seconds / 2
    of_outputs, done = try_claims(before, after, outputs, runs, seed, half)
    of_states, done_too = try_claims(*plans, states, runs, seed, half)
    return Trial(min(done, done_too), seed, of_outputs, of_states)


def try_claims(
    before: Typed,
    after: Typed,
    claims: Mapping[str, Claim],
    runs: int = RUNS,
    seed: int = 0,
    seconds: float = SECONDS,
) -> tuple[Mapping[str, ClaimMismatch], int]:
    """The claims that are wrong on random ticks, each by its first mismatch, and how many runs were
    made.
    """
    left = dict(claims)
    one = _seen(before, {name: claim.before for name, claim in claims.items()})
    other = _seen(after, {name: claim.after for name, claim in claims.items()})
    constants = tuple(dict.fromkeys((*constants_of(one), *constants_of(other))))
    wrong: dict[str, ClaimMismatch] = {}
    end = time.monotonic() + seconds
    for number in range(runs):
        if not left or (number and time.monotonic() > end):
            return wrong, number if left else runs
        rng = Random(f"{seed}/{number}")  # noqa: S311 - nothing is secret
        found = dict(_mismatches(one, other, left, _ticks(one, other, rng, constants)))
        wrong |= found
        left = {name: claim for name, claim in left.items() if name not in found}
    return wrong, runs


def _claim(before: Typed, after: Typed, output: str) -> Claim:
    one, other = (tuple(s.inputs[0] for s in of.graph.sinks[output]) for of in (before, after))
    items = before.outputs[output].item, after.outputs[output].item
    columns: tuple[str, ...] = ()
    if isinstance(items[0], Row) and isinstance(items[1], Row) and items[0] != items[1]:
        columns = tuple(n for n in items[0].names if n in items[1].names)
    return Claim(one, other, columns)


def _seen(typed: Typed, streams: Mapping[str, Sequence[Endpoint]]) -> CompiledProgram:
    """The part of a program that makes these streams, which are its outputs."""
    graph = typed.graph
    made_of = behind(graph, (end.node for ends in streams.values() for end in ends))
    sinks = [
        Node(f"{name} part {i}", SINK, Args().with_(name=name), (end,))
        for name, ends in streams.items()
        for i, end in enumerate(ends)
    ]
    kept = [node for node in graph if node.id in made_of]
    return stratified(Typed(Graph.of([*kept, *sinks], graph.name), typed.types))


def _ticks(
    one: CompiledProgram, other: CompiledProgram, rng: Random, constants: Sequence[Any]
) -> tuple[TickInputs, TickInputs]:
    """The same random items for inputs of one name and type, whatever the order of columns."""
    inputs = {
        (name, _by_name(stream.item)): _by_name(stream.item)
        for program in (one, other)
        for name, stream in program.typed.inputs.items()
    }
    batches = random_batches(inputs, rng, constants)
    first, second = (
        [
            TickInput(
                {
                    n: [_of_type(x, s.item) for x in batch[n, _by_name(s.item)]]
                    for n, s in program.typed.inputs.items()
                }
            )
            for batch in batches
        ]
        for program in (one, other)
    )
    return first, second


def _by_name(item: ItemType) -> ItemType:
    """The type of rows with their columns in the order of their names."""
    if not isinstance(item, Row):
        return item
    return Row(tuple(sorted(item.fields, key=lambda column: column.name)))


def _of_type(item: Any, of: ItemType) -> Any:
    return RowItem({n: item[n] for n in of.names}) if isinstance(of, Row) and item else item


def _mismatches(
    one: CompiledProgram,
    other: CompiledProgram,
    claims: Mapping[str, Claim],
    ticks: tuple[TickInputs, TickInputs],
) -> Iterator[tuple[str, ClaimMismatch]]:
    befores, _ = outputs_before_failure(one, ticks[0])
    afters, _ = outputs_before_failure(other, ticks[1][: len(befores)])
    for name, claim in claims.items():
        ordered = all(p.typed.outputs[name].order is Order.TOTAL for p in (one, other))
        for number, (before, after) in enumerate(zip(befores, afters, strict=False)):
            left, right = (_narrowed(items[name], claim) for items in (before, after))
            if not same_items(left, right, ordered):
                batches = [dict(tick.batches) for tick in ticks[1][: number + 1]]
                yield name, ClaimMismatch(name, number, left, right, batches)
                break


def _narrowed(items: Sequence[Any], claim: Claim) -> Sequence[Any]:
    if not claim.columns:
        return items
    return [item and RowItem({c: item[c] for c in claim.columns}) for item in items]
