"""The runs whose records in Dagster have a value: of checks that failed, and of errors."""

from __future__ import annotations

import re
from collections.abc import Collection

import dagster as dg

from hydro_core.project.flow_asset import FlowAsset

from ..instance.run_tags import flow_of

_PAGE = 200


def runs_with(flow: FlowAsset, instance: dg.DagsterInstance, texts: Collection[str]) -> list[str]:
    """The ids of a flow's runs that have recorded one of some texts as a word, the latest first.

    All that they have recorded is read.
    """
    words = "|".join(map(re.escape, texts))
    wanted = re.compile(rf"(?<!\w)(?:{words})(?!\w)")
    found: list[str] = []
    page, cursor = instance.get_runs(limit=_PAGE), None
    while page:
        mine = (run.run_id for run in page if flow_of(run) == flow.name)
        found += [run for run in mine if _has(instance, run, wanted)]
        cursor = page[-1].run_id
        page = instance.get_runs(limit=_PAGE, cursor=cursor)
    return found


def _has(instance: dg.DagsterInstance, run: str, wanted: re.Pattern[str]) -> bool:
    return any(wanted.search(dg.serialize_value(entry)) for entry in instance.all_logs(run))
