"""What the cookbook says of each program is so: whether it is incremental, and how it may be cut.

And Spark gives for all programs of all pages what the pages say, tick by tick and as one range.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from hydro_core.analysis.partition.partitioning import partition
from hydro_core.compile import CompiledProgram
from hydro_core.engines import Options
from hydro_core.optimize.optimizer import optimize
from hydro_core.running import run_json
from tests.pages.blocks import ALL, ROOT, Block, following
from tests.pages.test_programs import PROGRAMS, calendar_of, compiled_of, streams_of
from tests.pages.tick_tables import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "docs/cookbook.md"
RECIPES = [block for block in PROGRAMS if block.page == PAGE]
SAID = re.compile(r"^Incremental: .*$", re.MULTILINE)


def _said_of(block: Block) -> re.Match[str]:
    """The sentence below a program and its ticks."""
    page = PAGE.read_text(encoding="utf-8")
    found = SAID.search(page, page.index(block.text))
    assert found is not None
    return found


@pytest.mark.parametrize("block", RECIPES, ids=lambda block: block.file)
def test_it_is_as_incremental_as_the_page_says(block: Block, update_golden: bool) -> None:
    found, said = _judged(compiled_of(block)), _said_of(block)
    if update_golden:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(page[: said.start()] + found + page[said.end() :], encoding="utf-8")
    else:
        assert found == said[0]


def _judged(program: CompiledProgram) -> str:
    notes = optimize(program.typed).notes
    first = notes[0].message if notes else ""
    others = ", ".join(f"`{note.name}`" for note in notes[1:])
    incremental = f"{first} (so do {others})" if others else first
    answer = partition(program.typed).as_json()
    ways = " or ".join(", ".join(_routes(keys)) for keys in answer["keys"])
    blocked = ", ".join(f"`{entry}`" for entry in answer["blocked_by"])
    return (
        f"Incremental: {f'no, {incremental}' if notes else 'yes'}. "
        f"Shards: {ways or f'none, because of {blocked}'}."
    )


def _routes(keys: dict[str, list[str]]) -> Iterator[str]:
    for name, fields in keys.items():
        yield f"`{name}` by {' and '.join(f'`{field}`' for field in fields)}"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("as_range", [False, True], ids=["ticks", "range"])
def test_spark_gives_the_same(spark: SparkSession, as_range: bool) -> None:
    """All programs of all pages with a table of ticks; one test, since they share the session."""
    options = Options(engine="spark", spark=spark, as_range=as_range)
    shown = [(block, following(block)) for block in PROGRAMS]
    tables = [(b, t) for b, t in shown if t is not None and t.language == "ticks"]
    assert len(tables) > 20
    for block, table in tables:
        after = following(table)
        if after is not None and after.language == "error":
            continue
        program = compiled_of(block)
        streams = streams_of(program, table.text)
        said = read(table.text, streams)
        given = [{s.name: tick[s.name] for s in streams if not s.out} for tick in said]
        gives = [{s.name: tick[s.name] for s in streams if s.out} for tick in said]
        found = run_json(program.graph, {}, given, options, calendar_of(table))
        assert [{name: tick[name] for name in gives[0]} for tick in found] == gives, block.place


def test_every_program_says_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(SAID.findall(page)) == len(RECIPES) == len([b for b in ALL if b.page == PAGE]) / 2
