"""Every entry of the library that has an expression of Spark: it gives exactly what Python gives.

The calls are made from the entries, so an entry needs no line here: each is given arguments of the
kinds that it takes, over rows of values at the edges.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, product
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hydro_core.errors import TypeProblem
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.kinds import TIMEDELTA
from hydro_core.functions.library.entry import Parameter
from hydro_core.functions.library.registry import FUNCTIONS, members_of
from hydro_core.functions.tree import Const, Expr, Fn, Make, Op, Param, Part
from hydro_core.spark.lower.explained import runtime
from hydro_core.types.ddl import parse_ddl
from tests.spark.differential import compare
from tests.support.calls import DDL as USED_DDL
from tests.support.calls import ITEM as USED
from tests.support.calls import VALUES, uses
from tests.support.random_expressions import DATES, FLOATS, LONGS, MOMENTS, SMALL, TEXTS
from tests.support.strict import strictly

pytestmark = pytest.mark.spark

ROWS, FORMS, AT_ONCE, MOST = 250, 5, 50, 60
COLUMNS: Mapping[str, tuple[str, Sequence[Any]]] = {
    "t": ("string", [*TEXTS, "it's a Title", "x=1=2", "aXbXc", "snake_case", "I", "αβγ"]),
    "u": ("string", [*"abX", "", "=", " ", "2024-02-29", "2023-02-29", "0000-01-01", None]),
    "v": (
        "string",
        [
            *("2024-02-29", "0001-01-01", "9999-12-31", "2024-2-9", "2024-02-30", "20240229"),
            *("2024-02-29 23:59:59", "2024-02-29 24:00:00", "2024-02-29 12:30:01.000001"),
            *(" 2024-02-29", "2024-02-29 ", "0000-12-31", "x", "\uff12024-02-29", None),
        ],
    ),
    "a": ("long", [*LONGS, 719_163, 3_652_059, 3_652_060]),
    "s": ("short", [0, 1, -1, 32767, -32768, None]),
    "f": ("double", [*FLOATS, 2.0, 1e15 + 0.5, -1e15 - 0.5, 4503599627370497.5]),
    "m": ("decimal(10,2)", [*SMALL, None]),
    "y": ("binary", [b"", b"\x00\xff", b"abc", None]),
    "d": ("date", [*DATES, dt.date(2024, 12, 30), dt.date(2021, 1, 3)]),
    "w": ("timestamp", [*MOMENTS, dt.datetime(9999, 12, 31, 23, 59, 59, 999999, dt.UTC)]),
    "n": ("timestamp_ntz", [dt.datetime(2024, 2, 29, 1, 2, 3, 4), dt.datetime(1, 1, 1), None]),
    "z": ("array<string>", [[], ["a"], ["a", "b,", ""], ["a", None], None]),
}
DDL = ", ".join(f"{name} {ddl}" for name, (ddl, _) in COLUMNS.items())
ITEM = parse_ddl(DDL)
ROW = Param("r")
TEXT_CONSTANTS = ("", "a", "X", "ab", " ", "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%d.%m. %H:%M")


def column(name: str) -> Expr:
    return Part(ROW, name, True)


ARGUMENTS: Mapping[str, Sequence[Expr]] = {
    "a string": [column("u"), column("v"), column("t"), *map(Const, TEXT_CONSTANTS)],
    "a string, or a tuple of strings": [
        *(column("u"), Const("a"), Const(("a", "X")), Make("tuple", (column("u"), Const("1")))),
    ],
    "a whole number": [column("a"), *map(Const, (0, 1, 2, -1, 7))],
    "a number": [column("f"), column("a"), column("s")],
    "a value with parts": [column("z"), column("t")],
    "a time zone": [Const(dt.UTC)],
    "a date or a time": [column("d"), column("w"), column("n")],
    "a string, or bytes": [column("t"), column("y")],
    "a unit of time": [Const(unit) for unit in ("year", "quarter", "month", "week", "day", "hour")],
    "a length of time": [Const("1d"), Const("1mo"), Const("90m"), Const(dt.timedelta(weeks=2))],
}
SUBJECTS: Sequence[tuple[Expr, Any]] = [
    *((column(name), parse_ddl(ddl)) for name, (ddl, _) in COLUMNS.items()),
    (Op("-", (column("w"), Const(dt.datetime(2000, 1, 1, tzinfo=dt.UTC)))), TIMEDELTA),
]


def rows() -> list[dict[str, Any]]:
    random = Random(0)
    return [
        {name: random.choice(values) for name, (_, values) in COLUMNS.items()} for _ in range(ROWS)
    ]


def given(takes: Sequence[Parameter]) -> Iterator[tuple[Expr, ...]]:
    """Arguments for all the parameters, then for fewer of them."""
    least = sum(not p.optional for p in takes)
    for count in range(least, len(takes) + 1):
        choices = []
        for parameter in takes[:count]:
            found = ARGUMENTS.get(parameter.wanted, [])
            fixed = [a for a in found if isinstance(a, Const)]
            choices.append(fixed if parameter.given_as == "constant" else found)
        yield from product(*choices)


def calls() -> dict[str, list[Expr]]:
    """By what is called: calls of it."""
    found: dict[str, list[Expr]] = {}
    for subject, kind in SUBJECTS:
        for name, entry in members_of(kind).items():
            if entry.column is not None:
                forms: list[Expr] = (
                    [Part(subject, name, True)]
                    if entry.takes is None
                    else [
                        Op(f".{name}", (subject, *args))
                        for args in islice(given(entry.takes), MOST)
                    ]
                )
                if entry.gives == TIMEDELTA:
                    forms = [Op(".total_seconds", (form,)) for form in forms]
                found.setdefault(f"{kind}.{name}", []).extend(forms)
    for name, builtin in FUNCTIONS.items():
        if builtin.column is not None:
            found[name] = [Op(name, args) for args in islice(given(builtin.takes), MOST)]
    return found


def compiled(trees: Sequence[Expr]) -> list[Fn]:
    """The functions among them that have columns."""
    found = []
    for tree in trees:
        fn = function_of(tree, ("r",))
        try:
            if runtime(fn, (ITEM,)).how == "column":
                found.append(fn)
        except TypeProblem:
            continue
    return found


def test_what_has_an_expression_gives_what_python_gives(spark: SparkSession) -> None:
    random = Random(1)
    functions = {name: compiled(trees) for name, trees in calls().items()}
    assert [name for name, found in functions.items() if not found] == []
    chosen = list(
        chain.from_iterable(
            random.sample(found, min(FORMS, len(found))) for found in functions.values()
        )
    )
    problems = list[str]()
    for start in range(0, len(chosen), AT_ONCE):
        told, compared = compare(spark, DDL, rows(), chosen[start : start + AT_ONCE])
        problems += told
        assert compared > ROWS
    # A line for each function.
    assert not problems, "\n".join({p.partition(" of {")[0]: p for p in problems}.values())


def test_a_strict_use_gives_null_for_any_null(spark: SparkSession) -> None:
    """That it does by the definitions, `tests/unit/functions/test_null_rules.py` says."""
    functions = []
    for op in uses():
        plain, strict = (function_of(tree, ("r",)) for tree in (op, strictly(op)))
        if runtime(plain, (USED,)).how == "column":
            assert runtime(strict, (USED,)).how == "column", op.name
            functions.append(strict)
    given = [VALUES, *({**VALUES, name: None} for name in VALUES)]
    assert len(functions) > 100
    for start in range(0, len(functions), AT_ONCE):
        chosen = functions[start : start + AT_ONCE]
        problems, compared = compare(spark, USED_DDL, given, chosen)
        assert problems == []
        assert compared > len(chosen) * len(given) * 0.9, "Spark knows it, and asks nobody"
