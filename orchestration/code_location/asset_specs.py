"""Assets of a flow as Dagster shows them: descriptions, checks, inputs, strata, states, outputs.

An edge says what is computed from what. That a state goes on from what the tick before left of it
is no edge: Dagster takes an asset that depends on itself out of the run of the others.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import dagster as dg
from dagster._core.definitions.definitions_load_context import (
    DefinitionsLoadContext,
    DefinitionsLoadType,
)

from hydro_core.analysis.lineage import ColumnDescriptions
from hydro_core.analysis.partition.partitioning import partition
from hydro_core.artifact.deployment import WrittenDeployment
from hydro_core.errors import HydroError, Span
from hydro_core.lang.comments import Comments
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.project.discover import BrokenFlow
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.quarantine import QUARANTINE_COLUMNS
from hydro_core.storage.remote import DataPlace, RemotePath, place_at
from hydro_core.storage.settings import StorageSettings
from hydro_core.ticks.calendar import Calendar, Feed, cron_of
from hydro_core.types.item import QUARANTINE

from ..deploy.deployments import Deployments
from ..project.shape import FlowShape, OutputShape, StateShape, asset_path

_OUTPUT_COLUMNS = {
    "tick": "the number of the tick that gave the row",
    "position": "its place in the order of the tick",
}
_STATE_COLUMNS = {
    "t": "the number of the tick that the item came with",
    "item": "what the operator keeps",
    "ord": "its place in the order of the tick",
}

_KINDS = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}
"""How Dagster calls what a file is, by how its name ends."""


def tick_step(flow: FlowAsset) -> str:
    return f"{flow.name}__tick"


def asset_key(flow: FlowAsset, asset: str) -> dg.AssetKey:
    """The key of an asset of the flow: of "state/NAME", "landing/NAME", or an output.

    An input that is another flow's output has the key that it has there.
    """
    return dg.AssetKey(asset_path(flow, asset))


def flow_specs(flow: FlowAsset, shape: FlowShape, about: AssetDescription) -> list[dg.AssetSpec]:
    common = {
        "skippable": True,
        "group_name": flow.name,
        "owners": list(flow.owners),
        "partitions_def": partitions_of(flow.ticks.calendar),
        "kinds": {"deltalake"},
    }
    shown = {**about.metadata, **about.shards(shape.plan)}
    states = []
    for state in shape.states:
        of = {**common, "code_version": about.code_version(f"state/{state.name}")}
        stratum = {"stratum": about.stratum(state.stratum)}
        states.append(_state(flow, state, about, {**shown, **stratum}, of))
    outputs = []
    for output in shape.outputs:
        stratum = {"stratum": about.stratum(output.stratum)}
        plan = {**about.of_output(output.name, shape.plan), **stratum}
        of = {**common, "code_version": about.code_version(output.name)}
        outputs.append(_output(flow, output, about, {**shown, **plan}, of))
    return [*states, *outputs]


def _deps(flow: FlowAsset, parents: Iterable[str]) -> list[dg.AssetDep]:
    """Dependencies of an asset; on a flow with longer ticks, on the tick that ended last."""
    found = []
    for parent in parents:
        theirs = flow.numbered_by(parent.removeprefix("landing/"))
        feed = None if theirs is None else Feed(flow.ticks.calendar, theirs)
        mapping = None if feed is None else _mapping(-1 if feed.is_coarser else 0)
        found.append(dg.AssetDep(asset_key(flow, parent), partition_mapping=mapping))
    return found


def _mapping(offset: int) -> dg.TimeWindowPartitionMapping:
    """The other flow's ticks so many before those in which a tick lies; there may be none yet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.TimeWindowPartitionMapping(
            start_offset=offset, end_offset=offset, allow_nonexistent_upstream_partitions=True
        )


def _state(
    flow: FlowAsset,
    state: StateShape,
    about: AssetDescription,
    shown: Mapping[str, Any],
    common: Mapping[str, Any],
) -> dg.AssetSpec:
    said = about.comments.of_any(reversed(state.places))
    earlier = [asset_key(flow, name).to_user_string() for name in state.earlier]
    return dg.AssetSpec(
        asset_key(flow, f"state/{state.name}"),
        deps=_deps(flow, state.parents),
        description=f"{said}\n\n{state.says}" if said else state.says,
        tags={"role": "state"},
        metadata={
            "dagster/column_schema": _schema(state.columns, _STATE_COLUMNS),
            **shown,
            "written by": state.written_by,
            "read by": ", ".join(state.read_by),
            **({"reads of the tick before": earlier} if earlier else {}),
            **about.link(next(filter(None, state.places), None)),
        },
        **common,
    )


