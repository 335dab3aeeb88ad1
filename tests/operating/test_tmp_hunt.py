from __future__ import annotations
import os
from pathlib import Path
import pytest
from pyspark.sql import SparkSession
from tests.operating.programs import FAMILIES
from tests.operating.more_programs import MORE_FAMILIES
from tests.operating.made import story_of
from tests.operating.story import FEED, Op, Setting, Story
from tests.operating.world import run

pytestmark = [pytest.mark.spark, pytest.mark.dagster]


def feed(feed_late="correct", late="next", feed="o", fam="totals"):
    return Setting(FAMILIES[fam].versions, {"a": late}, {"a": "flow"}, feed, feed_late=feed_late)


def known(late):
    return Story(
        feed(late=late),
        (
            Op("land", flow=FEED, rows=((0, "x", 1), (2, "z", 1), (3, "z", 4), (1, "y", 1))),
            Op("tick", 3, FEED),
            Op("tick", 3),
            Op("land", flow=FEED, rows=((0, "x", 0), (1, "x", 0), (0, "x", 4), (1, "x", 2))),
            Op("tick", 1, FEED),
            Op("forget", 1),
            Op("tick", 1),
        ),
    )


STORIES = {
    "known-next": known("next"),
    "known-correct": known("correct"),
    "known-refuse": known("refuse"),
    "s30": story_of(30, 16, MORE_FAMILIES),
    "s158": story_of(158, 16, MORE_FAMILIES),
}


@pytest.mark.parametrize("name", STORIES)
def test_it(name, tmp_path: Path, spark: SparkSession) -> None:
    print(STORIES[name])
    run(STORIES[name], tmp_path / "home")


from dataclasses import replace


@pytest.mark.parametrize("kill", range(1, 14))
def test_s30(kill, tmp_path: Path, spark: SparkSession) -> None:
    s = STORIES["s30"]
    ops = tuple(replace(op, kill=kill) if op.what == "forget" and op.kill else op for op in s.ops)
    print(Story(s.setting, ops))
    run(Story(s.setting, ops), tmp_path / "home")
