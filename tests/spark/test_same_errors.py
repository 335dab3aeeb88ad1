"""A failing function is told in the same words by both engines, however Spark runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hydro_core.engines import Options
from hydro_core.errors import HydroError
from hydro_core.lang.resolve import parse
from hydro_core.running import run_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SOURCE = 'rows = source("k string, v long")\n'
TICKS = [{"rows": [{"k": "a", "v": 2}]}, {"rows": [{"k": "b", "v": 0}]}]
FORMS = {
    "column": "map(lambda r: 6 // r.v)",
    "udf": "map(lambda r: f'{6 // r.v:>5}')",
    "predicate": "filter(lambda r: 6 // r.v > 1)",
    "column fold": "fold(0, lambda s, r: s * 2 + 6 // r.v, commutative=True)",
    "udf fold": "fold('', lambda s, r: s + f'{6 // r.v:x}', commutative=True)",
    "keyed udf fold": "fold_keyed('', lambda s, r: s + f'{6 // r.v:x}', by='k', commutative=True)",
    "history": "persist() -> aggregate(by='k', t=sum(lambda r: 6 // r.v)) -> delta()",
    "scan": "sort() -> scan(0, lambda s, r: s + 6 // r.v)",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("as_range", [False, True])
def test_a_failing_function(spark: SparkSession, form: str, as_range: bool) -> None:
    graph = parse(f"{SOURCE}rows\n  -> {FORMS[form]} -> out", file="shop.hydro")
    told = []
    for engine in ("reference", "spark"):
        options = Options(engine, as_range=as_range, spark=spark)  # type: ignore[arg-type]
        with pytest.raises(HydroError, match=r"in tick 1: the function .* [(]line 3[)]") as caught:
            run_json(graph, {}, TICKS, options)
        told.append(caught.value.as_json())
        assert "ZeroDivisionError" in str(caught.value)
        assert "Traceback" not in str(caught.value)
        assert "java" not in str(caught.value).lower()
    assert told[0] == told[1]


SUMS = {
    "sum": ("decimal(38,2)", 'sum("v")', r"the sum has more digits than decimal\(38,2\)"),
    "mean": ("decimal(38,2)", 'avg("v")', r"the (sum|mean) has more digits than decimal\(38,\d\)"),
    "integers": ("long", 'sum("v")', "the sum 9223372036854775808 is beyond 64 bits"),
}
LARGE = {"decimal(38,2)": ("1.00", "9" * 36 + ".99"), "long": (0, 2**62)}


@pytest.mark.parametrize("as_range", [False, True], ids=["ticks", "range"])
@pytest.mark.parametrize("optimized", [False, True], ids=["written", "optimized"])
@pytest.mark.parametrize("form", SUMS)
@pytest.mark.parametrize(
    "by",
    [pytest.param("by='k', ", id="keys"), pytest.param("", id="whole", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("history", ["", "persist() -> "], ids=["tick", "history"])
def test_a_sum_that_does_not_fit(
    spark: SparkSession, history: str, by: str, form: str, optimized: bool, as_range: bool
) -> None:
    of, aggregate, told = SUMS[form]
    text = f'a = source("k string, v {of}")\na -> {history}aggregate({by}n={aggregate}) -> out'
    small, large = ({"k": "x", "v": v} for v in LARGE[of])
    ticks = [{"a": [small]}, {"a": [large, large]}]
    for engine in ("reference", "spark"):
        options = Options(engine, optimized=optimized, as_range=as_range, spark=spark)  # type: ignore[arg-type]
        with pytest.raises(HydroError, match=rf"`aggregate` in tick 1: {told}") as caught:
            run_json(parse(text), {}, ticks, options)
        assert caught.value.diagnostics[0].span is not None
