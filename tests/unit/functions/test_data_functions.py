"""The functions that Python's builtins lack: what they give, of nulls above all."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any

import pytest

from hydro_core import fn
from hydro_core.functions.evaluate import call_item
from hydro_core.functions.library.data import DATA_FUNCTIONS
from hydro_core.functions.result_type import result_type
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.values import conform
from tests.support.functions import live, text

NAN = float("nan")
AT = datetime(2026, 8, 19, 13, 14, 15, 16, UTC)
DNS = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
CASES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("coalesce", (None, 2, 3), 2),
    ("coalesce", (None, None), None),
    ("coalesce", (False, True), False),
    ("greatest", (1, None, 3), 3),
    ("greatest", (1.0, NAN, 2.0), NAN),
    ("greatest", (None, None), None),
    ("least", ("b", "a", None), "a"),
    ("least", (NAN, 2.0), 2.0),
    ("try_int", ("42",), 42),
    ("try_int", (" -7 ",), -7),
    ("try_int", ("4x",), None),
    ("try_int", ("",), None),
    ("try_int", ("9223372036854775807",), 2**63 - 1),
    ("try_int", ("9223372036854775808",), None),
    ("try_int", ("9" * 5000,), None),
    ("try_float", ("1e3",), 1000.0),
    ("try_float", ("nan",), NAN),
    ("try_float", ("1,5",), None),
    ("try_date", ("2026-02-28",), date(2026, 2, 28)),
    ("try_date", ("2026-02-29",), None),
    ("try_date", ("2026-02-28T10:00",), None),
    ("sha256", ("",), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("md5", (b"abc",), "900150983cd24fb0d6963f7d28e17f72"),
    ("crc32", ("123456789",), 0xCBF43926),
    ("base64_encode", ("abc",), "YWJj"),
    ("base64_decode", ("YWJj",), b"abc"),
    ("uuid5", (DNS, "python.org"), "886313e1-3b8a-5372-9b90-0c9aee199e5d"),
    ("url_part", ("HTTPS://Ex.org:80/a?b=1#c", "scheme"), "https"),
    ("url_part", ("HTTPS://Ex.org:80/a?b=1#c", "host"), "ex.org"),
    ("url_part", ("HTTPS://Ex.org:80/a?b=1#c", "port"), "80"),
    ("url_part", ("https://ex.org:99999/", "port"), None),
    ("url_part", ("http://[::1", "host"), None),
    ("url_part", ("/a", "host"), None),
    ("url_part", ("", "path"), None),
    ("url_param", ("/?a=1&b=&a=2", "a"), "1"),
    ("url_param", ("/?a=1&b=&a=2", "b"), ""),
    ("url_param", ("/?a=1", "c"), None),
    ("levenshtein", ("kitten", "sitting"), 3),
    ("levenshtein", ("", "ab"), 2),
    ("levenshtein", ("\U0001f600", "x"), 1),
    ("soundex", ("Robert",), "R163"),
    ("soundex", ("Rupert",), "R163"),
    ("soundex", ("Ashcraft",), "A261"),
    ("soundex", ("Tymczak",), "T522"),
    ("soundex", ("Pfister",), "P236"),
    ("soundex", ("Honeyman",), "H555"),
    ("soundex", ("O'Hara",), "O600"),
    ("soundex", ("42",), ""),
    ("regexp_like", ("ab12", r"\d"), True),
    ("regexp_like", ("ab", r"^\d"), False),
    ("regexp_count", ("a1b22", r"\d+"), 2),
    ("regexp_extract", ("a1b22", r"(\d\d)"), "22"),
    ("regexp_extract", ("a1b22", r"(x)?\d"), ""),
    ("regexp_extract", ("a1b22", r"b(\d)", 0), "b2"),
    ("regexp_extract", ("a", r"(\d)"), ""),
    ("regexp_extract_all", ("a1b22", r"(\d)"), ["1", "2", "2"]),
    ("regexp_extract_all", ("a", r"(\d)"), []),
    ("regexp_replace", ("a1b22", r"(\d)", r"<\1>"), "a<1>b<2><2>"),
    ("date_trunc", ("year", date(2026, 8, 19)), date(2026, 1, 1)),
    ("date_trunc", ("quarter", date(2026, 8, 19)), date(2026, 7, 1)),
    ("date_trunc", ("week", date(2026, 3, 1)), date(2026, 2, 23)),
    ("date_trunc", ("day", date(2026, 8, 19)), date(2026, 8, 19)),
    ("date_trunc", ("month", AT), datetime(2026, 8, 1, tzinfo=UTC)),
    ("date_trunc", ("week", AT), datetime(2026, 8, 17, tzinfo=UTC)),
    ("date_trunc", ("day", AT), datetime(2026, 8, 19, tzinfo=UTC)),
    ("date_trunc", ("hour", AT), datetime(2026, 8, 19, 13, tzinfo=UTC)),
    ("date_trunc", ("minute", AT), datetime(2026, 8, 19, 13, 14, tzinfo=UTC)),
    ("date_trunc", ("second", AT), datetime(2026, 8, 19, 13, 14, 15, tzinfo=UTC)),
    ("date_trunc", ("hour", AT.replace(tzinfo=None)), datetime(2026, 8, 19, 13)),
]
SKIP_NULLS = ("coalesce", "greatest", "least")


def alike(a: Any, b: Any) -> bool:
    both_nan = isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)
    return both_nan or (type(a) is type(b) and a == b)


@pytest.mark.parametrize(("name", "args", "gives"), CASES)
def test_what_they_give(name: str, args: tuple[Any, ...], gives: Any) -> None:
    assert alike(getattr(fn, name)(*args), gives)


def test_each_has_a_case() -> None:
    assert {name for name, _, _ in CASES} == set(DATA_FUNCTIONS)
    assert {*DATA_FUNCTIONS, "re"} == set(fn.__all__)


@pytest.mark.parametrize("name", sorted(set(DATA_FUNCTIONS) - set(SKIP_NULLS)))
def test_of_a_null_they_give_null(name: str) -> None:
    args = next(args for n, args, _ in CASES if n == name)
    for place in range(len(args)):
        assert getattr(fn, name)(*args[:place], None, *args[place + 1 :]) is None


def test_what_is_not_in_base_64_fails() -> None:
    for wrong in ("a", "Y!Jj"):
        with pytest.raises(ValueError, match="is not in base 64"):
            fn.base64_decode(wrong)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("coalesce(r.a, 0)", "long"),
        ("coalesce(r.a, r.f)", "double"),
        ("greatest(r.d, date(2026, 1, 1))", "date"),
        ("try_int(r.t) or 0", "long"),
        ("(try_float(r.t), try_date(r.t))", "(double, date)"),
        ("(sha256(r.t), md5(r.y), crc32(r.t))", "(string, string, long)"),
        ("base64_decode(base64_encode(r.y))", "binary"),
        ("(date_trunc('day', r.w), date_trunc('day', r.n), date_trunc('week', r.d))",
         "(timestamp, timestamp_ntz, date)"),
        ("[url_part(r.t, 'host'), url_param(r.t, 'a'), uuid5(r.t, r.t), soundex(r.t)]",
         "array<string>"),
        ("levenshtein(r.t, 'x')", "long"),
    ],
)  # fmt: skip
def test_types(call: str, kind: str) -> None:
    row = parse_ddl("a long, f double, t string, y binary, d date, w timestamp, n timestamp_ntz")
    assert result_type(text(f"lambda r: {call}"), (row,)) == parse_ddl(kind)


def test_text_and_python_give_the_same_tree() -> None:
    of_text = text("lambda r: coalesce(try_int(r.t), 0)")
    of_python = live("lambda r: fn.coalesce(fn.try_int(r.t), 0)", fn=fn)
    assert of_text.tree == of_python.tree
    found = call_item(of_python, conform({"t": "x"}, parse_ddl("t string")))
    assert found == 0
