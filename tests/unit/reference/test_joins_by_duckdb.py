"""Joins with a condition, and in time: the definitions beside DuckDB's joins, on random rows."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import duckdb
import pytest

from hydro_core import Flow

HOWS = ("inner", "left", "right", "outer", "semi", "anti")
WHERES = {
    "l.v < r.w": "l.v < r.w",
    "l.v <= r.w and r.w <= l.v + 2": "r.w between l.v and l.v + 2",
    "l.m == r.m or l.v == 3": "l.m is not distinct from r.m or l.v = 3",
}
"""Conditions as programs write them, for rows without nulls where they compute, and in SQL."""
ONS = {
    'on={"k": "ref"}, ': "l.k is not distinct from r.ref and",
    "": "",
}
SCHEMAS = {"l": "k long, v long, m string", "r": "ref long, w long, m string"}


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def rows(seed: int, db: duckdb.DuckDBPyConnection) -> dict[str, list[dict[str, Any]]]:
    """Rows of both sides: keys and texts may be null, rows come twice."""
    rng = Random(seed)
    key = lambda: rng.choice((None, 1, 2, 3))  # noqa: E731
    text = lambda: rng.choice((None, "a", "b"))  # noqa: E731
    number = lambda: rng.randint(0, 6)  # noqa: E731
    sizes = [rng.choice((0, 1, 12)) for _ in "lr"]
    made = {
        "l": [{"k": key(), "v": number(), "m": text()} for _ in range(sizes[0])],
        "r": [{"ref": key(), "w": number(), "m": text()} for _ in range(sizes[1])],
    }
    kinds = {"long": "bigint", "string": "varchar"}
    for name, of in made.items():
        columns = [part.split() for part in SCHEMAS[name].split(", ")]
        ddl = ", ".join(f"{column} {kinds[kind]}" for column, kind in columns)
        db.execute(f"create or replace table {name} ({ddl})")
        for row in of:
            db.execute(f"insert into {name} values (?, ?, ?)", list(row.values()))
    return made


def ours(program: str, ticks: dict[str, list[dict[str, Any]]]) -> list[str]:
    [tick] = Flow.parse(program).run([ticks], schemas=SCHEMAS)
    return sorted(repr(tuple(row.values())) for row in tick["out"])


def theirs(query: str, db: duckdb.DuckDBPyConnection) -> list[str]:
    return sorted(map(repr, db.execute(query).fetchall()))


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("where", WHERES)
@pytest.mark.parametrize("on", ONS)
def test_a_condition_as_in_sql(
    on: str, where: str, how: str, db: duckdb.DuckDBPyConnection
) -> None:
    program = f'l -> join(right=r, {on}how="{how}", suffix="_r", where=lambda l, r: {where}) -> out'
    condition = f"{ONS[on]} ({WHERES[where]})"
    for seed in range(6):
        ticks = rows(seed, db)
        if how in ("semi", "anti"):
            query = f"select * from l {how} join r on {condition}"
        else:
            keys = "coalesce(l.k, r.ref), " if on else "l.k, "
            right = "r.w, r.m" if on else "r.ref, r.w, r.m"
            sql = "full" if how == "outer" else how
            query = f"select {keys}l.v, l.m, {right} from l {sql} join r on {condition}"
        assert ours(program, ticks) == theirs(query, db), seed


WAYS = {
    "": ("r.w <= l.v", "r.w desc"),
    'direction="forward", ': ("r.w >= l.v", "r.w"),
    'direction="nearest", ': ("true", "abs(r.w - l.v), r.w > l.v, r.w desc"),
    "within=1, ": ("r.w <= l.v and l.v - r.w <= 1", "r.w desc"),
    'within=1, direction="nearest", ': ("abs(r.w - l.v) <= 1", "abs(r.w - l.v), r.w > l.v"),
}


@pytest.mark.parametrize("how", ["left", "inner"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("on", ONS)
def test_the_nearest_as_the_first_in_an_order(
    on: str, way: str, how: str, db: duckdb.DuckDBPyConnection
) -> None:
    program = (
        f'l -> join_asof(right=r, {on}{way}at="v", since="w", how="{how}", suffix="_r") -> out'
    )
    condition, order = WAYS[way]
    for seed in range(6):
        ticks = rows(seed, db)
        right = "r.w, r.m" if on else "r.ref, r.w, r.m"
        # The greatest row: its columns in their order, nulls last when descending.
        ties = "r.ref desc nulls last, r.w desc, r.m desc nulls last"
        query = (
            f"select l.k, l.v, l.m, {right} from l {how} join r on {ONS[on]} {condition} "
            f"qualify row_number() over (partition by l.rowid order by {order}, {ties}) = 1"
        )
        assert ours(program, ticks) == theirs(query, db), seed


@pytest.mark.parametrize("how", ["left", "inner"])
def test_an_asof_join(how: str, db: duckdb.DuckDBPyConnection) -> None:
    program = (
        f'l -> join_asof(right=r, on={{"k": "ref"}}, at="v", since="w", how="{how}", suffix="_r")'
    )
    for seed in range(6):
        ticks = rows(seed, db)
        ticks["r"] = [
            dict(row)
            for row in {(r["ref"], r["w"]): r for r in ticks["r"] if r["ref"] is not None}.values()
        ]
        db.execute("delete from r")
        for row in ticks["r"]:
            db.execute("insert into r values (?, ?, ?)", list(row.values()))
        query = (
            f"select l.k, l.v, l.m, r.w, r.m from l asof {how} join r on l.k = r.ref and l.v >= r.w"
        )
        assert ours(f"{program} -> out", ticks) == theirs(query, db), seed
