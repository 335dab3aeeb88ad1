"""A failing function is told in the same words by both engines, however Spark runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hydro_core.engines import Options
from hydro_core.errors import HydroError
from hydro_core.lang.resolve import parse
from hydro_core.running import run_json
from tests.support.selection import alternately_slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SOURCE = 'rows = source("k string, v long")\n'
TICKS = [{"rows": [{"k": "a", "v": 2}]}, {"rows": [{"k": "b", "v": 0}]}]
FORMS = {
    "column": "map(lambda r: 6 // r.v)",
    "udf": "map(lambda r: f'{6 // r.v:^5}')",
    "predicate": "filter(lambda r: 6 // r.v > 1)",
    "column fold": "fold(0, lambda s, r: s * 2 + 6 // r.v, commutative=True)",
    "udf fold": "fold('', lambda s, r: s + f'{6 // r.v:x}', commutative=True)",
    "keyed udf fold": "fold_keyed('', lambda s, r: s + f'{6 // r.v:x}', by='k', commutative=True)",
    "history": "persist() -> aggregate(by='k', t=sum(lambda r: 6 // r.v)) -> delta()",
    "scan": "sort() -> scan(0, lambda s, r: s + 6 // r.v)",
}


@pytest.mark.parametrize(("form", "as_range"), alternately_slow(FORMS, [False, True]))
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


SCHEMA = "k string, v long, d date, f double, a array<long>, s string, at timestamp, x decimal(9,2)"
SOUND = {
    "k": "a", "v": 2, "d": "2024-01-01", "f": 1.5, "a": [1], "s": "1",
    "at": "2024-01-01T00:00:00Z", "x": "1.00",
}  # fmt: skip
WRONG = {
    "k": "b",
    "v": None,
    "d": "9999-12-31",
    "f": 1e300,
    "a": [],
    "s": "x",
    "at": None,
    "x": None,
}
FAULTS = {
    "None in a sum": ("map(lambda r: r.v + 1)", "test for None"),
    "None compared": ("filter(lambda r: r.v > 0)", "test for None"),
    "None of a decimal": ("map(lambda r: r.x + 1)", "test for None"),
    "an attribute of None": ("map(lambda r: r.at.year)", "test for None"),
    "a text that is no number": ("map(lambda r: int(r.s))", "test the value"),
    "no such key": ("map(lambda r: {'1': 2}[r.s])", "d.get(key)"),
    "no such place": ("select(y=lambda r: r.a[0])", "test the length"),
    "the largest of none": ("map(lambda r: max(r.a))", "test the value"),
    "a divisor": ("aggregate(by='k', t=sum(lambda r: 1 // len(r.a)))", "test the divisor"),
    "a large number": ("map(lambda r: int(r.f))", "numbers grow beyond 64 bits"),
    "a large product": (
        "map(lambda r: 2**62 * len(r.s) * (3 if r.v is None else 1))",
        "beyond 64 bits",
    ),
    "a late date": ("map(lambda r: r.d + timedelta(days=1))", "a year has four digits"),
    "a fold of tuples": ("fold((0, 0), lambda s, r: (s[0] + r.v, 1), commutative=True)", "None"),
    "a command": (
        "map(lambda r: ('persist' if r.v else 'drop', r.at)) -> sort() -> persist_mut()",
        'commands are `("persist", x)`',
    ),
    "a keyed command": (
        "map(lambda r: ('persist' if r.v else 'drop', r.k, r.d)) -> sort() -> persist_mut_keyed()",
        'commands are `("persist", k, v)`',
    ),
    "a port": ("partition(lambda r: r.k, ports=['a'])", "declare one more"),
    "a single item": ("cross_singleton(single=rows)", "reduce them to one first"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_all_that_is_said(spark: SparkSession, fault: str) -> None:
    operator, cure = FAULTS[fault]
    read = "p[a]" if "ports" in operator else "p"
    text = f'rows = source("{SCHEMA}")\np = rows\n  -> {operator}\n{read} -> out'
    ticks = [{"rows": [SOUND]}, {"rows": [WRONG, WRONG]}]
    told = []
    for options in (Options(), Options("spark", spark=spark)):
        with pytest.raises(HydroError, match="in tick 1: ") as caught:
            run_json(parse(text, file="shop.hydro"), {}, ticks, options)
        told.append(caught.value.as_json())
    assert told[0] == told[1]
    assert cure in told[0]["help"]


SUMS = {
    "sum": ("decimal(38,2)", 'sum("v")', r"the sum has more digits than decimal\(38,2\)"),
    "mean": ("decimal(38,2)", 'avg("v")', r"the (sum|mean) has more digits than decimal\(38,\d\)"),
    "integers": ("long", 'sum("v")', "the sum 9223372036854775808 is beyond 64 bits"),
}
LARGE = {"decimal(38,2)": ("1.00", "9" * 36 + ".99"), "long": (0, 2**62)}


@pytest.mark.parametrize(
    ("form", "optimized", "history", "by", "as_range"),
    alternately_slow(SUMS, [False, True], ["persist() -> ", ""], ["by='k', ", ""], [False, True]),
)
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
