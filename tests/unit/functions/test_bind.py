"""Functions are bound by their tree: equal text is not enough."""

from __future__ import annotations

from hydro_core.functions.bind import arguments_of, bind
from hydro_core.functions.known_folds import FoldParts, Total, known_fold, value_of
from hydro_core.functions.result_type import result_type
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import DOUBLE, LONG
from tests.support.functions import text


def test_parts_of_one_fold_have_types_of_their_own() -> None:
    fn = text("lambda a, x: (a[0] + x[0], a[1] + x[1])")
    fold = known_fold(fn)
    assert isinstance(fold, FoldParts)
    item = parse_ddl("(long, double)")
    values = [value_of(fn, part.value) for part in fold.parts if isinstance(part, Total)]
    assert values[0] == values[1], "they are told apart by their trees alone"
    assert [result_type(value, (item,)) for value in values] == [LONG, DOUBLE]


def test_parameters_stand_for_fields() -> None:
    fn = text("lambda acc, k, v: acc + v")
    found = arguments_of(fn, (LONG, parse_ddl("k string, v long")))
    assert found is not None
    assert [(a.input, a.step) for a in found] == [(0, None), (1, "k"), (1, "v")]
    bound = bind(fn, (LONG, parse_ddl("k string, v long")))
    assert bound.result == LONG
    assert bound.tree is not None
    assert bound.tree.type == LONG


def test_fields_of_what_is_not_known_are_known_by_their_places() -> None:
    found = arguments_of(text("lambda a, b: a"), (parse_ddl("(long, long, long)"),))
    assert found is not None
    assert [(a.input, a.step, a.place) for a in found] == [(0, None, 0), (0, None, 1)]
    assert arguments_of(text("lambda a: a"), (LONG, LONG)) is None
