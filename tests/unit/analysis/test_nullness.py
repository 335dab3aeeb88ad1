"""Which streams have no null among their items."""

from __future__ import annotations

import pytest

from hydro_core.analysis.infer import never_null
from hydro_core.compile import compile_text

SOURCES = 'a = source("k long, v long"); b = source("k long, w long"); n = source("long")\n'


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("a -> null(); x = a", False),
        ("x = a -> filter(lambda r: r.v == 1)", False),
        ("x = a -> join(right=b, on='k')", True),
        ("x = a -> join(right=b, on='k', how='outer')", True),
        ("x = a -> join(right=b, on='k', how='semi')", False),
        ("x = a -> select('k') -> join(right=b, on='k', how='semi')", True),
        ("x = a -> with_columns(w=lambda r: 1) -> persist() -> unique() -> delta()", True),
        ("x = a -> aggregate(by='k', n=count()) -> prev()", True),
        ("x = a -> latest(by='k', order='v')", False),
        ("x = a -> map(lambda r: {'k': r.k, 'v': r.v}) -> latest(by='k', order='v')", True),
        ("x = a -> map(lambda r: (r.k, r.v)) -> sort() -> limit(1)", True),
        ("x = a -> map(lambda r: r.k)", False),
        ("x = a -> map(lambda r: 1)", True),
        ("x = a -> map(lambda r: None)", False),
        ("x = a -> map(lambda r: r.v == 1)", True),
        ("x = a -> map(lambda r: (r.k, 1) if r.v else (0, r.v))", True),
        ("x = a -> map(lambda r: (r.k, 1) if r.v else None)", False),
        ("x = a -> map(lambda r: r.v and r.k)", False),
        ("x = a -> map(lambda r: r.v or 0)", True),
        ("x = a -> filter_map(lambda r: r.k)", True),
        ("x = n -> reduce(lambda s, v: s, commutative=True)", False),
        (
            "x = n -> map(lambda v: (v, v)) -> fold_keyed(0, lambda s, v: s + v, commutative=True)",
            True,
        ),
        ("x = n -> changes()", True),
        ("x = union(); a -> select('k') -> x; a -> drop('v') -> x", True),
        ("x = union(); a -> x; a -> with_columns(v=lambda r: 1) -> x", False),
        ("x = union(); a -> select('k') -> x; x -> prev() -> x", True),
    ],
)
def test_what_is_made_is_there_and_what_is_handed_on_may_not_be(text: str, never: bool) -> None:
    graph = compile_text(f"{SOURCES}{text}\nx -> out; b -> o; n -> p").typed.graph
    [sink] = graph.sinks["out"]
    assert (sink.inputs[0].node in never_null(graph)) is never
