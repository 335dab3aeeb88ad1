"""Runs a program in shards on either engine, tick by tick, and makes their results one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import tee
from typing import Any

from hydro_core.compile import optimized
from hydro_core.engines import Options, Outputs, run_whole
from hydro_core.optimize.cost import Goal
from hydro_core.shards.program import Sharded
from hydro_core.ticks.tick import TickInput
from hydro_core.types.stream import Order, StreamType
from hydro_core.types.values import sort_key


def run_shards(program: Sharded, ticks: Iterable[TickInput], options: Options) -> Iterator[Outputs]:
    """The outputs of every tick, as items: those of the whole program."""
    if options.optimized:
        goal: Goal = "range" if options.as_range else "tick"
        program = program.changed(lambda compiled: optimized(compiled, goal=goal))
    return _Run(program, replace(options, optimized=False)).outputs(ticks)


@dataclass(frozen=True, slots=True)
class _Run:
    program: Sharded
    options: Options

    def outputs(self, ticks: Iterable[TickInput]) -> Iterator[Outputs]:
        """The outputs of every tick: what the shards give, and what the last step makes of it."""
        own, *given = tee(ticks, self.program.count + 1)
        of_shards = zip(
            *(
                run_whole(self.program.of(shard), part, self.options)
                for shard, part in enumerate(given)
            ),
            strict=True,
        )
        if self.program.last is None:
            for parts in of_shards:
                yield self._merged(parts)
            return
        pending: deque[tuple[Outputs, ...]] = deque()

        def gathered() -> Iterator[TickInput]:
            for parts in of_shards:
                pending.append(parts)
                yield self._gathered(next(own), parts)

        for found in run_whole(self.program.last, gathered(), self.options):
            yield self._merged((*pending.popleft(), found))

    def _gathered(self, tick: TickInput, parts: Sequence[Outputs]) -> TickInput:
        """What the last step reads."""
        assert self.program.last is not None
        whole = {n: b for n, b in tick.batches.items() if n in self.program.last.typed.inputs}
        given = {name: [x for part in parts for x in part[name]] for name in self.program.gathered}
        return replace(tick, batches={**whole, **given})

    def _merged(self, parts: Sequence[Outputs]) -> Outputs:
        return {name: _one(name, of, parts) for name, of in self.program.outputs.items()}


def _one(name: str, stream: StreamType, parts: Sequence[Mapping[str, list[Any]]]) -> list[Any]:
    """An output as it is told: one with an order is made in one place."""
    items = [x for part in parts for x in part.get(name, ())]
    return items if stream.order is Order.TOTAL else sorted(items, key=sort_key)
