"""A stream that is proven to be empty keeps its columns."""

from __future__ import annotations

from hydro_core.compile import compile_text
from hydro_core.optimize.optimizer import check_types, optimize
from hydro_core.types.ddl import parse_ddl


def test_an_output_that_is_proven_to_be_empty_has_its_columns() -> None:
    compiled = compile_text(
        """
        nothing = in0 -> difference(neg=in0)
        kept = union() -> latest(by="k", order="v")
        nothing -> prev() -> kept
        kept -> prev() -> kept
        kept -> out
        """,
        {"in0": parse_ddl("k string, v long")},
    )
    plan = optimize(compiled.typed)
    check_types(compiled.typed, plan.graph)
    (limit,) = plan.limits
    assert limit.startswith("`out` never has an item")
