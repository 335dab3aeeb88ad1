"""The model of the operator: what is done to flows, in any order, and what must come of it.

pytest tests/operating --story 31               the story of a seed, told in full where it fails
pytest tests/operating -m slow --told-for 600   ten minutes of stories; an hour without it
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pyspark.sql import SparkSession

from tests.operating.known import OPEN, STORIES
from tests.operating.made import shrunk, story_of
from tests.operating.more_known import MORE_STORIES
from tests.operating.more_programs import MORE_FAMILIES
from tests.operating.processes import Processes
from tests.operating.programs import FAMILIES, stated
from tests.operating.story import Story, WrongError
from tests.operating.world import run
from tests.support.deployments import judge_differences
from tests.support.selection import cover, mostly_slow

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

SEEDS = (3, 10, 28, 31, 51, 99, 131, 232)
"""Some that tell of all kinds of landings, and those by which defects were found."""
TOLD = {**STORIES, **MORE_STORIES}


def _features(story: Story) -> frozenset[object]:
    """What is done in a story, and to which kinds of flows and landings."""
    setting = story.setting
    return frozenset(
        {
            *((op.what, op.how, bool(op.kill)) for op in story.ops),
            *(("late", late) for late in setting.late.values()),
            *(("kind", kind) for kind in setting.kinds.values()),
            *(("shards", bool(setting.shards)), ("held", bool(setting.held))),
            *(("waits", bool(setting.waits)), ("tables", setting.has_tables)),
        }
    )


_EVERY: dict[object, Story] = {**TOLD, **{seed: story_of(seed) for seed in SEEDS}}
QUICK = set(cover({name: _features(story) for name, story in _EVERY.items()}))
"""A few stories that have every operation and every kind of landing which any of them has."""
FIRST = 1000
"""The first seed of the long run."""
MOST = 5
"""After so many stories that fail the long run ends."""
_LONG, _SHORT = 20, 9
"""Operations of a story of the long run, and of one whose operations are processes."""
_SHRINKING = 240.0
"""Seconds to make a story smaller that fails."""


@pytest.fixture(autouse=True)
def _session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flows use the shared session; the state of each output is judged when a flow is deployed."""
    judge_differences(monkeypatch, stated({**FAMILIES, **MORE_FAMILIES}))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        asked = metafunc.config.getoption("--story")
        seeds = mostly_slow(SEEDS, [seed for seed in SEEDS if seed in QUICK])
        metafunc.parametrize("seed", seeds if asked is None else [asked])


@pytest.mark.parametrize("name", mostly_slow(TOLD, [name for name in TOLD if name in QUICK]))
def test_a_story_that_was_told(name: str, tmp_path: Path) -> None:
    _judged(name, TOLD[name], tmp_path)


def test_the_story_of_a_seed(seed: int, tmp_path: Path) -> None:
    _judged(f"seed {seed}", story_of(seed), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed_of_processes", range(4))
def test_each_operation_is_a_process(seed_of_processes: int, tmp_path: Path) -> None:
    story = story_of(seed_of_processes, _SHORT)
    assert run(story, tmp_path / "home", Processes) == len(story.ops)


@pytest.mark.slow
def test_many_stories(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    end = time.monotonic() + float(request.config.getoption("--told-for"))
    seed, failed = FIRST, dict[int, str]()
    while time.monotonic() < end and len(failed) < MOST:
        story = story_of(seed, _LONG, FAMILIES if seed % 2 else MORE_FAMILIES)
        problem = _problem(story)
        if problem is not None:
            less = shrunk(story, _problem, _SHRINKING)
            failed[seed] = f"seed {seed}: {problem}\n{less}\n{_problem(less)}"
        seed += 1
    record_property("stories", seed - FIRST)
    assert not failed, "\n\n".join(failed.values())


def _problem(story: Story) -> str | None:
    """What goes wrong in a story."""
    with TemporaryDirectory() as home:
        try:
            run(story, Path(home, "home"))
        except WrongError as error:
            return str(error)
    return None


def _judged(name: str, story: Story, directory: Path) -> None:
    """Fails where a story does, but for those of which that is known; and where that is over."""
    reason, words = OPEN.get(name, ("", ""))
    try:
        run(story, directory / "home")
    except WrongError as error:
        if reason and words in str(error):
            pytest.xfail(reason)
        error.add_note(f"{name}, `pytest tests/operating --story SEED` tells it again:\n{story}")
        raise
    assert not reason, f"{reason} is mended: take `{name}` out of what is open"
