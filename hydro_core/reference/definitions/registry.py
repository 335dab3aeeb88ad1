"""The definitions by operator name: `@defines("delta")` on a function from inputs to output.

A definition gets the `Site` and one `Bag` per input, in the order of the ports; a stateful operator
gets the `NodePast` of its input instead. It gives a `Bag`, or one bag per output port.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from hydro_core.catalog.spec import Args
from hydro_core.reference.bag import Bag

OperatorOutput = Bag | Mapping[str, Bag]
DefiningFunction = Callable[..., OperatorOutput]
F = TypeVar("F", bound=DefiningFunction)


class SemiNaive(Enum):
    """The growth of the output when inputs grow: semi-naive evaluation uses it to avoid a full
    evaluation.
    """

    TOGETHER = "op(x + dx, y + dy) = op(x, y) + op(dx, dy)"
    EACH = "op(x + dx, y) = op(x, y) + op(dx, y), likewise in y"
    FIRST = "op(x + dx, y) = op(x, y) + op(dx, y), but not so in y"
    ONCE = "op(x + dx) = op(x) + what of op(dx) is not there yet"
    INPUT = "op(x + dx) = op(x) + dx"
    ANEW = "nothing is known but that the output does not shrink"


@dataclass(frozen=True, slots=True)
class OperatorDefinition:
    """The function of an operator in one tick, and the growth of its output within a cycle."""

    name: str
    function: DefiningFunction
    growth: SemiNaive | Callable[[Args], SemiNaive]
    exact: bool
    """Its items have the output's type already; others are converted to it."""

    def growth_of(self, args: Args) -> SemiNaive:
        """The growth of the output of a node with these arguments."""
        return self.growth if isinstance(self.growth, SemiNaive) else self.growth(args)


_DEFINITIONS: dict[str, OperatorDefinition] = {}


def defines(
    *names: str,
    growth: SemiNaive | Callable[[Args], SemiNaive] = SemiNaive.ANEW,
    exact: bool = False,
) -> Callable[[F], F]:
    """Registers the function as the definition of the operators so named."""

    def register(function: F) -> F:
        for name in names:
            if name in _DEFINITIONS:
                raise ValueError(f"`{name}` has a definition already")
            _DEFINITIONS[name] = OperatorDefinition(name, function, growth, exact)
        return function

    return register


def definition_of(name: str) -> OperatorDefinition:
    """The definition of the operator `name`."""
    return _DEFINITIONS[name]


def definitions() -> Mapping[str, OperatorDefinition]:
    """All definitions by the operator's name."""
    return _DEFINITIONS
