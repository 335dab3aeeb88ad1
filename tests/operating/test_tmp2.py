from __future__ import annotations
from pathlib import Path
from dataclasses import replace
import pytest
from pyspark.sql import SparkSession
from tests.operating.test_tmp_hunt import STORIES
from tests.operating.story import *
from tests.operating.world import World

pytestmark = [pytest.mark.spark, pytest.mark.dagster]


def test_dbg(tmp_path: Path, spark: SparkSession) -> None:
    s = STORIES["s30"]
    ops = tuple(replace(op, kill=7) if op.what == "forget" and op.kill else op for op in s.ops)
    w = World(s.setting, tmp_path / "home")
    for op in ops[:14]:
        print(op, list(w.step(op)))
        f, r = w.hands._opened("main")
        for c in r.deployments.ledger(f).commits(since=-1)[-3:]:
            print(
                "   ",
                c.sequence,
                c.first,
                c.last,
                c.plan[:6],
                list(c.checks),
                [
                    (
                        i.rows,
                        i.listing[:6] if i.listing else None,
                        i.late,
                        i.changed,
                        i.counts,
                        i.deviations,
                    )
                    for i in c.inputs
                ],
            )
    print(w.flows["main"].state.read, w.flows["main"].landed("a"))
