"""The functions that Python's builtins lack give on Spark what the interpreter gives: values at the
edges, and nulls, through a whole program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hydro_core.engines import Options
from hydro_core.functions.library.data import DATA_FUNCTIONS
from hydro_core.functions.library.regex_types import OF_RE
from hydro_core.lang.resolve import parse
from hydro_core.running import run_json
from tests.support.random_expressions import TEXTS

pytestmark = pytest.mark.spark

CALLS: Mapping[str, Sequence[str]] = {
    "coalesce": ("r.a, r.b, 0", "r.t, r.u"),
    "greatest": ("r.a, r.b", "r.f, r.g", "r.t, r.u", "r.d, r.e"),
    "least": ("r.a, r.b", "r.f, r.g", "r.t, r.u"),
    "try_int": ("r.t", "r.u"),
    "try_float": ("r.t", "r.u"),
    "try_date": ("r.t", "r.u"),
    "sha256": ("r.t", "r.y"),
    "md5": ("r.t", "r.y"),
    "crc32": ("r.t", "r.y"),
    "base64_encode": ("r.t", "r.y"),
    "base64_decode": ("base64_encode(r.t)", "base64_encode(r.y)"),
    "uuid5": ("'6ba7b810-9dad-11d1-80b4-00c04fd430c8', r.t",),
    "url_part": ("r.u, 'host'", "r.u, 'path'", "r.t, 'query'"),
    "url_param": ("r.u, 'a'", "r.u, r.t"),
    "levenshtein": ("r.t, r.u",),
    "soundex": ("r.t", "r.u"),
    "regexp_like": (r"r.t, r'\d'",),
    "regexp_count": (r"r.t, r'(?i)[a-c]'",),
    "regexp_extract": (r"r.u, r'(\w+)\W'", "r.t, '.', 0"),
    "regexp_extract_all": (r"r.t, r'(\w)'",),
    "regexp_replace": (r"r.t, r'(\w)', r'<\1>'",),
    "date_trunc": tuple(
        f"'{unit}', r.{column}"
        for column, units in (
            ("d", ("year", "quarter", "month", "week", "day")),
            ("w", ("quarter", "week", "hour", "second")),
            ("n", ("week", "minute")),
        )
        for unit in units
    ),
}
EXPRESSIONS: Mapping[str, str] = {
    "re.search": r"(m := re.search(r'(\w)(\W)?', r.t)) and (m.groups(), m.span())",
    "re.match": "re.match('[a-z]', r.t) is None",
    "re.fullmatch": "(m := re.fullmatch('(?P<all>.*)', r.t)) and m.groupdict()",
    "re.finditer": "[m.end() for m in re.finditer('.', r.t or '')]",
    "re.findall": r"re.findall(r'(\w)(\w)', r.t)",
    "re.split": r"re.split(r'\W', r.u)",
    "re.sub": r"re.sub('[a-z]', lambda m: m[0].upper() + str(r.b), r.u)",
}
"""Of functions that give what is no item."""
SCHEMA = (
    "i long, t string, u string, a long, b long, f double, g double, y binary, d date, e date,"
    " w timestamp, n timestamp_ntz"
)
_WORDS = ["42", "-7", "1e3", "nan", "2026-02-29", "2024-02-29", "Ashcraft", "https://x.org/p?a=1&b"]
VALUES: Mapping[str, Sequence[Any]] = {
    "t": [*TEXTS, *_WORDS],
    "u": [*TEXTS, *_WORDS],
    "a": [None, 0, -1, 2**63 - 1, -(2**63)],
    "b": [None, 0, 5],
    "f": [None, 0.0, -0.0, 1.5, "NaN", "Infinity"],
    "g": [None, 0.0, -1.5, "NaN", "-Infinity"],
    "y": [None, "", "AP8=", "YWJj"],
    "d": [None, *(str(d) for d in (date(1, 1, 8), date(2024, 2, 29), date(9999, 12, 31)))],
    "e": [None, "2000-01-01"],
    "w": [
        None,
        *(
            at.isoformat()
            for at in (datetime(1, 1, 8, tzinfo=UTC), datetime(2024, 2, 29, 1, 2, 3, 4, UTC))
        ),
    ],
    "n": [None, "2024-02-29T23:59:59.999999"],
}
ROWS = 200


def test_spark_gives_what_the_interpreter_gives(spark: SparkSession) -> None:
    assert set(CALLS) == set(DATA_FUNCTIONS)
    assert set(EXPRESSIONS) == set(OF_RE)
    calls = [f"{name}({args})" for name, forms in CALLS.items() for args in forms]
    calls += EXPRESSIONS.values()
    columns = ", ".join(f"c{i}=lambda r: {call}" for i, call in enumerate(calls))
    graph = parse(f'a = source("{SCHEMA}")\na -> select("i", {columns}) -> out\n')
    random = Random(0)
    rows = [
        {"i": i, **{name: random.choice(values) for name, values in VALUES.items()}}
        for i in range(ROWS)
    ]
    found = {
        engine: run_json(graph, {}, [{"a": rows}], Options(engine, spark=spark))[0]["out"]
        for engine in ("reference", "spark")
    }
    assert len(found["reference"]) == ROWS
    for i, call in enumerate(calls):
        given = [[row[f"c{i}"] for row in found[engine]] for engine in ("reference", "spark")]
        assert given[0] == given[1], call
        assert any(value is not None for value in given[0]), call
