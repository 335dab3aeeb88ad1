"""Stories that were told by people, and those that are known to end badly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from hydro_core.project.flow_asset import Landing
from tests.operating.programs import FAMILIES
from tests.operating.story import Op, Setting, Story

OPEN: Mapping[str, tuple[str, str]] = {
    "rolled back after a correction": ("issue point 1", "`o` of `main` at tick"),
    "a file that returns": ("issue point 2", "late rows of tick"),
    "a late row and a deployment": ("issue point 6", "`o` of `main` at tick"),
    "seed 51": ("a rollback goes to a deployment that was given up", "status says deployment="),
    "seed 131": ("issue point 6", "`o` of `main` at tick"),
    "seed 232": ("issue point 2", "rows removed of ticks"),
}
"""By their names, what fails and is to be mended: why, and words of what is said then. Who mends it
takes its line out.
"""

HOLD_IS_THERE = "removed" in {one.name for one in fields(Landing)}
"""Whether an input may say `removed: hold`: issue point 2 brings it."""

_DAYS = tuple((tick, "x", tick + 1) for tick in range(3))
_TOTALS = FAMILIES["totals"].versions


def _setting(late: str, versions: tuple[str, ...] = _TOTALS, kind: str = "parquet") -> Setting:
    return Setting(versions, {"a": late}, {"a": kind})


STORIES: Mapping[str, Story] = {
    "rolled back after a correction": Story(
        _setting("correct"),
        (
            Op("land", rows=_DAYS),
            Op("tick", 3),
            Op("deploy", 1),
            Op("land", rows=((1, "y", 7),)),
            Op("correct", 1),
            Op("rollback"),
            Op("tick", 1),
        ),
    ),
    "a file that returns": Story(
        _setting("next"),
        (
            Op("land", rows=_DAYS),
            Op("land", rows=((1, "y", 7),)),
            Op("tick", 3),
            Op("remove", 1),
            Op("tick", 1),
            Op("restore", 1),
            Op("tick", 1),
        ),
    ),
    "a late row and a deployment": Story(
        _setting("next", FAMILIES["stateless"].versions),
        (
            Op("land", rows=_DAYS),
            Op("tick", 3),
            Op("land", rows=((1, "y", 7),)),
            Op("tick", 1),
            Op("deploy", 1),
            Op("tick", 1),
        ),
    ),
    "an output is removed": Story(
        _setting("next", FAMILIES["outputs"].versions),
        (Op("land", rows=_DAYS), Op("tick", 2), Op("deploy", 1), Op("rollback"), Op("tick", 1)),
    ),
    "an output is renamed": Story(
        _setting("next", FAMILIES["outputs"].versions),
        (Op("land", rows=_DAYS), Op("tick", 2), Op("deploy", 2), Op("rollback"), Op("tick", 1)),
    ),
}
