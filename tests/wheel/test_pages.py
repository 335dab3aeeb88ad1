"""Every command that a page shows runs where nothing but the wheel is installed, and prints what
the page shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages.blocks import ROOT, Block, following
from tests.pages.command_lines import SHELL, commands_of
from tests.pages.test_programs import PROGRAMS, compiled_of, streams_of
from tests.pages.tick_tables import read, written
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
    assert left <= set(ELSEWHERE) <= {line for _, line in shown}
    assert set(ELSEWHERE) <= {line for _, line in shown}
    for story in STORIES:
        lines = {line for block, line in shown if block.page == ROOT / story.page}
        assert {*story.before, *story.ends, *story.says} - {""} <= lines


def test_every_program_on_a_page_gives_what_its_table_says(
    environment: Environment, tmp_path: Path
) -> None:
    shown = [(block, said) for block, said in _tables() if said is not None]
    assert len(shown) > 25
    jobs, tables = [], []
    for block, said in shown:
        streams = streams_of(compiled_of(block), said.text)
        given = read(said.text, [stream for stream in streams if not stream.out])
        every, _, start = said.file.partition(" from ")
        times = {"start": start, "every": every} if start else {}
        program = {"program": block.text}
        if block.language == "rules":
            program = {"file": f"{len(jobs)}.dl"}
            (tmp_path / program["file"]).write_text(block.text, encoding="utf-8")
        jobs.append(json.dumps({"name": block.place, **program, "ticks": given, **times}))
        tables.append((streams, given))
    (tmp_path / "jobs.jsonl").write_text("\n".join(jobs), encoding="utf-8")
    done = environment.run(["hydrotick", "run", "--batch", "jobs.jsonl"], tmp_path)
    assert done.returncode == 0, done.stdout
    answers = map(json.loads, done.stdout.splitlines())
    for (block, said), (streams, given), answer in zip(shown, tables, answers, strict=True):
        assert "ticks" in answer, answer
        gives = [{**i, **o} for i, o in zip(given, answer["ticks"], strict=True)]
        assert written(streams, gives) == said.text, block.place


def _tables() -> Iterator[tuple[Block, Block | None]]:
    """The programs on pages, each with its table of ticks if it has one and does not fail."""
    for block in PROGRAMS:
        said = following(block)
        after = said and following(said)
        fails = after is not None and after.language == "error"
        yield block, said if said and said.language == "ticks" and not fails else None
