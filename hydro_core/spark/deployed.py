"""The pipeline of a deployment: its plan, over the tables that the ledger says are its."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hydro_core.deploy.files import Written
from hydro_core.settings import Settings
from hydro_core.spark.ledger import Commit
from hydro_core.spark.pipeline import Pipeline
from hydro_core.spark.pipeline_jobs import Tables
from hydro_core.spark.pipeline_tables import output_tables, state_tables


def pipeline_of(
    directory: Path,
    written: Written,
    commit: Commit | None,
    settings: Settings,
    kept: Mapping[str, str] | None = None,
) -> Pipeline:
    """The pipeline in a directory by one of its deployments.

    Args:
        directory: the pipeline's.
        written: the deployment.
        commit: one that was made by it, which tells where its tables stand; None before the first.
        settings: of the core.
        kept: the tables of state slots, by the slots' ids, if not as the commit has them.
    """
    plan = written.deployment.plan
    places = dict(kept or {})
    if commit is not None and commit.plan == written.name:
        recorded = commit.tables.items()
        places = {r["of"]: name for name, r in recorded if r["role"] == "state"} | places
    state = {
        slot: replace(spec, name=places.get(slot, spec.name))
        for slot, spec in state_tables(plan).items()
    }
    tables = Tables(state, output_tables(plan))
    return Pipeline(directory, plan, settings, tables=tables, identity=written.name)
