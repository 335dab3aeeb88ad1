"""Stories that were told by people, and those that are known to end badly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.operating.more_programs import MORE_FAMILIES
from tests.operating.programs import FAMILIES, FEED_VERSIONS, IN_ALL
from tests.operating.story import FEED, Op, Setting, Story

OPEN: Mapping[str, tuple[str, str]] = {}
"""By their names, what fails and is to be mended: why, and words of what is said then. Who mends it
takes its line out.
"""
_DAYS = tuple((tick, "x", tick + 1) for tick in range(3))
_TOTALS = FAMILIES["totals"].versions


def _setting(late: str, versions: tuple[str, ...] = _TOTALS, kind: str = "parquet") -> Setting:
    return Setting(versions, {"a": late}, {"a": kind})


def _fed(late: str, feed: str, *more: Op) -> Story:
    """A flow that is fed has not read all that the other one gives now; then follows more."""
    setting = Setting(_TOTALS, {"a": late}, {"a": "flow"}, feed, feed_late="correct")
    return Story(
        setting,
        (
            Op("land", flow=FEED, rows=((0, "x", 1), (2, "z", 1), (3, "z", 4), (1, "y", 1))),
            Op("tick", 3, FEED),
            Op("tick", 3),
            *more,
            Op("tick", 1, FEED),
            Op("tick", 1),
        ),
    )


_LATE_IN_FEED = Op("land", flow=FEED, rows=((0, "x", 0), (1, "x", 0), (0, "x", 4), (1, "x", 2)))
STORIES: Mapping[str, Story] = {
    "forgotten behind a flow that has restated its outputs": _fed(
        "refuse", "o", _LATE_IN_FEED, Op("tick", 1, FEED), Op("forget", 1)
    ),
    "forgotten twice, and restated in between": _fed(
        "next",
        "o",
        Op("forget", 2),
        _LATE_IN_FEED,
        Op("correct", 1, FEED),
        Op("forget", 1),
        Op("correct", 1),
        Op("deploy", 1),
    ),
    "forgotten in the flow that feeds, then ticks, then in both": _fed(
        "next",
        "o",
        Op("forget", 1, FEED),
        Op("tick", 1, FEED),
        Op("tick", 1),
        Op("forget", 1),
        Op("deploy", 1, FEED),
        Op("tick", 1),
        Op("rollback", flow=FEED),
        Op("forget", 1, FEED),
    ),
    "a past that stays, in a table that executors write": Story(
        replace(_setting("next", FEED_VERSIONS["sums"]), held=3),
        (
            Op("land", rows=((1, "x", 4), (2, "y", 1), (1, "z", 5), (0, "x", 2))),
            Op("tick", 4),
            Op("deploy", 1, how="forward"),
        ),
    ),
    "tables that executors bring": Story(
        replace(_setting("next"), held=3, has_tables=True),
        (
            Op("land", rows=tuple((t, k, t + 1) for t in range(4) for k in "xyz")),
            Op("tick", 3),
            Op("land", rows=((1, "x", 1), (1, "z", 2))),
            Op("correct", 1),
            Op("deploy", 1),
            Op("tick", 1),
            Op("rollback"),
            Op("forget", 1),
        ),
    ),
    "forgotten in what another flow sums up": _fed("next", IN_ALL, Op("forget", 1)),
    "accepted, then somebody is forgotten": Story(
        _setting("refuse"),
        (
            Op("land", rows=_DAYS),
            Op("tick", 2),
            Op("land", rows=((0, "y", 5), (1, "z", 2))),
            Op("accept"),
            Op("forget", 2),
            Op("tick", 1),
        ),
    ),
    "forgotten before the first tick": Story(
        _setting("next"),
        (Op("land", rows=_DAYS), Op("forget", 1), Op("tick", 1)),
    ),
    "forgotten by whom no table has a row": Story(
        _setting("next", FAMILIES["stateless"].versions, "jsonl"),
        (
            Op("land", rows=((0, "z", 0), *_DAYS)),
            Op("tick", 2),
            Op("forget", 2, kill=3),
            Op("forget", 2),
            Op("tick", 1),
        ),
    ),
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
    "a late row whose tick lost another": Story(
        _setting("next"),
        (
            Op("land", rows=((0, "z", 0), (1, "x", 4))),
            Op("land", rows=_DAYS),
            Op("tick", 3),
            Op("land", rows=((0, "z", 4),)),
            Op("tick", 1),
            Op("rewrite", 0, rows=((2, "x", 4),)),
            Op("correct", 2),
            Op("tick", 1),
        ),
    ),
    "a rollback over several deployments": Story(
        _setting("next"),
        (
            Op("land", rows=_DAYS),
            Op("tick", 2),
            Op("deploy", 1),
            Op("tick", 1),
            Op("deploy", 2),
            Op("tick", 1),
            Op("rollback"),
            Op("tick", 1),
        ),
    ),
    "a deployment that was given up": Story(
        _setting("next"),
        (
            Op("land", rows=_DAYS),
            Op("tick", 1),
            Op("deploy", 1),
            Op("rollback"),
            Op("deploy", 2),
            Op("rollback"),
            Op("tick", 1),
        ),
    ),
    "a program that is deployed again": Story(
        _setting("next"),
        (
            Op("land", rows=_DAYS),
            Op("tick", 1),
            Op("deploy", 1),
            Op("deploy", 0),
            Op("rollback"),
            Op("rollback"),
            Op("tick", 1),
        ),
    ),
    "what returns after it was let go": Story(
        _setting("next"),
        (
            Op("land", rows=((2, "x", 4), (1, "z", 0))),
            Op("land", rows=((0, "x", 1), (0, "z", 2))),
            Op("tick", 3),
            Op("rewrite", 1, rows=((0, "x", 1), (0, "y", 4))),
            Op("accept"),
            Op("land", rows=((0, "z", 2),)),
            Op("correct", 2),
        ),
    ),
    "a flow is killed on which another one feeds": Story(
        Setting(
            FAMILIES["window"].versions, {"a": "next"}, {"a": "flow"}, "sums", feed_late="correct"
        ),
        (
            Op("land", flow=FEED, rows=_DAYS),
            Op("tick", 3, FEED),
            Op("tick", 2),
            Op("land", flow=FEED, rows=((0, "z", 5), (1, "x", 2))),
            *(Op("tick", 1, FEED, kill=step) for step in (1, 2, 3)),
            Op("tick", 1),
            Op("tick", 1, FEED),
            Op("tick", 1),
        ),
    ),
    "a compaction that was killed": Story(
        _setting("next"),
        (
            Op("land", rows=_DAYS),
            Op("tick", 2),
            Op("deploy", 1),
            Op("compact", 0, kill=6),
            Op("rollback"),
            Op("tick", 1),
        ),
    ),
    "a part of the past that stays": Story(
        _setting("next"),
        (
            Op("land", rows=_DAYS),
            Op("tick", 2),
            Op("tick", 1),
            Op("deploy", 1, how="from", first=1),
            Op("land", rows=((0, "y", 7), (3, "x", 5))),
            Op("tick", 1),
            Op("deploy", 2, how="from", first=2),
            Op("correct", 1),
            Op("rollback"),
        ),
    ),
    "files without rows of the first ticks": Story(
        _setting("next", FAMILIES["stateless"].versions),
        (
            Op("land", rows=((3, "z", 5),)),
            Op("tick", 2),
            Op("land", rows=((2, "z", 5), (1, "x", 5))),
            Op("tick", 1),
            Op("deploy", 1),
        ),
    ),
    "another number of shards": Story(
        replace(_setting("correct"), shards=(2, 3, 1, 1, 1, 1)),
        (
            Op("land", rows=_DAYS),
            Op("tick", 2),
            Op("deploy", 1),
            Op("land", rows=((1, "y", 7),)),
            Op("deploy", 2),
            Op("rollback"),
            Op("tick", 1),
        ),
    ),
    "late rows, a tick without rows, and a deployment": Story(
        _setting("next", FAMILIES["stateless"].versions),
        (
            Op("land", rows=((0, "x", 4),)),
            Op("tick", 1),
            Op("land", rows=((0, "y", 5),)),
            Op("tick", 1),
            Op("deploy", 1),
        ),
    ),
    "an output is removed": Story(
        _setting("next", FAMILIES["outputs"].versions),
        (Op("land", rows=_DAYS), Op("tick", 2), Op("deploy", 1), Op("rollback"), Op("tick", 1)),
    ),
    "a flow and the one that it reads are put back together": _fed(
        "correct",
        "sums",
        Op("copy all"),
        Op("deploy", 1, flow=FEED),
        _LATE_IN_FEED,
        Op("tick", 1, FEED),
        Op("tick", 1),
        Op("put back all"),
        Op("tick", 2, FEED),
        Op("correct", 1),
    ),
    "an output goes, and comes back with another type": Story(
        replace(_setting("next", MORE_FAMILIES["another type"].versions), has_tables=True),
        (
            Op("land", rows=_DAYS),
            Op("tick", 1),
            Op("deploy", 1),
            Op("tick", 1),
            Op("deploy", 3),
            Op("rollback"),
            Op("tick", 1),
            Op("deploy", 6),
            Op("correct", 1),
            Op("rollback"),
            Op("correct", 0),
        ),
    ),
    "an output is renamed": Story(
        _setting("next", FAMILIES["outputs"].versions),
        (Op("land", rows=_DAYS), Op("tick", 2), Op("deploy", 2), Op("rollback"), Op("tick", 1)),
    ),
    "a past that stays, with fewer rows than its program would give": Story(
        _setting("refuse", FAMILIES["several"].versions, "delta"),
        (
            Op("land", rows=((0, "y", 1), (1, "y", 3), (0, "z", 5), (3, "z", 0))),
            Op("tick", 3),
            Op("deploy", 2),
            Op("deploy", 3, how="from", first=3),
            Op("rollback"),
            Op("rollback"),
            Op("tick", 1),
        ),
    ),
    "rows that are back when a program begins without its past": Story(
        replace(
            _setting("next", FAMILIES["window"].versions, "delta"),
            columns={"a": "day"},
            waits=frozenset({"a"}),
        ),
        (
            Op("land", rows=((2, "y", 0), (0, "z", 2), (3, "y", 2))),
            Op("tick", 2),
            Op("land", rows=((2, "z", 2), (5, "x", 2))),
            Op("remove", 0),
            Op("tick", 2),
            Op("restore", 0),
            Op("deploy", 3, how="now", first=3),
        ),
    ),
    "another number of shards of a program without state": Story(
        replace(
            _setting("next", FAMILIES["stateless"].versions),
            refactored=FAMILIES["stateless"].refactored,
            shards=(3, 2, 1, 2, 2),
        ),
        (Op("land", rows=((1, "y", 5),)), Op("tick", 2), Op("deploy", 3), Op("tick", 1)),
    ),
    "what was accepted goes again before a tick has seen it back": Story(
        _setting("next"),
        (
            Op("land", rows=((1, "x", 3),)),
            Op("land", rows=((1, "y", 3), (2, "z", 4), (2, "y", 3))),
            Op("tick", 2),
            Op("remove", 1),
            Op("accept"),
            Op("rewrite", 0, rows=((2, "y", 0), (2, "y", 4))),
            Op("restore", 1),
            Op("remove", 1),
            Op("tick", 1),
            Op("restore", 1),
            Op("tick", 1),
            Op("remove", 1),
        ),
    ),
}
