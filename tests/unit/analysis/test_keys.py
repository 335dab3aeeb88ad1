"""Joins on keys of other names are joins on one name, of a right side that is renamed."""

from __future__ import annotations

import pytest

from hydro_core import Flow
from hydro_core.compile import compile_text
from hydro_core.types.ddl import to_ddl

A = 'a = source("id long, x long"); b = source("ref int, id long, x string")\n'


@pytest.mark.parametrize(
    ("on", "of_one_name"),
    [
        ('{"id": "ref"}', 'rename(id="ref", id_r="id") ; on="id"'),
        ('{"id": "id"}', '; on="id"'),
        ('{"x": "ref"}', 'rename(x="ref", x_r="x") ; on="x"'),
        ('{"id": "ref", "x": "id"}', 'rename(id="ref", x="id", x_r="x") ; on=["id", "x"]'),
    ],
)
@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
def test_it_is_the_join_of_a_renamed_side(on: str, of_one_name: str, how: str) -> None:
    renames, _, key = of_one_name.partition(";")
    side = f"b -> {renames}" if renames else "b -> identity()"
    one = compile_text(f'{A} a -> join(right=b, on={on}, how="{how}", suffix="_r") -> out')
    other = compile_text(
        f'{A} c = {side}; a -> join(right=c, {key.strip()}, how="{how}", suffix="_r") -> out'
    )
    assert to_ddl(one.typed.of("join_1").item) == to_ddl(other.typed.of("join_1").item)
    assert one.graph["join_1"].args == other.graph["join_1"].args
    if renames:
        assert one.graph["join_1_right"].args == other.graph["c"].args


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_of_rows_that_are_only_asked_for_no_suffix_is_needed(how: str) -> None:
    program = compile_text(f'{A} a -> join(right=b, on={{"id": "ref"}}, how="{how}") -> out')
    assert program.typed.of("out").item == program.typed.of("a").item


def test_a_program_says_it_as_it_was_written() -> None:
    flow = Flow("pairs")
    a, b = flow.source("a", "id long"), flow.source("b", "ref long, y long")
    a.join(b, on={"id": "ref"}, how="left").sink("out")
    assert 'join(right=b, on={"id": "ref"}, how="left")' in flow.to_text()
    assert Flow.parse(flow.to_text()).to_text() == flow.to_text()
    assert list(flow.run([{"a": [{"id": 1}], "b": [{"ref": 1, "y": 2}]}])) == [
        {"out": [{"id": 1, "y": 2}]}
    ]


def test_names_that_are_taken_stay() -> None:
    side = 'join_1_right = b -> rename(y="x")'
    graph = compile_text(
        f'{A} {side}; a -> join(right=join_1_right, on={{"x": "ref"}}, suffix="_r") -> out'
    ).graph
    assert graph["join_1"].inputs[1].node == "join_1_right_2"


def test_a_side_that_never_has_an_item_has_every_name() -> None:
    program = compile_text(
        'a = source("id long"); b = null(); a -> join(right=b, on={"id": "x"}, how="semi") -> out'
    )
    assert to_ddl(program.typed.of("out").item) == "id long"
