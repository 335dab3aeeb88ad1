"""What each statement of a plan costs in a tick, now and once history is ten times as long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hydro_core.optimize.growth import ChosenPlan, StreamCost
from hydro_core.optimize.named import StreamNames
from hydro_core.optimize.statistics import Statistics

LONGER = 10.0
"""How many times as long history is then."""


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
