"""The meanings by operator name: `@means("delta")` on a function from inputs to output.

A meaning gets the `Site` and one `Bag` per input, in the order of the ports; a stateful operator
gets the `Past` of its input instead. It gives a `Bag`, or one bag per output port.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from hydro_core.catalog.spec import Args
from hydro_core.reference.bag import Bag

OperatorOutput = Bag | Mapping[str, Bag]
MeaningFunction = Callable[..., OperatorOutput]
F = TypeVar("F", bound=MeaningFunction)


class SemiNaive(Enum):
    """How the output grows when inputs do: what spares semi-naive evaluation to start anew."""

    TOGETHER = "op(x + dx, y + dy) = op(x, y) + op(dx, dy)"
    EACH = "op(x + dx, y) = op(x, y) + op(dx, y), likewise in y"
    FIRST = "op(x + dx, y) = op(x, y) + op(dx, y), but not so in y"
    ONCE = "op(x + dx) = op(x) + what of op(dx) is not there yet"
    INPUT = "op(x + dx) = op(x) + dx"
    ANEW = "nothing is known but that the output does not shrink"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an operator does in one tick, and how its output grows within a cycle."""

    name: str
    function: MeaningFunction
    growth: SemiNaive | Callable[[Args], SemiNaive]
    exact: bool
    """Its items are of the output's type as they are; others are made to fit it."""

    def growth_of(self, args: Args) -> SemiNaive:
        """How the output of a node with these arguments grows."""
        return self.growth if isinstance(self.growth, SemiNaive) else self.growth(args)


_MEANINGS: dict[str, Meaning] = {}


def means(
    *names: str,
    growth: SemiNaive | Callable[[Args], SemiNaive] = SemiNaive.ANEW,
    exact: bool = False,
) -> Callable[[F], F]:
    """Registers the function as the meaning of the operators so named."""

    def register(function: F) -> F:
        for name in names:
            if name in _MEANINGS:
                raise ValueError(f"`{name}` has a meaning already")
            _MEANINGS[name] = Meaning(name, function, growth, exact)
        return function

    return register


def meaning_of(name: str) -> Meaning:
    """The meaning of the operator `name`."""
    return _MEANINGS[name]


def meanings() -> Mapping[str, Meaning]:
    """All meanings by the operator's name."""
    return _MEANINGS