def _output(
    flow: FlowAsset,
    output: OutputShape,
    about: AssetDescription,
    shown: Mapping[str, Any],
    common: Mapping[str, Any],
) -> dg.AssetSpec:
    table = about.tables.get(output.name)
    lineage = {
        column: [
            dg.TableColumnDep(asset_key(flow, f"landing/{name}"), field) for name, field in sources
        ]
        for column, sources in output.sources.items()
    }
    return dg.AssetSpec(
        asset_key(flow, output.name),
        deps=_deps(flow, output.parents),
        description=flow.described(output.name)
        or about.comments.of(output.place)
        or _SAYS.get(output.name, f"The output `{output.name}` of {flow.name}."),
        tags={"role": "output"},
        metadata={
            "dagster/column_schema": _schema(
                output.columns, _sources(output, about.columns.outputs[output.name])
            ),
            "dagster/column_lineage": dg.TableColumnLineage(lineage),
            **({"table": dg.MetadataValue.path(str(table))} if table is not None else {}),
            **shown,
            **about.link(output.place),
        },
        **common,
    )


def input_specs(
    flow: FlowAsset, shape: FlowShape, about: AssetDescription, root: Path
) -> Iterator[dg.AssetSpec]:
    """The landing tables, which others write; `root` is the project's landing directory."""
    for name, landing in flow.landings.items():
        columns, place = shape.inputs[name], shape.plan.graph.sources[name].span
        by = (
            f"cut into ticks by `{landing.column}`" if landing.column else "whole at the first tick"
        )
        said = about.comments.of(place)
        # A program that begins without an empty line says there what it is about.
        said = "" if said == about.comments.head else f"{said}\n\n"
        landed = place_at(landing.path, StorageSettings())
        cut = {landing.column: "tells the tick that a row is of"} if landing.column else {}
        kind = kind_of(landed if isinstance(landed, RemotePath) else root / landed)
        yield dg.AssetSpec(
            asset_key(flow, f"landing/{name}"),
            group_name=flow.name,
            description=f"{said}Landing table `{landing.path}`, {by}.",
            owners=list(flow.owners),
            kinds={kind} if kind else set(),
            tags={"role": "input"},
            metadata={
                "dagster/column_schema": _schema(columns, {**cut, **about.columns.inputs[name]}),
                "program": dg.MetadataValue.md(about.drawing),
                **about.link(place),
            },
        )


def kind_of(landed: DataPlace) -> str | None:
    """The kind of what has landed, by Dagster's name for it; None where nothing has. A store is not
    asked: whoever loads the code need not reach it.
    """
    if isinstance(landed, RemotePath):
        return _KINDS.get(Path(landed.name.removesuffix(".gz")).suffix)
    if (landed / "_delta_log").is_dir():
        return "deltalake"
    name = landed.name
    if landed.is_dir():
        name = next((entry.name for entry in os.scandir(landed) if entry.is_file()), "")
    return _KINDS.get(Path(name.removesuffix(".gz")).suffix)


def _schema(
    columns: Sequence[tuple[str, str]], says: Mapping[str, str] = MappingProxyType({})
) -> dg.TableSchema:
    return dg.TableSchema([dg.TableColumn(name, kind, says.get(name)) for name, kind in columns])


_SAYS = {QUARANTINE: "The rows that do not fit, or on which a function fails, tick by tick."}


def _sources(output: OutputShape, said: Mapping[str, str]) -> dict[str, str]:
    """What is said of an output's columns, and what they come from: the free UI has no page for
    that.
    """
    from_inputs = {
        column: ("computed from " if column in output.changed else "from ")
        + ", ".join(f"{name}.{field}" for name, field in sources)
        for column, sources in output.sources.items()
        if sources
    }
    own = {name: says for name, says in _OUTPUT_COLUMNS.items() if name not in output.sources}
    both = {
        column: f"{text} ({from_inputs[column]})" if column in from_inputs else text
        for column, text in said.items()
    }
    of_wrong_rows = QUARANTINE_COLUMNS if output.name == QUARANTINE else {}
    return {**own, **from_inputs, **both, **of_wrong_rows}


def broken_specs(flow: FlowAsset, error: HydroError) -> Iterator[dg.AssetSpec]:
    """A flow whose program is wrong: what it says of its outputs and inputs, under their keys,
    and why none of it can run.
    """
    what = "stored state" if error.code == "state" else "program"
    why = "is broken" if error.code == "state" else "does not compile"
    says = f"The {what} of `{flow.name}` {why}, so nothing of it can run:"
    outputs = dict.fromkeys((*flow.outputs, *flow.expect))
    for asset in (*(f"landing/{name}" for name in flow.landings), *outputs, "program"):
        yield _broken(flow.name, asset, f"{says}\n\n", error, str(flow.program))


def broken_spec(broken: BrokenFlow) -> dg.AssetSpec:
    says = f"What `{broken.folder}` declares is wrong, so nothing of it can run:\n\n"
    return _broken(broken.name, "program", says, broken.error, str(broken.folder))


