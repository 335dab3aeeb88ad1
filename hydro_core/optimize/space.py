"""The plans to choose from: classes of equal streams, each with the nodes that compute it.

A choice of one node per class is a plan. It is legal when every cycle passes an input on which the
node depends through earlier ticks only (a strict one): then the equations have one solution, tick
by tick, which the classes' streams are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hydro_core.optimize.shape import Payload, Shape

ClassId = int


@dataclass(frozen=True, slots=True)
class StreamDefinition:
    """A stream of the program: a node over other streams, by their names."""

    name: str
    shape: str
    payload: int | None
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """A program as the rules see it.

    `definitions` come after what they read; a stream that feeds itself through `prev` is read as
    its cut, a stream without a definition of its own, which `cuts` equates to it.
    """

    shapes: Mapping[str, Shape]
    payloads: tuple[Payload, ...]
    definitions: tuple[StreamDefinition, ...]
    cuts: Mapping[str, str]
    roots: tuple[str, ...]
    facts: tuple[tuple[str, tuple[int | str, ...]], ...] = ()

    def known(self, *names: str) -> Iterator[tuple[int, ...]]:
        """What facts of these names say of arguments, which are told by their numbers."""
        for name, args in self.facts:
            if name in names:
                yield tuple(arg for arg in args if isinstance(arg, int))


@dataclass(frozen=True, slots=True)
class ENode:
    """A way to compute the class `cls`."""

    shape: Shape
    payload: int | None
    inputs: tuple[ClassId, ...]
    cls: ClassId


@dataclass(frozen=True, slots=True)
class Space:
    """All that saturation found; `of[c]` are the positions in `nodes` of class c."""

    nodes: tuple[ENode, ...]
    of: tuple[tuple[int, ...], ...]
    roots: tuple[ClassId, ...]
    named: Mapping[str, ClassId]
    """The classes of the program's own streams."""


def classes_read(problem: Problem, space: Space, by: StreamDefinition) -> tuple[ClassId, ...]:
    """The classes of what a stream of the program reads, cuts of streams as these."""
    return tuple(space.named[problem.cuts.get(name, name)] for name in by.inputs)


def own_nodes(problem: Problem, space: Space) -> tuple[int, ...]:
    """The positions of the program's own nodes, where they are still there."""
    place = {(n.shape.name, n.payload, n.inputs): i for i, n in enumerate(space.nodes)}
    keys = ((d.shape, d.payload, classes_read(problem, space, d)) for d in problem.definitions)
    return tuple(place[key] for key in keys if key in place)
