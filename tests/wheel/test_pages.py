"""Every command that a page shows runs where nothing but the wheel is installed, and prints what
the page shows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.blocks import ROOT
from tests.pages.command_lines import SHELL, commands_of
from tests.wheel.environment import Environment
from tests.wheel.following import Reader, Story
from tests.wheel.stories import ELSEWHERE, STORIES

pytestmark = pytest.mark.wheel


@pytest.mark.parametrize(
    "story",
    [pytest.param(s, marks=[pytest.mark.slow] if s.slow else [], id=s.page) for s in STORIES],
)
def test_a_page_is_followed(
    story: Story, environment: Environment, tmp_path: Path, update_golden: bool
) -> None:
    start = tmp_path / "start"
    start.mkdir()
    Reader(environment, start, story, set(ELSEWHERE)).follow(update_golden)


def test_every_command_on_a_page_is_run_or_is_of_another_place() -> None:
    followed = {ROOT / story.page for story in STORIES}
    shown = [(block, command.line) for block in SHELL for command in commands_of(block)]
    left = {line for block, line in shown if block.page not in followed}
    assert left <= set(ELSEWHERE)
    assert set(ELSEWHERE) <= {line for _, line in shown}
    for story in STORIES:
        lines = {line for block, line in shown if block.page == ROOT / story.page}
        assert {*story.before, *story.ends, *story.says} - {""} <= lines
