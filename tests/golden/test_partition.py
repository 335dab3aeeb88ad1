"""`hydrotick partition` of the programs in `partition/`: the text for people, and the JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hydro_core.analysis.partition.partitioning import partition
from hydro_core.compile import compile_graph
from hydro_core.lang.resolve import parse

PROGRAMS = sorted((Path(__file__).parent / "partition").glob("*.hydro"))


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: file.stem)
def test_partition(file: Path, update_golden: bool) -> None:
    graph = parse(file.read_text(), file=file.name, name=file.stem)
    found = partition(compile_graph(graph).typed)
    text = f"{found}\n{json.dumps(found.as_json())}\n"
    expected = file.with_suffix(".txt")
    if update_golden:
        expected.write_text(text)
    assert text == expected.read_text()
