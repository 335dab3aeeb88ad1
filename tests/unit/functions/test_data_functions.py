"""The functions that Python's builtins lack: what they give, of nulls above all."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from hashlib import sha512
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from hydro_core import fn
from hydro_core.functions.call import call_item
from hydro_core.functions.library.registry import DATA_FUNCTIONS
from hydro_core.functions.result_type import result_type
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.values import conform, to_item
from tests.support.functions import live, text

NAN = float("nan")
AT = datetime(2026, 8, 19, 13, 14, 15, 16, UTC)
DNS = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
BERLIN = "Europe/Berlin"


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
    ("soundex", ("Washington",), "W252"),
    ("soundex", ("Lee",), "L000"),
    ("soundex", ("Gutierrez",), "G362"),
    ("soundex", ("Jackson",), "J250"),
    ("soundex", ("VanDeusen",), "V532"),
    ("soundex", ("",), ""),
    ("soundex", ("Rupert",), "R163"),
    ("soundex", ("Ashcraft",), "A261"),
    ("soundex", ("Tymczak",), "T522"),
    ("soundex", ("Pfister",), "P236"),
    ("soundex", ("Honeyman",), "H555"),
    ("soundex", ("O'Hara",), "O600"),
    ("soundex", ("42",), ""),
    ("date_trunc", ("day", AT, "Asia/Tokyo"), datetime(2026, 8, 18, 15, tzinfo=UTC)),
    # Kathmandu is 5:45 ahead: its hours begin at a quarter past those of UTC.
    ("date_trunc", ("hour", AT, "Asia/Kathmandu"), datetime(2026, 8, 19, 12, 15, tzinfo=UTC)),
    # The second of two hours from 2 to 3, when Berlin's clocks are set back.
    (
        "date_trunc",
        ("hour", datetime(2026, 10, 25, 1, 30, tzinfo=UTC), BERLIN),
        datetime(2026, 10, 25, 1, tzinfo=UTC),
    ),
    # That day has 25 hours, and begins in summer.
    (
        "date_trunc",
        ("day", datetime(2026, 10, 25, 22, tzinfo=UTC), BERLIN),
        datetime(2026, 10, 24, 22, tzinfo=UTC),
    ),
    # In Beirut that day begins at 1, since clocks are set forward at midnight.
    (
        "date_trunc",
        ("day", datetime(2026, 3, 29, 9, tzinfo=UTC), "Asia/Beirut"),
        datetime(2026, 3, 28, 22, tzinfo=UTC),
    ),
    ("to_zone", (AT, BERLIN), datetime(2026, 8, 19, 15, 14, 15, 16)),
    ("from_zone", (datetime(2026, 8, 19, 15), BERLIN), datetime(2026, 8, 19, 13, tzinfo=UTC)),
    # Twice there: the first. Skipped: as much later.
    (
        "from_zone",
        (datetime(2026, 10, 25, 2, 30), BERLIN),
        datetime(2026, 10, 25, 0, 30, 0, 0, UTC),
    ),
    ("from_zone", (datetime(2026, 3, 29, 2, 30), BERLIN), datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
    ("add_months", (date(2026, 1, 31), 1), date(2026, 2, 28)),
    ("add_months", (date(2026, 1, 31), -11), date(2025, 2, 28)),
    ("add_months", (AT, 5), AT.replace(year=2027, month=1)),
    ("last_day", (date(2024, 2, 1),), date(2024, 2, 29)),
    ("last_day", (AT,), date(2026, 8, 31)),
    ("quarter", (date(2026, 3, 31),), 1),
    ("quarter", (AT,), 3),
    ("date_diff", ("day", date(2026, 3, 1), date(2026, 2, 27)), -2),
    ("date_diff", ("month", date(2026, 1, 31), date(2026, 2, 28)), 0),
    ("date_diff", ("month", date(2026, 2, 28), date(2026, 1, 28)), -1),
    ("date_diff", ("year", date(2024, 2, 29), date(2025, 2, 28)), 0),
    ("date_diff", ("quarter", AT, AT.replace(year=2027)), 4),
    ("date_diff", ("month", AT, AT.replace(month=9, microsecond=15)), 0),
    ("date_diff", ("hour", AT, AT.replace(day=20, second=14)), 23),
    ("date_diff", ("week", date(2026, 1, 1), date(2026, 1, 15)), 2),
    ("window_start", (AT, "15m"), AT.replace(minute=0, second=0, microsecond=0)),
    ("window_start", (AT, timedelta(seconds=90)), datetime(2026, 8, 19, 13, 13, 30, tzinfo=UTC)),
    ("window_start", (date(2026, 8, 19), "1w"), date(2026, 8, 17)),
    ("window_start", (AT, timedelta(days=7)), datetime(2026, 8, 17, tzinfo=UTC)),
    ("window_start", (AT.replace(tzinfo=None), "1mo"), datetime(2026, 8, 1)),
    ("window_start", (date(2026, 8, 19), "3mo"), date(2026, 7, 1)),
    ("window_start", (date(1969, 12, 31), "1y"), date(1969, 1, 1)),
    (
        "window_start",
        (datetime(1969, 12, 31, 23, 59, tzinfo=UTC), "1h"),
        datetime(1969, 12, 31, 23, tzinfo=UTC),
    ),
    ("window_start", (date(9999, 12, 31), "1w"), date(9999, 12, 27)),
    ("window_start", (date(9999, 12, 31), "1mo"), date(9999, 12, 1)),
    ("window_start", (AT, "1h", "10m"), datetime(2026, 8, 19, 13, 10, tzinfo=UTC)),
    ("window_start", (AT, "5m", "1h"), None),
    ("window_start", (AT, "15m", "1h"), datetime(2026, 8, 19, 13, tzinfo=UTC)),
    ("window_start", (AT, "1d", None, "Asia/Tokyo"), datetime(2026, 8, 18, 15, tzinfo=UTC)),
    ("window_start", (AT, "1mo", None, BERLIN), datetime(2026, 7, 31, 22, tzinfo=UTC)),
    (
        "hop",
        (AT, "30m", "10m"),
        [datetime(2026, 8, 19, *hm, tzinfo=UTC) for hm in ((12, 50), (13, 0), (13, 10))],
    ),
    ("hop", (date(2026, 8, 19), "2mo", "1mo"), [date(2026, 7, 1), date(2026, 8, 1)]),
    ("hop", (AT, "5m", "1h"), []),
    ("hop", (date(1, 1, 1), "3d", "1d"), [date(1, 1, 1)]),
    # Berlin's days around the one of 25 hours.
    (
        "hop",
        (datetime(2026, 10, 25, 23, tzinfo=UTC), "2d", "1d", BERLIN),
        [datetime(2026, 10, 24, 22, tzinfo=UTC), datetime(2026, 10, 25, 23, tzinfo=UTC)],
    ),
    ("try_decimal", ("1.25", 3, 1), Decimal("1.2")),
    ("try_decimal", (" 12 ",), Decimal(12)),
    ("try_decimal", ("100", 3, 1), None),
    ("try_decimal", ("1e2", 4, 1), Decimal("100.0")),
    ("try_decimal", ("NaN",), None),
    ("try_decimal", ("-Infinity",), None),
    ("try_decimal", ("1e999999999",), None),
    ("try_decimal", ("x",), None),
    ("try_boolean", (" Yes\n",), True),
    ("try_boolean", ("0",), False),
    ("try_boolean", ("2",), None),
    ("try_date", ("28.2.2026", "%d.%m.%Y"), date(2026, 2, 28)),
    ("try_date", ("29.2.2026", "%d.%m.%Y"), None),
    (
        "try_timestamp",
        ("2026-08-19T15:14:15+02:00",),
        datetime(2026, 8, 19, 13, 14, 15, tzinfo=UTC),
    ),
    ("try_timestamp", ("2026-08-19",), datetime(2026, 8, 19, tzinfo=UTC)),
    ("try_timestamp", ("19/08/26 07", "%d/%m/%y %H"), datetime(2026, 8, 19, 7, tzinfo=UTC)),
    ("try_timestamp", ("0001-01-01T00:00+01:00",), None),
    ("try_timestamp", ("soon",), None),
    ("sha1", ("abc",), "a9993e364706816aba3e25717850c26c9cd0d89d"),
    (
        "sha512",
        ("",),
        sha512(b"").hexdigest(),
    ),
    ("xxhash64", ("", 0), 0xEF46DB3751D8E999 - 2**64),
    ("xxhash64", ("abc", 0), 0x44BC2CF5AD770999),
    ("xxhash64", (b"Nobody inspects the spammish repetition", 0), 0xFBCEA83C8A378BF1 - 2**64),
    ("split_part", ("a,b,c", ",", 2), "b"),
    ("split_part", ("a,b,c", ",", -1), "c"),
    ("split_part", ("a,b,c", ",", 4), ""),
    ("split_part", ("a,b", "", 1), "a,b"),
    ("substring_index", ("a.b.c", ".", 2), "a.b"),
    ("substring_index", ("a.b.c", ".", -2), "b.c"),
    ("substring_index", ("a.b.c", ".", 9), "a.b.c"),
    ("substring_index", ("a.b.c", ".", 0), ""),
    ("lpad", ("7", 3, "0"), "007"),
    ("lpad", ("abcd", 3, "0"), "abc"),
    ("lpad", ("a", 4, "xy"), "xyxa"),
    ("lpad", ("a", -1), ""),
    ("rpad", ("a", 4, "xy"), "axyx"),
    ("rpad", ("a", 3), "a  "),
    ("rpad", ("a", 3, ""), "a"),
    ("initcap", ("hELLO  wORLD's end",), "Hello  World's End"),
    ("translate", ("abcba", "ab", "xy"), "xycyx"),
    ("translate", ("abcb", "bb", "xy"), "axcx"),
    ("translate", ("abc", "bc", ""), "a"),
    ("concat_ws", ("-", "a", None, "b"), "a-b"),
    ("concat_ws", ("-",), ""),
    ("concat_ws", (None, "a"), None),
    ("nullif", (1, 1), None),
    ("nullif", (1, None), 1),
    ("nullif", (NAN, NAN), None),
    ("parse_json", ('{"a": 1, "z": [2]}', "a long, b string"), {"a": 1, "b": None}),
    (
        "parse_json",
        ('[{"d": "2026-08-19", "x": 0}]', "array<struct<d: date>>"),
        [{"d": date(2026, 8, 19)}],
    ),
    ("parse_json", ("null", "long"), None),
    ("try_parse_json", ('{"a": 1}', "a long"), {"a": 1}),
    ("try_parse_json", ('{"a": "x"}', "a long"), None),
    ("try_parse_json", ('{"a": 1', "a long"), None),
    ("try_parse_json", ("[" * 9999, "array<long>"), None),
    (
        "to_json",
        ({"a": (1, None), "b": [1.5, NAN], "c": AT},),
        '{"a":[1,null],"b":[1.5,"NaN"],"c":"2026-08-19T13:14:15.000016Z"}',
    ),
    ("to_json", ("é",), '"é"'),
    ("get_json_object", ('{"a": {"b c": [1, {"d": "x"}]}}', "$.a['b c'][1].d"), "x"),
    ("get_json_object", ('{"a": {"b": [1, null]}}', "$.a"), '{"b":[1,null]}'),
    ("get_json_object", ('{"a": null}', "$.a"), None),
    ("get_json_object", ("[1, 2]", "$[2]"), None),
    ("get_json_object", ("{", "$.a"), None),
    ("get_json_object", ('{"a": 12345678901234567.890}', "$.a"), "12345678901234567.890"),
    ("get_json_object", ('{"a": [1.10, {"é": 1E400}]}', "$.a"), '[1.10,{"é":1E400}]'),
    ("get_json_object", ('"x"', "$"), "x"),
    ("get_json_object", (r'"\ud800"', "$"), None),
    ("get_json_object", (r'{"a": ["\ud83d"]}', "$.a"), None),
    ("get_json_object", (r'"\ud83d\ude00"', "$"), "\U0001f600"),
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
OWN_RULES = {name for name, entry in DATA_FUNCTIONS.items() if entry.nulls == "own"}


def alike(a: Any, b: Any) -> bool:
    if isinstance(a, dict | list):
        return to_item(a) == to_item(b)
    both_nan = isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)
    return both_nan or (type(a) is type(b) and a == b)


@pytest.mark.parametrize(("name", "args", "gives"), CASES)
def test_what_they_give(name: str, args: tuple[Any, ...], gives: Any) -> None:
    assert alike(getattr(fn, name)(*args), gives)


def test_each_has_a_case() -> None:
    assert {name for name, _, _ in CASES} == set(DATA_FUNCTIONS)
    assert {*DATA_FUNCTIONS, "re"} == {name for name in vars(fn) if not name.startswith("_")}


@pytest.mark.parametrize("name", sorted(set(DATA_FUNCTIONS) - OWN_RULES))
def test_of_a_null_they_give_null(name: str) -> None:
    args = next((args for n, args, _ in CASES if n == name), None)
    assert args is not None, f"`CASES` has none of {name}"
    for place in range(sum(default is ... for _, default in DATA_FUNCTIONS[name].defaults)):
        assert getattr(fn, name)(*args[:place], None, *args[place + 1 :]) is None


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("parse_json('{\"a\": \"x\"}', 'a long')", "is no JSON of 'a long': 'x' is not of type"),
        ("parse_json('{', 'a long')", "is no JSON of 'a long'"),
        ("to_zone(r.w, r.t)", "there is no time zone 'x'"),
        ("split_part(r.t, ',', r.a - 1)", "parts are counted from 1"),
        ("add_months(r.d, 12 * 9999)", "not within the years 1 to 9999"),
        ("date_trunc(r.t, r.w)", "'x' is no unit"),
    ],
)
def test_what_fails(call: str, said: str) -> None:
    row = {"t": "x", "w": AT, "a": 1, "d": date(2026, 1, 1)}
    item = conform(row, parse_ddl("t string, w timestamp, a long, d date"))
    with pytest.raises(ValueError, match=re.escape(said)):
        call_item(text(f"lambda r: {call}"), item)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"])
def test_windows_cover_time_without_a_gap(zone: str) -> None:
    hour, at = timedelta(minutes=30), datetime(2026, 3, 1, tzinfo=UTC)
    for size in ("1d", "1w", "1mo"):
        starts = sorted({fn.window_start(at + i * hour, size, zone=zone) for i in range(12_000)})
        for start, following in pairwise(starts):
            last = following - timedelta(microseconds=1)
            assert fn.window_start(start, size, zone=zone) == start
            assert fn.window_start(last, size, zone=zone) == start
            assert fn.to_zone(start, zone).hour == 0


def test_windows_that_hop_hold_the_time_and_no_other_does() -> None:
    random = Random(3)
    for _ in range(300):
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=random.randrange(9**8))
        size, slide = (timedelta(seconds=random.randrange(1, 900)) for _ in range(2))
        starts = fn.hop(at, size, slide)
        assert all(start <= at < start + size for start in starts)
        if starts:
            assert fn.window_start(at, size, slide) == starts[-1]
            assert not starts[0] - slide <= at < starts[0] - slide + size
            assert not starts[-1] + slide <= at
        else:
            assert fn.window_start(at, size, slide) is None


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
        ("(try_decimal(r.t), try_decimal(r.t, 10, 2))", "(decimal(38,18), decimal(10,2))"),
        ("(try_timestamp(r.t), try_boolean(r.t))", "(timestamp, boolean)"),
        ("(to_zone(r.w, 'Europe/Berlin').hour, from_zone(r.n, r.t))", "(long, timestamp)"),
        ("(date_trunc('day', r.w, 'Asia/Tokyo'), add_months(r.d, r.a))", "(timestamp, date)"),
        ("(last_day(r.w), quarter(r.n), date_diff('day', r.d, date(2026, 1, 1)))",
         "(date, long, long)"),
        ("window_start(r.w, timedelta(minutes=15))", "timestamp"),
        ("window_start(r.n, '1h', slide=timedelta(minutes=7) + timedelta(seconds=1))",
         "timestamp_ntz"),
        ("window_start(r.w, '1mo', zone='Europe/Berlin')", "timestamp"),
        ("hop(r.d, '7d', '1d')", "array<date>"),
        ("parse_json(r.t, 'a long, z array<string>').z", "array<string>"),
        ("try_parse_json(r.t, '(long, decimal(4,2))')[1]", "decimal(4,2)"),
        ("(to_json(r), get_json_object(r.t, '$.a'), xxhash64(r.y, seed=0))",
         "(string, string, long)"),
        ("(nullif(r.a, 0), concat_ws(', ', r.t, str(r.a)))", "(long, string)"),
        ("(lpad(r.t, 5), rpad(r.t, width=5, fill='0'), split_part(r.t, ',', 1))",
         "(string, string, string)"),
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
