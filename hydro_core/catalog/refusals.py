"""What operators say of data that they cannot take, and what helps: the same on both engines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hydro_core.types.item import ItemType


class Refusal(NamedTuple):
    """Why an operator fails a tick, and the cure."""

    reason: str
    cure: str


MANY_SINGLES = Refusal(
    "more than one item arrived at [single], where one is allowed",
    "reduce them to one first, or use `cross`",
)
NO_COMMAND = Refusal("is not a command", 'commands are `("persist", x)` and `("delete", x)`')
NO_KEYED_COMMAND = NO_COMMAND._replace(
    cure='commands are `("persist", k, v)` and `("delete", k, None)`'
)


def undeclared(ports: Iterable[str]) -> Refusal:
    """Of an item for which a function names a port that there is not."""
    return Refusal(
        "names a port that is not declared",
        f"the ports are {', '.join(ports)}: name one of them, or declare one more",
    )


def sum_beyond(total: object) -> Refusal:
    """Of a sum of integers beyond 64 bits."""
    return Refusal(f"the sum {total} is beyond 64 bits", "sum decimals or doubles instead")


def digits_beyond(what: str, to: ItemType) -> Refusal:
    """Of a sum or mean of decimals that has too many digits."""
    return Refusal(
        f"the {what} has more digits than {to}",
        "take doubles, or decimals of fewer digits after the point, instead",
    )


def endless_cycle(path: str, limit: str, setting: str) -> Refusal:
    """Of a cycle that does not come to its end."""
    return Refusal(
        f"the cycle {path} is not done after {limit} (`{setting}`)",
        "let it stop: `unique()` keeps items from going round again, a filter bounds new ones; "
        "or let it go on in the next tick, with `prev()`",
    )
