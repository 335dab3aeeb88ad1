"""Rules mean the same as operators, on the reference and Spark, and as their definition says."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from hydro_core.delivery import delivered
from hydro_core.engines import Options
from hydro_core.errors import HydroError
from hydro_core.lang.rules.translate import graph_of_rules, read_rules
from hydro_core.running import run_json
from tests.laws.dedalus_programs import RuleCase, rule_case
from tests.support.rules_by_definition import RulesByDefinition
from tests.support.selection import mostly_slow

Outputs = list[dict[str, list[Any]]]
CASES = 50
AT_LEAST = 40
"""So many of them have to be programs, lest the law judges errors."""


def as_operators(case: RuleCase, options: Options) -> Outputs:
    graph = graph_of_rules(read_rules(case.text))
    return run_json(graph, {}, case.ticks, options)


def by_definition(case: RuleCase) -> Outputs:
    """By trying all ways in which bodies hold; what is sent arrives in the next tick."""
    rules = read_rules(case.text)
    run, sent, found = RulesByDefinition(rules), dict[str, set[Any]](), []
    for number, tick in enumerate(case.ticks):
        given = {name: {tuple(row.values()) for row in rows} for name, rows in tick.items()}
        arriving = {n: given.get(n, set()) | sent.get(n, set()) for n in {*given, *sent}}
        holds, sent = run.tick(number, arriving)
        found.append(
            {
                name: [
                    dict(zip(rules.predicates[name].columns, row, strict=True))
                    for row in sorted(holds[name])
                ]
                for name in rules.outputs
            }
        )
    return found


def cases(seed: str, count: int, *, asynchronous: bool = False) -> list[RuleCase]:
    """Programs that are right: a cycle through a negation is none of these."""
    found = []
    for number in range(count):
        case = rule_case(Random(f"{seed}/{number}"), asynchronous=asynchronous)
        try:
            read_rules(case.text)
        except HydroError as error:
            assert error.code == "cycle", f"{error}\n{case.text}"  # noqa: PT017 - what is left out
            continue
        found.append(case)
    return found


def test_operators_give_what_rules_say() -> None:
    found = cases("rules", CASES, asynchronous=True)
    assert len(found) >= AT_LEAST
    gave = 0
    for case in found:
        written = as_operators(case, Options(optimized=False))
        gave += sum(map(len, written[-1].values()))
        assert by_definition(case) == written, case.text + json.dumps(case.ticks)
    assert gave > 4 * len(found)


@pytest.mark.parametrize("number", mostly_slow(range(8), (0, 7)))
def test_optimized_rules_give_the_same(number: int) -> None:
    """The first and the last have cycles, negations, aggregates, and are planned in a second; each
    of the others takes half a minute.
    """
    case = cases("plans", 8, asynchronous=True)[number]
    written = as_operators(case, Options(optimized=False))
    assert as_operators(case, Options()) == written, case.text + json.dumps(case.ticks)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("seed", "as_range"),
    [("spark/c", False), pytest.param("spark/True", True, marks=pytest.mark.slow)],
)
def test_rules_on_spark(seed: str, as_range: bool, spark: SparkSession) -> None:
    """One program: a recursion is some Spark jobs a round, and a round of each tick."""
    for case in cases(seed, 1, asynchronous=True):
        written = as_operators(case, Options(optimized=False))
        found = as_operators(case, Options("spark", spark=spark, as_range=as_range))
        assert found == written, case.text + json.dumps(case.ticks)


@pytest.mark.spark
@pytest.mark.slow
def test_many_rules_on_spark(spark: SparkSession) -> None:
    for case in cases("many", 60, asynchronous=True):
        written = as_operators(case, Options(optimized=False))
        found = as_operators(case, Options("spark", spark=spark))
        assert found == written, case.text + json.dumps(case.ticks)


def test_a_cycle_that_reads_many_streams_is_optimized() -> None:
    """Each of them is a variable of the rules about the cycle."""
    count = 12
    inputs = "".join(f".input e{n}(a: long, b: long)\n" for n in range(count))
    rules = "".join(f"p(a, c) :- p(a, b), e{n}(b, c).\n" for n in range(count))
    case = RuleCase(
        f"{inputs}.output p\np(a, b) :- e0(a, b).\n{rules}",
        [{f"e{n}": [{"a": n, "b": n + 1}] for n in range(count)}],
    )
    (found,) = as_operators(case, Options())
    assert [row["b"] for row in found["p"]] == list(range(1, count + 1))


GRAPH = """
.input edge(src: long, dst: long)
.output path, sink, degree
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
sink(y) :- edge(_, y), !edge(y, _).
degree(x, n: count(y), last: max(y)) :- path(x, y), x != y.
"""
QUERIES = {
    "path": "with recursive p(x, y) as (select src, dst from edge union select x, dst from p, edge "
    "where y = src) select x, y from p order by all",
    "sink": "select distinct dst from edge where dst not in (select src from edge) order by all",
    "degree": "with recursive p(x, y) as (select src, dst from edge union select x, dst from p, "
    "edge where y = src) select x, count(*), max(y) from p where x != y group by x order by all",
}


def test_another_engine_agrees_on_recursion_negation_and_aggregates() -> None:
    for seed in range(6):
        random = Random(f"duckdb/{seed}")
        edges = [(random.randint(0, 9), random.randint(0, 9)) for _ in range(random.randint(3, 25))]
        rows = [{"src": a, "dst": b} for a, b in edges]
        graph = graph_of_rules(read_rules(GRAPH))
        (found,) = run_json(graph, {}, [{"edge": rows}], Options())
        with duckdb.connect() as database:
            database.execute("create table edge (src bigint, dst bigint)")
            database.executemany("insert into edge values (?, ?)", edges)
            for name, query in QUERIES.items():
                expected = database.execute(query).fetchall()
                assert [tuple(row.values()) for row in found[name]] == expected


def test_deliveries_by_a_seed_are_a_schedule_that_every_engine_follows() -> None:
    """What arrives by chance is told as ticks, and the rules go the same way by them."""
    arrived = 0
    for number, case in enumerate(cases("async", 15, asynchronous=True)):
        rules = read_rules(case.text)
        if not rules.asynchronous:
            continue
        graph, schemas, ticks = delivered(rules, {}, case.ticks, number)
        again = delivered(rules, {}, case.ticks, number)[2]
        assert again == ticks
        arrived += sum(len(tick.get(name, ())) for tick in ticks for name in rules.asynchronous)
        outputs = run_json(graph, schemas, ticks, Options(optimized=False))
        run = RulesByDefinition(rules)
        for place, tick in enumerate(ticks):
            given = {name: {tuple(row.values()) for row in rows} for name, rows in tick.items()}
            _, sent = run.tick(place, given)
            for name in rules.asynchronous:
                rows = {tuple(row.values()) for row in outputs[place][f"{name}_async"]}
                assert sent.get(name, set()) == rows
    assert arrived > 10
