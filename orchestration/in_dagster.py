"""The flows of a project in somebody's own Dagster project: as `Definitions`, as a component."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import dagster as dg
from pydantic import Field

from .cli.init import put_project
from .code_location.asset_specs import begin_to_load
from .code_location.factory import project_definitions
from .project import project
from .project.settings_file import FileSettings, settings_of_tables
from .runner.runner import TickRunner


def load_definitions(at: Path | str, given: FileSettings | None = None) -> dg.Definitions:
    """The flows of a project as Dagster definitions, to be merged with others.

    They have no executor of their own but for their jobs, so that those of the others stay what
    they are. Nothing is run and Spark is not started.

    Args:
        at: the folder of the project, which has `assets/`.
        given: settings that win over its `hydrotick.toml`; the environment wins over both.

    Raises:
        HydroError: there is no project, or its settings are wrong.
    """
    begin_to_load()
    found = project.project_at(Path(at), given)
    return project_definitions(found.flows, TickRunner(found.settings), found.broken, None)


def _said(description: str) -> Any:
    return Field(default=None, description=description)


class Spark(dg.Resolvable, dg.Model):
    """Where Spark runs and what it may take."""

    master: str | None = _said("such as `local[4]`")
    memory: str | None = _said("such as `4g`")
    shuffle_partitions: int | None = _said("into so many parts rows are shuffled: one per core")
    conf: dict[str, str | int | float | bool] | None = _said("settings of Spark's own")
    lookups: str | None = _said("what a flow keeps so that stored rows are found by key: `4g`")
    few_rows: int | None = _said("up to how many rows a range is one job of one task")
    small_writes: int | None = _said("up to how many rows a table is written without Spark")


class TickSettings(dg.Resolvable, dg.Model):
    """How ticks run."""

    range: int | None = _said("so many ticks of a backfill are one job")


class Paths(dg.Resolvable, dg.Model):
    """Where data is; relative to the project."""

    home: str | None = _said("outputs, state and ledgers: `data`")
    landing: str | None = _said("what flows read: `landing` of `home`")
    dagster: str | None = _said("Dagster's instance, for commands: `dagster` of `home`")


class InDagster(dg.Resolvable, dg.Model):
    """How Dagster runs the flows."""

    pool: str | None = _said("the pool of all flows; each has its own where it is left out")
    sensors: str | None = _said("`running` as soon as they are loaded, or `stopped`")
    sensor_seconds: int | None = _said("how often a sensor looks")
    compact: str | None = _said("`daily`, `weekly` or `monthly`: when tables are compacted")
    code_url: str | None = _said(
        "where the project's folder is on the web, for links to its programs"
    )


class LineageSettings(dg.Resolvable, dg.Model):
    """Who is told what ticks read and write."""

    openlineage: str | None = _said("`file:PATH`, or the URL of an OpenLineage server")
    namespace: str | None = _said("of the jobs: `default`")


class WorkerAsked(dg.Resolvable, dg.Model):
    """Who runs the ticks of the flows."""

    address: str | None = _said("`HOST:PORT` of a worker, or `none`: ticks run in their run")
    token_file: str | None = _said("has the token it is asked with")


class ProjectScaffolder(dg.Scaffolder[Any]):
    """Makes a project that runs in the folder of the component."""

    def scaffold(self, request: dg.ScaffoldRequest[Any]) -> None:
        """Writes the project, and a `defs.yaml` that names it."""
        from dagster.components.component_scaffolding import scaffold_component

        put_project(request.target_path, request.target_path.name)
        scaffold_component(request, {"project": "."})


@dg.scaffold_with(ProjectScaffolder)
class HydrotickProject(dg.Component, dg.Resolvable, dg.Model):
    """The flows of a hydrotick project as partitioned assets, with their checks and sensors."""

    project: Annotated[
        str,
        dg.Resolver(lambda context, path: str(context.resolve_source_relative_path(path))),
        Field(description="the folder with `assets/`, relative to this file"),
    ] = "."
    spark: Spark | None = None
    ticks: TickSettings | None = None
    paths: Paths | None = None
    dagster: InDagster | None = None
    lineage: LineageSettings | None = None
    worker: WorkerAsked | None = None

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The definitions of the flows; see `load_definitions`."""
        tables = self.model_dump(exclude={"project"}, exclude_none=True)
        return load_definitions(Path(self.project), settings_of_tables(tables))
