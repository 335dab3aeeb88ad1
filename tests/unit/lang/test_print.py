"""`parse(to_text(graph)) == graph`, and the text is what a person would write."""

from __future__ import annotations

from typing import Any

import pytest

from hydro_core.catalog.registry import CATALOG
from hydro_core.catalog.spec import OpSpec
from hydro_core.errors import ProgramError
from hydro_core.lang.print import names_in, to_text
from hydro_core.lang.resolve import parse
from tests.unit.shared import or_skipped, vectors

CHAT = """\
add_member -> persist() -> [0]broadcast
messages -> persist() -> [1]broadcast
broadcast = cross() -> delta() -> notify
"""
COLUMNS = """\
inp = source("k string, v long", fds={"k": "v"})
inp -> select("k", w=lambda r: r.v + 1) -> rename(key="k") -> drop("w") -> out
"""


def again(text: str) -> str:
    graph = parse(text)
    printed = to_text(graph)
    assert parse(printed) == graph
    return printed


@pytest.mark.parametrize("op", CATALOG.values(), ids=lambda op: op.name)
def test_every_operator(op: OpSpec) -> None:
    again(op.example.program)


@pytest.mark.parametrize(
    "vector", or_skipped(vectors("dfir", "fuzz", "ordered")), ids=lambda v: v.get("name", "?")
)
def test_vectors(vector: dict[str, Any]) -> None:
    try:
        again(vector["program"])
    except ProgramError as error:
        assert error.code in (vector["error"], *vector.get("error_alternatives", ()))  # noqa: PT017


@pytest.mark.parametrize(
    "text",
    [
        CHAT,
        'orders -> join(right=customers, on="custkey", how="left", suffix="_r") -> out\n',
        COLUMNS,
        'inp -> aggregate(by="k", n=count(), t=sum(lambda r: r.v), m=max_by("a", "b")) -> out\n',
        'inp -> latest(by=["k", "l"], order="at") -> out\n',
        'inp -> over(by="k", order=["at", "v"], descending=True, q=ntile(4)) -> out\n',
        'inp -> over(order="at", a=lag("v"), b=lag("v", 2), c=lead("v", default=0)) -> out\n',
        'inp -> over(order="at", a=running(sum("v"), peers=True), b=whole(count())) -> out\n',
        'inp -> over(order="at", a=rolling(sum("v"), rows=7)) -> out\n',
        'inp -> over(order="at", a=rolling(avg("v"), within=timedelta(days=6))) -> out\n',
        'inp -> over(order="at", s=session(gap=timedelta(seconds=1800))) -> out\n',
        "inp -> over(by=lambda r: r.k, order=lambda r: -r.v, a=lag(lambda r: r.v * 2)) -> out\n",
        'inp -> top(3, by="k", order="v", descending=True, ties=True) -> out\n',
        "a -> fold([], lambda s, x: s + [x], commutative=True, associative=True) -> out\n",
        'p = a -> partition(lambda x: x, ["a b", "c"])\np["a b"] -> one\np[c] -> two\n',
        "a -> null()\nnull() -> out\n",
        'source_iter([(1, None), (2, "x")], schema="(long, string)") -> out\n',
        "a -> sort_by_key(lambda x: -x, descending=True) -> limit(3) -> out\n",
        "x = a -> sort()\nx -> one\nx -> two\n",
        'a -> map(f, returns="long") -> out\n',
        'a -> select("k", w=typed("long", lambda r: r.v), x=lambda r: 1) -> out\n',
        'a -> with_columns(t=typed("(long, string)", lambda r: r.t[:r.n])) -> out\n',
        'a -> aggregate(m=max_by(typed("array<long>", lambda r: r.v), "b")) -> out\n',
        'a -> latest(by="k", order=typed("k long, v string", lambda r: r.v)) -> out\n',
    ],
)
def test_as_people_write_it(text: str) -> None:
    bindings = {"f": abs} if "map(f" in text else {}
    graph = parse(text, bindings=bindings)
    assert to_text(graph) == text


def test_ids_that_no_text_would_generate() -> None:
    graph = parse("map_7 = a -> map(lambda x: x)\nmap_7 -> sort() -> out\nx = b -> sort() -> more")
    assert parse(to_text(graph)) == graph


def test_values() -> None:
    again(
        "source_iter([(1.5, float('nan'), float('-inf'), b'x', Decimal('1.50'), date(2024, 1, 2))"
        ", (None, None, None, None, None, None)]) -> a\n"
        "source_iter([{'t': datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc), 'é': 'ü\"\\n'}])"
        " -> b"
    )


def test_names_that_the_reader_must_bind() -> None:
    def loop(x: list[int]) -> int:
        total = 0
        for part in x:
            total += part
        return total

    graph = parse("a -> map(loop) -> map(lambda x: loop([x])) -> out", bindings={"loop": loop})
    assert names_in(graph) == ("loop",)
    assert parse(to_text(graph), bindings={"loop": loop}) == graph
