"""How many bytes of a stream an exchange sends in a tick, as the optimizer's cost model expects."""

from __future__ import annotations

from collections.abc import Mapping

from hydro_core.analysis.infer import Typed
from hydro_core.ir.graph import Endpoint
from hydro_core.optimize.cost import CostModel
from hydro_core.optimize.egraph import EGraph
from hydro_core.optimize.load import load
from hydro_core.optimize.optimizer import preferred, prepare
from hydro_core.optimize.statistics import ROWS, Statistics
from hydro_core.types.item import Array, Decimal, ItemType, Scalar, children

_BYTES = {"boolean": 1, "byte": 1, "short": 2, "integer": 4, "float": 4, "date": 4}
_LONG = 8
_TEXT = 16
"""What a text is expected to take, and what is known by its name only."""
_MANY = 4
"""How many elements an array is expected to have."""


class Traffic:
    """The expected size of the streams of a program, in bytes a tick."""

    def __init__(self, typed: Typed, stats: Statistics | None = None) -> None:
        """`stats`: what is known of the inputs; None: each has the same number of rows."""
        self._typed = typed
        self._rows = _rows(typed, stats or Statistics())

    def of(self, stream: Endpoint) -> float:
        """The bytes of a stream; one that leads to no output is taken for a batch."""
        rows = self._rows.get(str(stream), self._rows.get(stream.node, ROWS))
        return rows * width(self._typed.types[stream].item)


def width(item: ItemType) -> int:
    """The bytes that an item is expected to take.

    >>> from hydro_core.types.ddl import parse_ddl
    >>> width(parse_ddl("id long, name string, paid boolean"))
    25
    """
    match item:
        case Scalar(name):
            return _BYTES.get(name, _TEXT if name in {"string", "binary"} else _LONG)
        case Decimal():
            return 2 * _LONG
        case Array(element):
            return _MANY * width(element)
        case _:
            return sum(width(part) for _, part in children(item)) or _TEXT


def _rows(typed: Typed, stats: Statistics) -> Mapping[str, float]:
    """Rows in a tick, by the names of streams."""
    loaded = load(typed)
    if not loaded.problem.roots:
        return {}
    problem, _ = prepare(loaded)
    space = EGraph(problem, ()).space()
    model = CostModel(space, problem.payloads, stats)
    sizes = model.sizes(tuple(preferred(problem, space).values()))
    named = {name: sizes[cls] for name, cls in space.named.items()}
    streams = {name: named[of] for name, of in loaded.names.items() if of in named}
    return {**named, **streams}
