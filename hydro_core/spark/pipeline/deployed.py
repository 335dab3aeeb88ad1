"""The pipeline of a deployment: its plan, over the tables that the ledger says are its."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import Settings
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.tables import Tables
from hydro_core.spark.store.ledger.commit import Commit
from hydro_core.storage.remote import DataPlace

_AS_NEW: Mapping[str, str] = MappingProxyType({})


def places_in(commit: Commit | None, name: str) -> Mapping[str, str]:
    """The tables of the state slots of a deployment, if a commit was made by it."""
    if commit is None or commit.plan != name:
        return _AS_NEW
    return {r["of"]: table for table, r in commit.tables.items() if r["role"] == "state"}


def pipeline_of(
    directory: DataPlace,
    plan: TickPlan,
    name: str,
    settings: Settings,
    places: Mapping[str, str] = _AS_NEW,
) -> Pipeline:
    """The pipeline in a directory by one of its deployments.

    Args:
        directory: the pipeline's.
        plan: the deployment's.
        name: the deployment's, by which the ledger knows it.
        settings: of the core.
        places: the tables of state slots that a new pipeline would put elsewhere, by the slots'
            ids; `places_in` tells those of a commit.
    """
    new = Tables.of(plan)
    state = {n: replace(spec, name=places.get(n, spec.name)) for n, spec in new.state.items()}
    tables = Tables(state, new.outputs)
    return Pipeline(directory, plan, settings, tables=tables, identity=name)
