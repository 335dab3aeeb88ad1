"""Groups of what a join has brought together: nulls, and what Spark takes in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.engines import assert_same, program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LIKE_NULL: dict[str, Any] = {
    "long": 0,
    "byte": 0,
    "boolean": False,
    "string": "",
    "binary": "",
    "date": "1970-01-01",
    "timestamp": "1970-01-01T00:00:00Z",
    "timestamp_ntz": "1970-01-01T00:00:00",
    "decimal(9,2)": "0.00",
    "double": 0.0,
    "array<long>": [],
}
"""What Spark's joins take for a null, of each type."""

TYPES = dict(zip([f"c{i}" for i in range(len(LIKE_NULL))], LIKE_NULL, strict=True))

PROGRAM = """
p = a -> persist(); q = b -> persist()
now = a -> join(right=b, on={on}); all = p -> join(right=q, on={on})
now -> aggregate(by={on}, n=count(), least=min("x")) -> groups
now -> aggregate(by={finer}, n=count()) -> finer
now -> rename(d="{first}") -> latest(by={renamed}, order="x") -> last
all -> aggregate(by={on}, n=count(), spent=sum("x")) -> totals
all -> reduce_keyed(lambda x, y: x if x.x > y.x else y, by={on}, commutative=True) -> greatest
a -> join(right=b, on={on}, how="left") -> aggregate(by={on}, n=count("y")) -> padded
a -> join(right=b, on={on}, how="semi") -> join(right=b, on={on}) -> met
"""


def keys(names: list[str]) -> list[dict[str, Any]]:
    """A key without nulls, one for a null in each place, and one of nulls alone."""
    full = {name: LIKE_NULL[TYPES[name]] for name in names}
    return [full, *({**full, name: None} for name in names), dict.fromkeys(names)]


@pytest.mark.parametrize("on", [["c0"], ["c3"], list(TYPES)[:9], list(TYPES)])
def test_a_null_is_a_key_of_its_own(on: list[str], spark: SparkSession) -> None:
    schema = ", ".join(f"{name} {TYPES[name]}" for name in on)
    text = PROGRAM.format(on=on, finer=["x", *on], first=on[0], renamed=["d", *on[1:]])
    left = [{**key, "x": x} for x, key in enumerate(keys(on) * 2)]
    right = [{**key, "y": None if y == 1 else y} for y, key in enumerate(keys(on))]
    ticks = [{"a": left[:-2], "b": right[1:]}, {"a": left[-2:], "b": right[:1]}, {"a": left[:3]}]
    of = program(text, {"a": f"{schema}, x long", "b": f"{schema}, y long"}, ticks)
    assert_same(of, ticks, [(1, 1, 1), (3,), (1, 2)], spark)


@pytest.mark.parametrize("item", ["(long, string)", "k long, v string"])
def test_what_is_new_among_items_with_nulls(item: str, spark: SparkSession) -> None:
    text = "d = a -> unique(); d -> out; d -> [pos]x; b -> [neg]x; x = difference() -> new"
    rows: list[Any] = [[0, ""], [None, ""], [0, None], [None, None], [0, ""]]
    if not item.startswith("("):
        rows = [{"k": k, "v": v} for k, v in rows]
    ticks = [{"a": rows, "b": rows[:1]}, {"a": rows, "b": rows[1:4]}, {"a": rows}]
    of = program(text, dict.fromkeys("ab", item), ticks)
    assert_same(of, ticks, [(1, 1, 1), (3,)], spark)
