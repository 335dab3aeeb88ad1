"""Every operator of the catalogue has a definition, and does what its example says."""

from __future__ import annotations

import pytest

from hydro_core.catalog.registry import CATALOG
from hydro_core.catalog.spec import OpSpec
from hydro_core.engines import Options
from hydro_core.lang.resolve import parse
from hydro_core.reference import interpreter
from hydro_core.reference.definitions.registry import defines, definitions
from hydro_core.running import run_json


def test_every_operator_has_a_meaning() -> None:
    assert interpreter.run_ticks
    assert CATALOG.keys() <= definitions().keys()


def test_an_operator_has_one_meaning() -> None:
    with pytest.raises(ValueError, match="a definition already"):
        defines("map")(lambda site, a: a)


@pytest.mark.parametrize("op", CATALOG.values(), ids=lambda op: op.name)
def test_example(op: OpSpec) -> None:
    example = op.example
    found = run_json(
        parse(example.program),
        dict(example.schemas),
        [dict(t) for t in example.ticks],
        Options(optimized=False),
    )
    assert found == [dict(tick) for tick in example.gives]
