"""What a chosen plan costs, stream by stream and statement by statement, now and once history is
longer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hydro_core.catalog.classes import Output
from hydro_core.catalog.forms import Form
from hydro_core.errors import Span
from hydro_core.ir.graph import Node
from hydro_core.optimize.cost import CostModel, RowsTouched
from hydro_core.optimize.extract import Plan
from hydro_core.optimize.forms import Forms
from hydro_core.optimize.shape import Payload
from hydro_core.optimize.space import ClassId, ENode, Space
from hydro_core.optimize.statistics import Statistics

LATER = 2.0
"""What a tick goes through at so many times the history tells whether it grows with it."""
LONGER = 10.0
"""How many times as long history is when statements are told of it."""
_GROWS = 1.1
"""What is more than so many times as much there has grown."""


class StreamCost(NamedTuple):
    """Rows of one stream in a tick: that are gone through for it, that it gives, that it stores."""

    reads: float
    makes: float
    stores: float


@dataclass(frozen=True, slots=True)
class PlanCosts:
    """What a plan costs in a tick, at one length of history: all together, and each stream."""

    total: float
    streams: Mapping[ClassId, StreamCost]


@dataclass(frozen=True, slots=True)
class ChosenPlan:
    """A plan, with the forms in which its streams are wanted."""

    space: Space
    payloads: Sequence[Payload]
    first: Sequence[int]
    """The nodes of the program, which sizes are reckoned by."""
    forms: Forms
    found: Plan
    """In the space of the forms."""

    @property
    def plan(self) -> Plan:
        """In the space of values."""
        return self.forms.plan(self.found)

    def costs(self, statistics: Statistics) -> PlanCosts:
        """What it costs with such data."""
        model = CostModel(self.space, self.payloads, statistics)
        sizes = model.sizes(self.first)
        touched, rows = model.touched(sizes, self.forms)

        def node(cls: ClassId) -> RowsTouched:
            return touched[self.found.choice[cls]]

        forms = defaultdict[ClassId, list[ClassId]](list)
        for cls in self.found.choice:
            forms[self.forms.streams[cls][0]].append(cls)
        streams = {
            stream: _of_forms([(self.forms.streams[c][1], node(c), rows[c]) for c in of])
            for stream, of in forms.items()
        }
        ends = {n.cls for n in self.space.nodes if isinstance(n.shape.cls, Output)}
        streams |= {c: of._replace(makes=0.0) for c, of in streams.items() if c in ends}
        return PlanCosts(sum(node(c).cost for c in self.found.choice), streams)

    def growing(self, statistics: Statistics) -> frozenset[ClassId]:
        """The streams that have notably more rows once history is twice as long."""
        now, later = (
            CostModel(self.space, self.payloads, of).sizes(self.first)
            for of in (statistics, statistics.longer(LATER))
        )
        grown = (c for c, (a, b) in enumerate(zip(now, later, strict=True)) if b > _GROWS * a)
        return frozenset(grown)


def _of_forms(found: Sequence[tuple[Form, RowsTouched, float]]) -> StreamCost:
    """What it costs to have a stream in all forms that are wanted; looking up makes nothing."""
    return StreamCost(
        sum(touched.reads + touched.makes for _, touched, _ in found),
        min((rows for form, _, rows in found if form is not Form.LOOKED_UP), default=0.0),
        sum(touched.stores for _, touched, _ in found),
    )


@dataclass(frozen=True, slots=True)
class StreamName:
    """The operator, the name and the place of a stream: the program's, or the operator's own."""

    operator: str
    name: str
    span: Span | None = None


class StreamNames:
    """The names of the streams of a space, in a program whose nodes have these ids."""

    def __init__(self, origins: Mapping[str, Node], space: Space) -> None:
        self.origins, self.space = origins, space
        self._own = defaultdict[ClassId, list[str]](list)
        for name, cls in space.named.items():
            if name in origins:
                self._own[cls].append(name)

    def of(self, node: ENode) -> StreamName:
        """What the program calls what the node gives."""
        own = sorted(
            self._own.get(node.cls, ()),
            key=lambda n: (self.origins[n].op is not node.shape.op, n),
        )
        if not own:
            return StreamName(node.shape.plain, node.shape.plain)
        origin = self.origins[own[0]]
        return StreamName(origin.op.name, own[0], origin.span)


@dataclass(frozen=True, slots=True)
class StatementCost:
    """Rows of one stream in a tick."""

    operator: str
    name: str
    """The node of the program, or the operator where the plan made it."""
    line: int | None
    now: StreamCost
    longer: StreamCost
    """At ten times the history."""

    def as_json(self) -> Mapping[str, Any]:
        """As `--format json` prints it."""
        return {
            "operator": self.operator,
            "name": self.name,
            "line": self.line,
            **self.now._asdict(),
            "at_ten_times_the_history": self.longer._asdict(),
        }


def statement_costs(
    named: StreamNames, chosen: ChosenPlan, statistics: Statistics
) -> Iterator[StatementCost]:
    """What the streams of a plan cost, in the order of the program; others come last."""
    now, longer = (chosen.costs(of).streams for of in (statistics, statistics.longer(LONGER)))
    choice = chosen.plan.choice
    places = {name: place for place, name in enumerate(named.origins)}
    streams = [(named.of(named.space.nodes[node]), cls) for cls, node in choice.items()]
    for of, cls in sorted(streams, key=lambda s: (places.get(s[0].name, len(places)), s[1])):
        line = of.span.line if of.span else None
        yield StatementCost(of.operator, of.name, line, now[cls], longer[cls])
