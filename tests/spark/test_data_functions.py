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
from hydro_core.functions.library.regex import RE
from hydro_core.functions.library.registry import DATA_FUNCTIONS
from hydro_core.functions.tree import Fn
from hydro_core.lang.resolve import parse
from hydro_core.running import run_json
from hydro_core.spark.lower.explained import runtime
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.json import from_json
from tests.spark.differential import compare
from tests.support.functions import text
from tests.support.random_expressions import TEXTS

pytestmark = pytest.mark.spark

_OVERLAPPING = [f"(r.t or 'a') + 'aaaa', 'aa', {count}" for count in (1, 2, -1, -2)]
CALLS: Mapping[str, Sequence[str]] = {
    "coalesce": ("r.a, r.b, 0", "r.t, r.u", "r.f, r.g, -0.0"),
    "greatest": ("r.a, r.b", "r.f, r.g", "r.t, r.u", "r.d, r.e", "r.f, 0"),
    "least": ("r.a, r.b", "r.f, r.g", "r.t, r.u", "-0.0, r.f"),
    "try_int": ("r.t", "r.u"),
    "try_float": ("r.t", "r.u"),
    "try_date": ("r.t", "r.u"),
    "sha256": ("r.t", "r.y"),
    "md5": ("r.t", "r.y"),
    "crc32": ("r.t", "r.y"),
    "base64_encode": ("r.t", "r.y", "(r.t or 'é') * 60"),
    "base64_decode": ("base64_encode(r.t)", "base64_encode(r.y)"),
    "uuid5": ("'6ba7b810-9dad-11d1-80b4-00c04fd430c8', r.t",),
    "url_part": ("r.u, 'host'", "r.u, 'path'", "r.t, 'query'"),
    "url_param": ("r.u, 'a'", "'?a=1&aXbX=2', r.t"),
    "levenshtein": ("r.t, r.u",),
    "soundex": ("r.t", "r.u"),
    "regexp_like": (r"r.t, r'\d'",),
    "regexp_count": (r"r.t, r'(?i)[a-c]'",),
    "regexp_extract": (r"r.u, r'(\w+)\W'", "r.t, '.', 0"),
    "regexp_extract_all": (r"r.t, r'(\w)'",),
    "regexp_replace": (r"r.t, r'(\w)', r'<\1>'",),
    "nullif": ("r.a, r.b", "r.f, r.g", "r.t, ''"),
    "try_decimal": ("r.t", "r.t, 5, 1"),
    "try_boolean": ("r.t", "r.u"),
    "try_timestamp": ("r.t", "r.u, '%Y-%m-%d'"),
    "sha1": ("r.t", "r.y"),
    "sha512": ("r.t", "r.y"),
    "xxhash64": ("r.t", "r.y", "sha256(r.t)", "(r.t or 'é') * 9", "r.y, seed=1"),
    "split_part": ("r.u, '/', 3", "r.t, 'a', -1", "r.t, '', 1"),
    "substring_index": ("r.u, '/', 2", "r.u, '/', -1", "r.t, 'a', 1", *_OVERLAPPING),
    "lpad": ("r.t, 6", "r.t, 5, 'ab'", "r.t, 2"),
    "rpad": ("r.t, 6", "r.t, 5, 'ab'", "r.t, 0"),
    "initcap": ("r.t", "r.u"),
    "translate": ("r.t, 'aé b', 'xy'", "r.u, '/:', ''", r"r.t, 'a', '\0'"),
    "concat_ws": ("', ', r.t, r.u", "r.t, r.u, 'x'"),
    "parse_json": ("to_json(r), 'i long, t string, w timestamp, y binary'",),
    "try_parse_json": ("r.t, 'double'", "to_json((r.a, r.f)), '(long, double)'"),
    "to_json": ("r", "[r.t, r.u]", "(r.w, r.d, r.n, r.y)"),
    "get_json_object": ("to_json({'a': [r]}), '$.a[0].t'", "r.t, '$'"),
    "date_diff": ("'day', r.d, r.e", "'month', r.d, r.e", "'hour', r.w, from_zone(r.n, 'UTC')"),
    "add_months": ("r.e, 13", "r.n, -1"),
    "last_day": ("r.d", "r.w", "r.n"),
    "quarter": ("r.d", "r.w", "r.n"),
    "to_zone": ("r.v, 'America/New_York'", "r.v, 'Asia/Kathmandu'", "r.v, 'Pacific/Apia'"),
    "from_zone": ("r.n, 'Europe/Berlin'", "r.n, 'Pacific/Apia'"),
    "window_start": (
        *(f"r.{column}, '{size}'" for column in "dwn" for size in ("1d", "2w", "3d", "1mo", "1y")),
        *(
            "r.e, '5y'",
            "r.w, '15m'",
            "r.n, timedelta(seconds=7)",
            "r.w, '1h', '7m'",
            "r.w, '7m', '1h'",
        ),
        *("r.v, '1d', zone='Europe/Berlin'", "r.v, '1mo', zone='America/New_York'"),
    ),
    "hop": ("r.v, '1h', '20m'", "r.e, '7d', '1d'", "r.v, '2d', '1d', zone='Europe/Berlin'"),
    "date_trunc": tuple(
        f"'{unit}', r.{column}"
        for column, units in (
            ("d", ("year", "quarter", "month", "week", "day")),
            ("w", ("quarter", "week", "hour", "second")),
            ("n", ("week", "minute")),
            ("v, 'Europe/Berlin'", ("day", "hour", "month")),
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
    " w timestamp, v timestamp, n timestamp_ntz"
)
_WORDS = [
    *(" 7\n", "1_0", "\u0663", "x7", "\xa0 Yes", "unknown", "2024-W09", "20240229", "\u2003t", "-"),
    *("42", "-7", "1e3", "nan", "2026-02-29", "2024-02-29", "Ashcraft", "https://x.org/p?a=1&b"),
]
_HOSTILE = [
    *(
        "I\u0307",
        "\u1e9e",
        "\ufb01x",
        "\u01c4 \u01c5",
        "a\0b",
        "\0",
        "\x1c7",
        "\x85 7",
        "\u00ad",
        "\ufeff",
        r'"\ud800"',
    ),
    *(
        "\U0001d7d9",
        "\u00b2",
        "\u00bd",
        "+-1",
        "0x10",
        "1e400",
        "-1e-400",
        "-0.0",
        "1.",
        ".5",
        "1__0",
        "_1",
    ),
    *(
        "infinity",
        "-nan",
        "10000-01-01",
        "2024-1-1",
        "2024-060",
        "2024-02-28",
        "2024-02-29T24:00",
        "0001-01-01T00:00+14:00",
    ),
    *(
        "9999-12-31T23:59-14:00",
        "2024-12-31T23:59:60Z",
        "2024-02-29T00:00-23:59:59",
        "2024-02-29 00:00+14:00",
    ),
    *(
        '{"a":1',
        '{"a": NaN}',
        '{"a":1,"a":2}',
        "[1e400]",
        "\ufeff{}",
        r'{"a":"\u0000"}',
        "null",
    ),
    *(
        "YWJj\n",
        "YWJ=",
        "====",
        "_-8=",
        "%zz",
        "a%2",
        "//h/p",
        "http://h:port/",
        "a://b:99999",
        "http://[v1.x]/",
    ),
    *(
        "http://ex.org/%E4?a=%zz&a=%C3%A9",
        "http://user:p@[::1]:80/p;x?y#z",
        "https://x\u2100y/",
        "?a=1;a=2&a",
    ),
    *(
        "\u017foundex",
        "\u212aelvin",
        "\u212bNG",
        "\u03b1\u03a3.",
        "\u0149",
        "\u0390",
        "a\u0345",
        "x" * 300,
    ),
]
"""Each is in a row of its own."""
VALUES: Mapping[str, Sequence[Any]] = {
    "t": [*TEXTS, *_WORDS, *_HOSTILE],
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
    "v": [
        *(None, "2026-03-29T00:59:59Z", "2026-10-25T01:30:00Z", "1900-01-01T00:00:00Z"),
        # Apia left out a day, Lord Howe sets its clocks by half an hour
        *("2011-12-30T09:59:59Z", "2011-12-30T10:00:00Z", "2026-04-04T14:45:00Z"),
        *("2026-10-03T15:30:00Z", "1883-11-18T17:00:00Z", "2100-07-01T00:00:00Z"),
    ],
    "n": [None, "2024-02-29T23:59:59.999999", "2026-03-29T02:30:00", "2011-12-30T12:00:00"],
}
ROWS = 200


IN_PYTHON = {
    *("base64_decode", "uuid5", "url_part", "url_param", "try_float", "try_decimal"),
    *("try_timestamp", "initcap", "concat_ws", "nullif", "parse_json", "try_parse_json"),
    *("to_json", "get_json_object", "date_diff", "add_months", "to_zone", "from_zone", "hop"),
    *(name for name in DATA_FUNCTIONS if name.startswith("regexp_")),
}
"""What has no expression of Spark."""


def rows(count: int) -> list[dict[str, Any]]:
    random, hostile = Random(0), dict(enumerate(_HOSTILE))
    return [
        {
            "i": i,
            **{name: random.choice(values) for name, values in VALUES.items()},
            **({"t": hostile[i]} if i in hostile else {}),
        }
        for i in range(count)
    ]


def test_what_has_an_expression_of_spark_gives_it(spark: SparkSession) -> None:
    item, by_way = parse_ddl(SCHEMA), dict[str, list[Fn]]()
    for name, forms in CALLS.items():
        for args in forms:
            fn = text(f"lambda r: {name}({args})")
            by_way.setdefault(name if runtime(fn, (item,)).how == "column" else "", []).append(fn)
    assert set(CALLS) - set(by_way) == IN_PYTHON
    functions = [fn for name, found in by_way.items() if name for fn in found]
    given = [from_json(row, item) for row in rows(ROWS)]
    problems, compared = compare(spark, SCHEMA, given, functions)
    assert not problems, "\n".join({p.partition(" of {")[0]: p for p in problems}.values())
    assert compared > 0.9 * ROWS * len(functions)


def test_spark_gives_what_the_interpreter_gives(spark: SparkSession) -> None:
    assert set(CALLS) == set(DATA_FUNCTIONS)
    assert set(EXPRESSIONS) == set(RE)
    calls = [f"{name}({args})" for name, forms in CALLS.items() for args in forms]
    calls += EXPRESSIONS.values()
    columns = ", ".join(f"c{i}=lambda r: {call}" for i, call in enumerate(calls))
    graph = parse(f'a = source("{SCHEMA}")\na -> select("i", {columns}) -> out\n')
    given = rows(ROWS)
    found = {
        engine: run_json(graph, {}, [{"a": given}], Options(engine, spark=spark))[0]["out"]
        for engine in ("reference", "spark")
    }
    assert len(found["reference"]) == ROWS
    for i, call in enumerate(calls):
        mine, sparks = (
            [row[f"c{i}"] for row in found[engine]] for engine in ("reference", "spark")
        )
        # as texts: zeros have signs
        assert list(map(repr, mine)) == list(map(repr, sparks)), call
        assert any(value is not None for value in mine), call
