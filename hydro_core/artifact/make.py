"""Builds the deployment of a program and its optimized plan.

It stands apart from the record, which loads without the optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

from hydro_core.analysis.identity import functions_in
from hydro_core.analysis.infer import Typed
from hydro_core.analysis.partition.partitioning import partition
from hydro_core.artifact.deployment import (
    PACKAGE,
    Costs,
    Deployment,
    Sharding,
    Table,
    Validation,
    WrittenProgram,
)
from hydro_core.artifact.functions import stored_call
from hydro_core.ir.graph import NodeId
from hydro_core.optimize.cost import Statistics
from hydro_core.optimize.optimizer import OptimizedProgram
from hydro_core.plan.planner import plan_of
from hydro_core.plan.semantic_hash import hash_of
from hydro_core.plan.tick_plan import Kind, TickPlan
from hydro_core.types.item import Order

_PACKAGES = (PACKAGE, "pyspark", "delta-spark")


@dataclass(frozen=True, slots=True)
class DeploymentMetadata:
    """The parts of a deployment beside the program and the plan."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """The program's files, by their names."""
    validated: Validation | None = None
    sharding: Sharding | None = None
    hashes: Mapping[NodeId, str] = field(default_factory=dict)
    """Of a plan in shards, what streams of it mean; of others that is found by their names."""
    params: Mapping[str, str] = field(default_factory=dict)
    """The constants that it was given by name, each as Python writes it."""


def deployment_of(
    flow: str, program: Typed, optimized: OptimizedProgram, given: DeploymentMetadata | None = None
) -> Deployment:
    """The deployment of a program by an optimized plan.

    Raises:
        ProgramError: a function cannot be stored (code `config`).
    """
    given, data = given or DeploymentMetadata(), optimized.statistics
    known = {} if data == Statistics() else data.as_json()
    made = plan_of(program, optimized.typed, optimized.streams, given.hashes)
    return Deployment(
        flow=flow,
        program=WrittenProgram(given.texts, program),
        params=given.params,
        plan=made,
        costs=Costs(optimized.cost_before, optimized.cost_after, known),
        explanation={derived.output: derived.render() for derived in optimized.derivations},
        notes=(*map(str, optimized.notes), *made.notes, *_referred(made.typed)),
        streams={n: s for n, s in optimized.streams.items() if n in made.graph.nodes},
        tables=tuple(tables_of(made)),
        validated=given.validated,
        routing=str(partition(program)),
        sharding=given.sharding,
        repeatable=not any(
            fn.unrepeatable for node in program.graph for fn, _ in functions_in(node, program)
        ),
        versions=_versions(),
    )


def tables_of(made: TickPlan) -> Iterator[Table]:
    """The tables of a plan: its state, then its outputs."""
    for slot in made.slots:
        meant = slot.semantic_hash
        yield Table(slot.id, "state", slot.item, slot.form.stored, slot.ordered, meant, meant)
    for name, sinks in made.graph.sinks.items():
        streams = [sink.inputs[0] for sink in sinks]
        stream = made.typed.outputs[name]
        kinds = {Kind.G if s.node in made.in_changes else made.kinds[s.node] for s in streams}
        kind = kinds.pop() if len(kinds) == 1 else Kind.E
        semantic_hash = ".".join(sorted(hash_of(end, made.hashes) for end in streams))
        ordered = stream.order is Order.TOTAL
        yield Table(name, "output", stream.item, kind.value, ordered, semantic_hash, semantic_hash)


def _referred(typed: Typed) -> Iterator[str]:
    """Notes on functions that are not stored but referred to."""
    calls = (stored_call(fn) for node in typed.graph for fn, _ in functions_in(node, typed))
    for module, name in dict.fromkeys(
        tuple(named) for kind, *named in calls if kind == "reference"
    ):
        yield (
            f"the function `{module}:{name}` is not stored: it is called where it is, "
            "and must not change"
        )


def _versions() -> Mapping[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
