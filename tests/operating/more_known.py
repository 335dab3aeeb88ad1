"""More stories that were told by people: of files and their names, of ticks that are asked for over
deployments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.operating.programs import FAMILIES
from tests.operating.story import Op, Setting, Story

_DAYS = tuple((tick, "x", tick + 1) for tick in range(3))


def _setting(family: str, late: str = "next", kind: str = "parquet") -> Setting:
    return Setting(FAMILIES[family].versions, {"a": late}, {"a": kind})


MORE_STORIES: Mapping[str, Story] = {
    "files get other names, and one returns with other rows": Story(
        _setting("totals", "next", "csv"),
        (
            Op("land", rows=_DAYS),
            Op("land", rows=((1, "y", 7), (0, "z", 2))),
            Op("tick", 3),
            Op("rename", 0),
            Op("compact", 0),
            Op("tick", 1),
            Op("remove", 1),
            Op("put anew", 1, rows=((1, "y", 7), (1, "z", 3))),
            Op("tick", 1),
            Op("forget", 1),
            Op("rename", 1),
            Op("exchange", 0, first=1),
            Op("tick", 1),
        ),
    ),
    "backfills over deployments": Story(
        _setting("totals", "correct", "jsonl"),
        (
            Op("land", rows=_DAYS),
            Op("tick", 2),
            Op("deploy", 1),
            Op("tick", 1),
            Op("land", rows=((0, "y", 7), (3, "x", 1))),
            Op("backfill", 1, first=1),
            Op("again", 1),
            Op("rollback"),
            Op("backfill", 0, first=2),
            Op("again"),
        ),
    ),
    "an output is not written any more, and is written again before that is deployed": Story(
        replace(_setting("outputs"), has_tables=True),
        (Op("land", rows=_DAYS), Op("tick", 1), Op("edit", 1), Op("tick", 1), Op("edit", 0)),
    ),
}