def _broken(flow: str, asset: str, says: str, error: HydroError, of: str) -> dg.AssetSpec:
    # What is wrong may be the name.
    name = re.sub(r"\W", "_", flow, flags=re.ASCII) or "flow"
    parts = (re.sub(r"\W", "_", part, flags=re.ASCII) for part in asset.split("/"))
    return dg.AssetSpec(
        dg.AssetKey([name, *parts]),
        description=f"{says}```text\n{error}\n```",
        group_name=name,
        metadata={"error": str(error), "program": of},
        kinds={"broken"},
    )


def partitions_of(calendar: Calendar) -> dg.TimeWindowPartitionsDefinition:
    return dg.TimeWindowPartitionsDefinition(
        # Dagster takes wall clocks' times, whatever zone they say they are of.
        start=calendar.local(calendar.origin),
        end=None if calendar.last is None else calendar.local(calendar.last),
        cron_schedule=cron_of(calendar),
        fmt=calendar.key_format,
        timezone=calendar.zone,
    )


_LONGEST = 20_000
"""Characters of an explanation that the UI is given."""

SHOWN = 12
"""Characters of a hash that are enough to tell it."""


@dataclass(frozen=True, slots=True)
class AssetDescription:
    """The deployment of a flow as its assets show it; none where the program is shown as written.

    `drawing` is the drawing of the plan in markdown, `comments` are those of the program, `columns`
    what it says of them, `undeployed` says what of the program as it is now is not deployed,
    `changed` which outputs say something else by it.
    """

    drawing: str
    comments: Comments
    columns: ColumnDescriptions
    strata: Mapping[int, str] = field(default_factory=dict)
    """Sentence about each stratum."""
    written: WrittenDeployment | None = None
    undeployed: str = ""
    changed: frozenset[str] = frozenset()
    tables: Mapping[str, DataPlace] = field(default_factory=dict)
    """Where the outputs are that are tables of their own."""
    link: Callable[[Span | None], Mapping[str, Any]] = lambda _: {}
    """Metadata of a location in the program."""
    master: str = "local"
    """Where Spark runs the flow."""

    def code_version(self, asset: str) -> str | None:
        """Code version of an asset in Dagster: of "state/NAME", or an output."""
        if self.written is None:
            return None
        if asset in self.changed:
            return "changed, and not deployed"
        return code_versions(self.written).get(asset)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Metadata of every table of the flow."""
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
        """Further metadata of an output: the rules that lead from its statement to the plan."""
        if self.written is None:
            return {}
        known = self.written.deployment.explanation
        steps = [known[sink.id] for sink in plan.graph.sinks[name] if sink.id in known]
        return {"plan": dg.MetadataValue.md(_code("\n\n".join(steps)))} if steps else {}

    def stratum(self, number: int) -> str:
        return f"{number} of {len(self.strata)}: {self.strata[number]}"

    @property
    def of_flow(self) -> Mapping[str, Any]:
        """Metadata of the flow: its program, the cost of a tick, and the rules that lead to it."""
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


_NOT_DEPLOYED = ""
_PREFIX = "hydrotick/"


def begin_to_load() -> None:
    """Has Dagster keep what is shown also where its commands load definitions as if they had been
    loaded before, or do not say what they do: `dagster asset materialize` and `dg launch`.
    """
    context = DefinitionsLoadContext.get()
    again = context.load_type is DefinitionsLoadType.RECONSTRUCTION
    if not DefinitionsLoadContext.is_set() or (again and not context.reconstruction_metadata):
        first = DefinitionsLoadContext(load_type=DefinitionsLoadType.INITIALIZATION)
        DefinitionsLoadContext.set(first)


def deployment_shown(flow: FlowAsset, deployments: Deployments) -> WrittenDeployment | None:
    """The deployment that the definitions of a flow are to show; None: the program as written.

    Raises:
        HydroError: no deployment serves, one is written, and the program is wrong.
    """
    found: WrittenDeployment | None = None
    name = _known(flow.name)
    if name != _NOT_DEPLOYED:
        found = deployments.named(flow, name) if name else None
        found = found or deployments.active_or_draft(flow)
    _goes_with_runs(flow.name, found.name if found else _NOT_DEPLOYED)
    return found


def as_when_launched(key: str, made: Callable[[], str]) -> str:
    """What was made of the definitions when they were loaded to be shown, and is dear to make: a
    process of a run has it from who launched it.
    """
    known = _known(key)
    found = made() if known is None else known
    _goes_with_runs(key, found)
    return found


def _known(key: str) -> str | None:
    """Value that goes with the run for which definitions are loaded; None: without a run."""
    context = DefinitionsLoadContext.get()
    if context.load_type is not DefinitionsLoadType.RECONSTRUCTION:
        return None
    found: str | None = context.reconstruction_metadata.get(_PREFIX + key)
    return found


def _goes_with_runs(key: str, value: str) -> None:
    context = DefinitionsLoadContext.get()
    context.add_to_pending_reconstruction_metadata(_PREFIX + key, value)
