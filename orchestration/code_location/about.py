"""What the assets of a flow say of the deployment that they come of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from hydro_core.analysis.lineage import Described
from hydro_core.analysis.partition.partitioning import partition
from hydro_core.artifact.files import WrittenDeployment
from hydro_core.errors import Span
from hydro_core.lang.comments import Comments
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.storage.remote import DataPlace

_LONGEST = 20_000
"""Characters of an explanation that the UI is given."""

SHOWN = 12
"""Characters of a hash that are enough to tell it."""


@dataclass(frozen=True, slots=True)
class About:
    """The deployment of a flow as its assets show it; none where the program is shown as written.

    `drawing` is the drawing of the plan in markdown, `comments` are those of the program, `columns`
    what it says of them, `undeployed` says what of the program as it is now is not deployed,
    `changed` which outputs say something else by it.
    """

    drawing: str
    comments: Comments
    columns: Described
    strata: Mapping[int, str] = field(default_factory=dict)
    """What each stratum does."""
    written: WrittenDeployment | None = None
    undeployed: str = ""
    changed: frozenset[str] = frozenset()
    tables: Mapping[str, DataPlace] = field(default_factory=dict)
    """Where the outputs are that are tables of their own."""
    link: Callable[[Span | None], Mapping[str, Any]] = lambda _: {}
    """What an asset shows of a place in the program."""
    master: str = "local"
    """Where Spark runs the flow."""

    def code_version(self, asset: str) -> str | None:
        """What Dagster knows the program of an asset by: of "state/NAME", or an output."""
        if self.written is None:
            return None
        if asset in self.changed:
            return "changed, and not deployed"
        return code_versions(self.written).get(asset)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What every table of the flow shows."""
        program = {"program": dg.MetadataValue.md(self.drawing)}
        if self.written is None:
            none = "none yet: the first tick deploys the program"
            return {**program, **self._where, "deployment": none}
        made = self.written.deployment
        notes = {"not incremental": dg.MetadataValue.md(_code("\n\n".join(made.notes)))}
        return {
            **program,
            **self._where,
            "deployment": self.written.number,
            **({"in shards": made.sharding.says} if made.sharding else {}),
            **({"not deployed": self.undeployed} if self.undeployed else {}),
            **(notes if made.notes else {}),
        }

    @property
    def _where(self) -> Mapping[str, Any]:
        """Where its ticks run, if that is not on this machine."""
        return {} if self.master.startswith("local") else {"spark": self.master}

    def shards(self, plan: TickPlan) -> Mapping[str, Any]:
        """How the flow's program can be cut into shards, or what forbids it.

        It is the program as it was written; `plan` is what is shown where none is deployed.
        """
        made = None if self.written is None else self.written.deployment
        # To work it out takes a hundred times as long as to read it.
        said = made.routing if made else ""
        typed = made.program.typed if made else plan.typed
        return {"shards": dg.MetadataValue.md(_code(said or str(partition(typed))))}

    def of_output(self, name: str, plan: TickPlan) -> Mapping[str, Any]:
        """What an output shows beside it: the rules that lead from its statement to the plan."""
        if self.written is None:
            return {}
        known = self.written.deployment.explanation
        steps = [known[sink.id] for sink in plan.graph.sinks[name] if sink.id in known]
        return {"plan": dg.MetadataValue.md(_code("\n\n".join(steps)))} if steps else {}

    def stratum(self, number: int) -> str:
        """A stratum by its number and by what it does."""
        return f"{number} of {len(self.strata)}: {self.strata[number]}"

    @property
    def of_flow(self) -> Mapping[str, Any]:
        """What the flow as a whole shows: its program, what a tick costs, and the rules to that."""
        if self.written is None:
            return self.metadata
        made = self.written.deployment
        rules = "\n\n".join(made.explanation.values())
        return {
            **self.metadata,
            "rows a tick costs": round(made.costs.after),
            "rows it would cost as written": round(made.costs.before),
            **({"plan": dg.MetadataValue.md(_code(rules))} if rules else {}),
        }


def _code(text: str) -> str:
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n… and so on"
    return f"```text\n{shown}\n```"


def code_versions(written: WrittenDeployment) -> Mapping[str, str]:
    """The code version of each asset; it stays where another program is proved the same."""
    return {
        f"state/{t.name}" if t.role == "state" else t.name: (t.version or t.semantic_hash)[:SHOWN]
        for t in written.deployment.tables
    }
