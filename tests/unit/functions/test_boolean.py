"""Tests in other words have one form, and tests that only look alike do not."""

from __future__ import annotations

import ast
from collections.abc import Hashable

import pytest

from hydro_core.functions.forms import known_by, stored_form
from hydro_core.functions.read import read_callable, read_function
from hydro_core.types.ddl import parse_ddl

ROW = parse_ddl("n long, m int, f double, s string, p boolean, d date, tags array<string>")


def form_of(text: str) -> Hashable:
    fn = read_function(ast.parse(f"lambda r: {text}", mode="eval").body, {})
    return known_by(fn, (ROW,))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("not (r.n is None)", "r.n is not None"),
        ("not r.n is not None", "r.n is None"),
        ("r.n == None", "r.n is None"),
        ("None != r.n", "r.n is not None"),
        ("not r.f == 1", "r.f != 1"),
        ("not r.s in r.tags", "r.s not in r.tags"),
        ("1 == r.n", "r.n == 1"),
        ("1 < r.n", "r.n > 1"),
        ("not r.n > 1", "r.n <= 1"),
        ("not r.m < r.n", "r.m >= r.n"),
        ("not r.s < 'a'", "'a' <= r.s"),
        ("not r.n < len(r.tags)", "len(r.tags) <= r.n"),
        ("not r.n + 1 < r.m", "r.n + 1 >= r.m"),
        ("not r.s.upper() < r.tags[0]", "r.s.upper() >= r.tags[0]"),
        ("not r.p < True", "r.p >= True"),
        ("1 < r.n <= 3", "1 < r.n and r.n <= 3"),
        ("not 1 < r.n <= 3", "r.n <= 1 or r.n > 3"),
        ("not (r.n and r.s)", "not r.n or not r.s"),
        ("not (r.n is None or r.n > 1)", "r.n is not None and r.n <= 1"),
        ("not (r.p and (r.n is None and r.s))", "not r.p or r.n is not None or not r.s"),
        ("not not r.n", "bool(r.n)"),
        ("not bool(r.n)", "not r.n"),
        ("bool(r.n == 1)", "r.n == 1"),
        ("not not (r.n and r.s)", "bool(r.n) and bool(r.s)"),
        ("not (r.n if r.p else r.s)", "not r.n if r.p else not r.s"),
        ("0 if r.n is None else r.n", "r.n if r.n is not None else 0"),
        ("1 if not r.p else 2", "2 if r.p else 1"),
        ("1 if bool(r.p) and not not r.n else 2", "1 if r.p and r.n else 2"),
        ("1 if r.p and r.n else 2", "2 if not r.p or not r.n else 1"),
        ("True if r.n else False", "bool(r.n)"),
        ("False if r.n > 1 else True", "r.n <= 1"),
        ("[t for t in r.tags if not not t]", "[t for t in r.tags if t]"),
        ("[t for t in r.tags if not t is None]", "[t for t in r.tags if t != None]"),
        ("not True", "False"),
    ],
)
def test_tests_in_other_words(one: str, other: str) -> None:
    assert form_of(one) == form_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("not r.f < 1", "r.f >= 1"),  # NaN
        ("not r.n < r.f", "r.n >= r.f"),
        ("not r.f < len(r.tags)", "len(r.tags) <= r.f"),
        ("not r.tags[0] < r.n", "r.tags[0] >= r.n"),
        ("r.n is not None and r.n > 1", "r.n > 1 and r.n is not None"),  # one fails on None
        ("not (r.n or r.s)", "not r.n or not r.s"),
        ("not not r.n", "r.n"),
        ("bool(r.n) and r.s", "r.n and r.s"),  # what is given of 0
        ("not (r.n and r.s)", "not (r.s and r.n)"),
        ("1 if r.p else 2", "2 if r.p else 1"),
        ("r.n is None", "not r.n"),
        ("r.p is True", "r.p == True"),
        ("r.n < 1", "r.n <= 1"),
        ("r.n - 1 < r.m", "r.m < r.n - 2"),
    ],
)
def test_tests_that_look_alike(one: str, other: str) -> None:
    assert form_of(one) != form_of(other)


def test_what_cannot_be_read_stays_as_it_is() -> None:
    fn = read_callable(eval("lambda r: not not r"))
    assert known_by(fn, (ROW,)) == stored_form(fn, (ROW,))
    assert known_by(fn, (ROW,))[:2] == ("source", fn.source)
