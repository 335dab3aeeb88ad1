"""Parameters are constants of a program: typed, named in it, and a part of its functions."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hydro_core.artifact.deployment import program_meaning
from hydro_core.compile import compile_graph
from hydro_core.engines import Options
from hydro_core.errors import Diagnostic, ProgramError
from hydro_core.ir.graph import Graph
from hydro_core.lang.load import load, load_text
from hydro_core.lang.params import Params, changed_params, params_of, written
from hydro_core.running import run_json
from tests.support.refused import Refused

OPTIONS = Options()
PROGRAM = """
a = source("k string, v long")
a -> filter(lambda r: r.v > above and r.k in kinds) -> sort() -> limit(most) -> out
"""
GIVEN = {"above": 2, "kinds": ["x", "y"], "most": 2}
ITEMS = [{"k": k, "v": v} for k, v in (("x", 1), ("x", 3), ("y", 4), ("z", 9), ("y", 5))]


def loaded(given: dict[str, Any], text: str = PROGRAM) -> Graph:
    return load_text(text, "program.hydro", params_of(given))


def wrong(given: dict[str, Any], text: str = PROGRAM) -> tuple[Diagnostic, ...]:
    with pytest.raises(ProgramError) as caught:
        loaded(given, text)
    return caught.value.diagnostics


def test_functions_and_arguments_name_them() -> None:
    ticks = run_json(loaded(GIVEN), {}, [{"a": ITEMS}], OPTIONS)
    assert ticks == [{"out": [{"k": "x", "v": 3}, {"k": "y", "v": 4}]}]
    more = run_json(loaded({**GIVEN, "above": 4, "most": 9}), {}, [{"a": ITEMS}], OPTIONS)
    assert more == [{"out": [{"k": "y", "v": 5}]}]


def test_it_wins_over_what_is_no_function_of_pythons_own() -> None:
    """Functions that later versions add take no parameter's name away."""
    text = PROGRAM.replace("above", "soundex")
    given = {"soundex": 4, "kinds": ["x", "y"], "most": 9}
    assert run_json(loaded(given, text), {}, [{"a": ITEMS}], OPTIONS) == [
        {"out": [{"k": "y", "v": 5}]}
    ]


def test_a_local_name_wins() -> None:
    text = PROGRAM.replace("lambda r: r.v > above", "lambda r: [above for above in [r.v]] != [3]")
    assert run_json(loaded(GIVEN, text), {}, [{"a": ITEMS}], OPTIONS)[0]["out"][0] == {
        "k": "x",
        "v": 1,
    }


def test_another_value_is_another_program_and_the_same_one_is_not() -> None:
    meant = [program_meaning(compile_graph(loaded({**GIVEN, "above": n})).typed) for n in (2, 2, 3)]
    assert meant[0] == meant[1]
    assert meant[0] != meant[2]
    constant = loaded({"kinds": ["x", "y"], "most": 2}, PROGRAM.replace("above", "2"))
    assert program_meaning(compile_graph(constant).typed) == meant[0]


@pytest.mark.parametrize(
    ("value", "ddl"),
    [
        (2, "long"),
        (2.5, "double"),
        (True, "boolean"),
        ("x", "string"),
        (Decimal("1.50"), "decimal"),
        (date(2026, 1, 1), "date"),
        (datetime(2026, 1, 1, tzinfo=UTC), "timestamp"),
        ([1, 2], "array<long>"),
    ],
)
def test_they_have_the_type_of_their_value(value: object, ddl: str) -> None:
    text = 'a = source("long")\na -> map(lambda x: {"p": p}) -> out\n'
    found = compile_graph(loaded({"p": value}, text)).typed.outputs["out"].item
    assert ddl in str(found)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("2x", 1, "is none"),
        ("lambda", 1, "is none"),
        ("max", 1, "is a function of Python"),
        ("p", None, "has no value"),
        ("p", [1, None], "has no value"),
        ("p", {1}, "a set is not an item"),
        ("p", 2**63, "beyond 64 bits"),
        ("p", datetime(2026, 1, 1), "a time without an offset"),
    ],
)
def test_what_is_none(name: str, value: object, message: str) -> None:
    (diagnostic,) = wrong({**GIVEN, name: value})
    assert diagnostic.code == "config"
    assert message in diagnostic.message
    assert f"`{name}`" in diagnostic.message
    assert diagnostic.help


def test_one_that_the_program_does_not_name() -> None:
    (diagnostic,) = wrong({**GIVEN, "kindes": ["x"]})
    assert (diagnostic.code, diagnostic.help) == ("config", "did you mean `kinds`?")


def test_one_that_is_a_stream() -> None:
    for name in ("a", "out"):
        (diagnostic,) = wrong({**GIVEN, name: 1})
        assert f"`{name}` is a stream of the program" in diagnostic.message


def test_one_that_is_missing() -> None:
    (diagnostic,) = wrong({"kinds": ["x"], "most": 1})
    assert diagnostic.code == "name"
    assert "above" in diagnostic.message


def test_what_changed_is_told() -> None:
    before, after = written(params_of(GIVEN)), written(params_of({"above": 3, "most": 2}))
    assert changed_params(before, after) == [
        "parameter `above`: 2 → 3",
        "parameter `kinds`: ['x', 'y'] → none",
    ]
    assert changed_params(before, written(params_of(dict(reversed(GIVEN.items()))))) == []
    one = [written(params_of({"p": value})) for value in (1, 1.0, True)]
    assert len({tuple(p.items()) for p in one}) == 3


MODULE = """
from hydro_core import Flow

def made(above, most=3):
    flow = Flow("made")
    flow.source("a", "long").filter(lambda x: x > above).sort().limit(most).sink("out")
    return flow

flow = made(1)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = "flows_with_params"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_a_python_function_takes_them(module: str) -> None:
    graph = load(f"{module}:made", Params({"above": 2}))
    assert run_json(graph, {}, [{"a": [1, 5, 4, 3, 6]}], OPTIONS) == [{"out": [3, 4, 5]}]


@pytest.mark.parametrize(
    ("attribute", "given", "message"),
    [
        ("made", {}, "missing a required argument: 'above'"),
        ("made", {"above": 1, "abve": 2}, "got an unexpected keyword argument 'abve'"),
        ("flow", {"above": 1}, "is made already"),
    ],
)
def test_a_python_function_takes_no_others(
    module: str, attribute: str, given: dict[str, Any], message: str, refused: Refused
) -> None:
    with refused(ProgramError, "config") as caught:
        load(f"{module}:{attribute}", Params(given))
    assert message in caught.value.diagnostics[0].message
