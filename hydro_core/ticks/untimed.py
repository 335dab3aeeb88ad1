"""What needs the times of ticks, and what is said where they have none."""

from __future__ import annotations

from hydro_core.catalog.spec import State
from hydro_core.errors import DataError
from hydro_core.ir.graph import Graph, Node


def refuse_untimed(node: Node, tick: int) -> DataError:
    """The error of an operator that goes by the times of ticks, at one that has none."""
    operator = node.op.called
    return DataError.of(
        "input",
        f"`{operator}` in tick {tick}: rows leave by the end of the tick, which has no times",
        node.span,
        operator,
        help='give the ticks times: `"start"` and `"every"` beside `"ticks"`, `start=` and '
        "`every=` of `Flow.run`, or a column of times with `run --input`",
    )


def timed_nodes(graph: Graph) -> tuple[Node, ...]:
    """The operators that go by the times of ticks."""
    return tuple(node for node in graph if node.spec.state is State.RECENT)
