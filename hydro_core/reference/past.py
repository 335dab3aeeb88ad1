"""What an operator may know of earlier ticks: the bags of its input, or the result it gave last.

How much is kept is the operator's column `state` in the catalogue.
"""

from __future__ import annotations

from collections import deque

from hydro_core.catalog.classes import Running
from hydro_core.catalog.spec import State
from hydro_core.ir.graph import Node
from hydro_core.reference.bag import EMPTY, Bag


class NodePast:
    """The input `a` of a stateful node at tick t: `now` is `a_t`, all else is of earlier ticks."""

    def __init__(self, keeps_all: bool, ticks: int, *, keeps_result: bool = False) -> None:
        self._keeps_result = keeps_result
        self.now: Bag = EMPTY
        self.result_before: Bag = EMPTY
        self._sum: Bag | None = Bag() if keeps_all else None
        self._bags: deque[Bag] = deque(maxlen=ticks)

    @staticmethod
    def of(node: Node) -> NodePast | None:
        """The empty past of a node at tick 0; None for a stateless operator."""
        match node.spec.state:
            case State.NONE:
                return None
            case State.HISTORY | State.RECENT:
                return NodePast(keeps_all=True, ticks=0)
            case State.RESULT:
                over_all = isinstance(node.cls, Running) and not node.cls.changes
                return NodePast(keeps_all=over_all, ticks=0, keeps_result=True)
            case State.WINDOW:
                return NodePast(keeps_all=False, ticks=max(0, node.args["n"] - 1))
            case State.LAST:
                return NodePast(keeps_all=False, ticks=1)

    @property
    def before(self) -> Bag:
        """`a_{t−1}`, empty at t = 0."""
        return self._bags[-1] if self._bags else EMPTY

    @property
    def recent(self) -> Bag:
        """The sum of the earlier ticks that are kept."""
        return Bag(item for bag in self._bags for item in bag)

    @property
    def earlier(self) -> Bag:
        """`Σ_{s<t} a_s`, for an operator that keeps its whole history."""
        if self._sum is None:
            raise ValueError("the history of this operator is not kept")
        return self._sum

    def kept(self) -> list[Bag]:
        """All bags that are known of earlier ticks; later ticks leave them as they are."""
        history = [] if self._sum is None else [Bag(self._sum)]
        result = [self.result_before] if self._keeps_result else []
        return [*history, *self._bags, *result]

    def end_tick(self, now: Bag, result: Bag) -> None:
        """The tick is over: its input and its result belong to the past."""
        if self._sum is not None:
            self._sum.grow(now)
        self._bags.append(now)
        self.result_before = result
        self.now = EMPTY
