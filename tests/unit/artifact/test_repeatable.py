"""A deployment says whether a tick that runs again gives the same, and is read back so."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hydro_core import Flow
from hydro_core.analysis.partition.partitioning import partition
from hydro_core.artifact.deployment import newest_deployment, write_deployment
from hydro_core.artifact.make import deployment_of
from hydro_core.compile import compile_graph
from hydro_core.optimize.optimizer import optimize


def large(row: Any) -> bool:
    return bool(row.v > 3)


def lucky(row: Any) -> bool:
    return bool(row.v > random.random())


@pytest.mark.parametrize(("kept", "repeatable"), [(large, True), (lucky, False)])
def test_it_is_written_down(tmp_path: Path, kept: Callable[[Any], bool], repeatable: bool) -> None:
    flow = Flow("f")
    flow.source("rows", "k string, v long").filter(kept).sink("out")
    typed = compile_graph(flow.graph()).typed
    write_deployment(tmp_path, deployment_of("f", typed, optimize(typed)))
    found = newest_deployment(tmp_path)
    assert found is not None
    assert found.deployment.repeatable is repeatable
    assert found.deployment.routing == str(partition(typed))
