"""Where a test has said that a value is not None, nothing asks Python about it again."""

from __future__ import annotations

from unittest import mock

import pytest

from hydro_core.functions.tree import Fn
from hydro_core.lang.resolve import parse
from hydro_core.spark.frames.dry import BLANK, dry_run
from hydro_core.spark.functions.columns import predicate_column, to_column, value
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import BOOLEAN

ITEM = parse_ddl("a int, b int, p struct<c: int>, xs array<int>")


def asks(text: str) -> bool:
    """Whether the function as a column asks Python anywhere."""
    fn: Fn = parse(f"a -> map({text}) -> out").named("map")[0].args["f"]
    asked = []
    with mock.patch.object(value, "asked", lambda fn: asked.append(fn) or BLANK), dry_run():
        to_column(fn, [(BLANK, ITEM)], result=BOOLEAN)
        predicate_column(fn, [(BLANK, ITEM)])
    return asked != []


@pytest.mark.parametrize(
    "text",
    [
        "lambda r: r is not None and r.a is not None and r.a > 1",
        "lambda r: r is None or r.a is None or r.a > 1",
        "lambda r: r is not None and r.a == 3 and r.a < 5",
        "lambda r: r.a > 1 if r and r.a else False",
        "lambda r: False if r is None or r['a'] is None else r.get('a') > 1",
        "lambda r: r is not None and r.p is not None and r.p.c is not None and r.p.c > 1",
        "lambda r: r is not None and not (r.a is None or r.b is None) and r.a > r.b",
        "lambda r: r is not None and r.xs is not None and len([x > 1 for x in r.xs if x]) > 2",
    ],
)
def test_what_a_test_has_said_is_not_checked_again(text: str) -> None:
    assert not asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "lambda r: r is not None and r.a > 1",
        "lambda r: r is not None and (r.a is not None or r.b == 1) and r.a > 1",
        "lambda r: r is not None and r.b is not None and r.a > 1",
        "lambda r: r is not None and (r.a is None or r.b == 1) and r.a > 1",
        "lambda r: r is not None and (r.a > 1 if r.a is None else r.b == 2)",
        "lambda r: r is not None and r.a != 3 and r.a < 5",
    ],
)
def test_what_it_has_not_said_is(text: str) -> None:
    assert asks(text)
