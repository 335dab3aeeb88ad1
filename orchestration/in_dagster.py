"""The flows of a project in somebody's own Dagster project: as `Definitions`, as a component."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import dagster as dg
from pydantic import Field

from .cli.init import put_project
from .code_location.as_loaded import begin_to_load
from .code_location.factory import project_definitions
from .project import project
from .project.known_settings import FileSettings
from .project.settings_file import settings_of_tables
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


class Spark(dg.Resolvable, dg.Model):
    """Where Spark runs and what it may take."""

    master: Annotated[str | None, Field(description="such as `local[4]`")] = None
    memory: Annotated[str | None, Field(description="such as `4g`")] = None
    shuffle_partitions: Annotated[
        int | None, Field(description="into so many parts rows are shuffled: one per core")
    ] = None
    conf: Annotated[
        dict[str, str | int | float | bool] | None, Field(description="settings of Spark's own")
    ] = None
    lookups: Annotated[
        str | None,
        Field(description="what a flow keeps so that stored rows are found by key: `4g`"),
    ] = None
    few_rows: Annotated[
        int | None, Field(description="up to how many rows a range is one job of one task")
    ] = None
    small_writes: Annotated[
        int | None, Field(description="up to how many rows a table is written without Spark")
    ] = None


class TickSettings(dg.Resolvable, dg.Model):
    """How ticks run."""

    range: Annotated[int | None, Field(description="so many ticks of a backfill are one job")] = (
        None
    )


class Paths(dg.Resolvable, dg.Model):
    """Where data is; relative to the project."""

    home: Annotated[str | None, Field(description="outputs, state and ledgers: `data`")] = None
    landing: Annotated[str | None, Field(description="what flows read: `landing` of `home`")] = None
    dagster: Annotated[
        str | None, Field(description="Dagster's instance, for commands: `dagster` of `home`")
    ] = None


class InDagster(dg.Resolvable, dg.Model):
    """How Dagster runs the flows."""

    pool: Annotated[
        str | None,
        Field(description="the pool of all flows; each has its own where it is left out"),
    ] = None
    sensors: Annotated[
        str | None, Field(description="`running` as soon as they are loaded, or `stopped`")
    ] = None
    sensor_seconds: Annotated[int | None, Field(description="how often a sensor looks")] = None
    compact: Annotated[
        str | None, Field(description="`daily`, `weekly` or `monthly`: when tables are compacted")
    ] = None
    code_url: Annotated[
        str | None,
        Field(description="where the project's folder is on the web, for links to its programs"),
    ] = None


class LineageSettings(dg.Resolvable, dg.Model):
    """Who is told what ticks read and write."""

    openlineage: Annotated[
        str | None, Field(description="`file:PATH`, or the URL of an OpenLineage server")
    ] = None
    namespace: Annotated[str | None, Field(description="of the jobs: `default`")] = None


class WorkerAsked(dg.Resolvable, dg.Model):
    """Who runs the ticks of the flows."""

    address: Annotated[
        str | None, Field(description="`HOST:PORT` of a worker, or `none`: ticks run in their run")
    ] = None
    token_file: Annotated[str | None, Field(description="has the token it is asked with")] = None


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
