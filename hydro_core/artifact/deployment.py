"""What a deployment is: a program, the plan by which it runs, and why that plan.

It is made once, by `deployment_of`, and read back as it was: no optimizer, no Spark and no module
of the program is needed to load it. Its name is the hash of what it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hydro_core.analysis.infer import Typed
from hydro_core.ir.graph import NodeId
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.types.item import ItemType
from hydro_core.types.records import IF_GIVEN

FORMAT = 7
"""The format of a deployment's files; any other is refused."""

PACKAGE = "hydrotick"
"""Under which name a deployment has the version of the release that made it."""


@dataclass(frozen=True, slots=True)
class WrittenProgram:
    """The program as it was written: its files by name, and what they were read as."""

    texts: Mapping[str, str]
    typed: Typed


@dataclass(frozen=True, slots=True)
class Table:
    """What a table of the pipeline holds."""

    name: str
    """The id of the state slot, or the name of the output."""
    role: Literal["state", "output"]
    item: ItemType
    kind: str
    """How rows come and go: the form of a state slot, the kind of an output's stream."""
    ordered: bool
    semantic_hash: str
    """The stored stream's identity: the same in every plan that stores it in the same way."""
    version: str = ""
    """Its semantic hash when its rows were made: a program that is proved the same keeps it."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Rows that a tick costs by the model, as the program was written and by the plan."""

    before: float
    after: float
    statistics: Mapping[str, Any] = field(default_factory=dict)
    """What was known of the data, as `optimize --stats` reads it; empty where nothing was."""


@dataclass(frozen=True, slots=True)
class Validated:
    """How the plan was compared with the program before it was deployed."""

    runs: int
    seed: int


@dataclass(frozen=True, slots=True)
class Sharding:
    """Into how many shards a program is cut, and how that was asked for."""

    count: int
    on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By which fields inputs are routed; a derived choice is taken where none is named."""
    replicate: tuple[str, ...] = ()
    """The inputs that every shard has whole."""
    says: str = field(default="", compare=False)
    """What is done, in words: by which fields each input is routed, and what is made at last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A program, its plan, and how it came to be."""

    format: int = FORMAT
    flow: str
    program: WrittenProgram
    plan: TickPlan
    explanation: Mapping[str, str] = field(default_factory=dict)
    """The chain of rules that leads to each output's plan, by the output's node."""
    tables: tuple[Table, ...] = ()
    costs: Costs
    notes: tuple[str, ...] = ()
    """What of the plan is not incremental, and which functions are not stored but referred to."""
    routing: str = ""
    """How the program can be cut into shards, or what forbids it, in words."""
    repeatable: bool = True
    """Whether a tick that runs again gives the same: no function asks for the time, say."""
    params: Mapping[str, str] = field(default_factory=dict, metadata=IF_GIVEN)
    """The constants that the program was given by name, each as Python writes it."""
    sharding: Sharding | None = field(default=None, metadata=IF_GIVEN)
    """How the plan is cut into shards; None where it is not."""
    streams: Mapping[NodeId, NodeId] = field(default_factory=dict)
    """The plan's nodes that compute a stream of the program: its name there."""
    validated: Validated | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of hydrotick, Spark and Delta."""

    def statement(self, node: NodeId) -> str:
        """The statement of the program that a node of the plan comes from; empty if from none."""
        span = self.plan.graph[node].span
        return "" if span is None else f"{span.file}:{span.line}:{span.column}"
