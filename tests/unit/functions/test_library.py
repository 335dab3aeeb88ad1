"""The library of methods and builtins: what calls are checked for, and how they are written."""

from __future__ import annotations

import math

import pytest

from hydro_core.errors import TypeProblem
from hydro_core.functions.from_tree import text_of
from hydro_core.functions.library.registry import BUILTINS, FUNCTIONS, OF_TYPES
from hydro_core.functions.result_type import result_type
from hydro_core.functions.tree import Op, Param, Part
from hydro_core.types.ddl import parse_ddl
from tests.support.functions import live, text

ROW = parse_ddl("a long, f double, t string, u string, d date, w timestamp, m decimal(10,2)")


@pytest.mark.parametrize("kind", OF_TYPES)
def test_python_has_what_the_library_says(kind: type) -> None:
    for name, entry in OF_TYPES[kind].items():
        assert callable(getattr(kind, name)) == (entry.takes is not None), name


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("r.t.ljust('x')", "`ljust` takes a whole number, not string"),
        ("r.t.ljust()", "`ljust` takes 1 to 2 arguments, not 0"),
        ("r.t.startswith(1)", "`startswith` takes a string, or a tuple of strings, not long"),
        ("r.t.split(',', 'x')", "`split` takes a whole number, not string"),
        ("r.t.upper(1)", "`upper` takes 0 arguments, not 1"),
        ("r.t.replace('a')", "`replace` takes 2 to 3 arguments, not 1"),
        ("r.d.strftime(1)", "`strftime` takes a string, not long"),
        ("date.fromisoformat(r.a)", "`date.fromisoformat` takes a string, not long"),
        ("(1, 2).copy()", "has no method `copy`"),
        ("math(2)", "`math` is no function"),
        ("math.sqrt(r.t)", "`math.sqrt` takes a number, not string"),
        ("coalesce()", "`coalesce` takes at least one argument"),
        ("coalesce(r.t, r.a)", "the value may be string or long"),
        ("greatest(r.a)", "`greatest` takes 2 to 1000 arguments, not 1"),
        ("least(r.a, r.t)", "no order"),
        ("sha256(r.a)", "`sha256` takes a string, or bytes, not long"),
        ("try_int(r.a)", "`try_int` takes a string, not long"),
        ("levenshtein(r.t)", "`levenshtein` takes 2 arguments, not 1"),
        ("date_trunc('fortnight', r.d)", "'fortnight' is no unit of time"),
        ("date_trunc('hour', r.d)", "a date has no hour"),
        ("date_trunc('day', r.t)", "`date_trunc` takes a date or a time, not string"),
        ("url_part(r.t, 'hots')", "'hots' is no part of a URL"),
        ("date_trunc('day', r.d, 'Europe/Berlin')", "a zone is for timestamps, not for date"),
        ("date_trunc('day', r.w, 'Europe/Bärlin')", "there is no time zone 'Europe/Bärlin'"),
        ("to_zone(r.w, 'Mars')", "there is no time zone 'Mars'"),
        ("to_zone(r.d, 'UTC')", "`to_zone` takes a timestamp, not date"),
        ("date_diff('day', r.d, r.w)", "is between two of a kind, not date and timestamp"),
        ("date_diff('hour', r.d, r.d)", "a date has no hour"),
        ("window_start(r.w, r.t)", "takes a length of time that is constant"),
        ("window_start(r.w, '1 hour')", "'1 hour' is no length of time"),
        ("window_start(r.w, timedelta(0))", "has no length"),
        ("window_start(r.w, 5)", "`window_start` takes a length of time, not long"),
        ("window_start(r.d, '1h')", "a date is in windows of whole days"),
        ("window_start(r.w, '1h', zone='UTC')", "a zone is for windows of whole days"),
        ("window_start(r.d, '1d', zone='UTC')", "a zone is for timestamps, not for date"),
        ("hop(r.w, '1y', '1s')", "a row is in more than 1,000 windows"),
        ("hop(r.w, '1h')", "`hop` takes 3 to 4 arguments, not 2"),
        ("try_decimal(r.t, 40)", "there is no decimal(40,18)"),
        ("try_decimal(r.t, r.a)", "the digits of a decimal are constants"),
        ("split_part(r.t, ',', 0)", "parts are counted from 1"),
        ("lpad(r.t, width='x')", "`lpad` takes a whole number, not string"),
        ("lpad(r.t)", "`lpad` takes 2 to 3 arguments, not 1"),
        ("lpad(r.t, wide=3)", "`lpad` takes no such `wide`"),
        ("lpad(r.t, fill='0')", "`lpad` lacks an argument"),
        ("concat_ws(',', r.a)", "`concat_ws` takes strings, not long"),
        ("nullif(r.t, r.a)", "string and long are never equal"),
        ("parse_json(r.t, r.u)", "takes a schema that is constant"),
        ("parse_json(r.t, 'a lon')", "`lon` is not a type"),
        ("get_json_object(r.t, 'a.b')", "'a.b' is no path"),
        ("get_json_object(r.t, '$.a[*]')", "is no path"),
        ("to_json({1, 2})", "a set is not an item"),
        ("(r.a > 1).bit_length()", "boolean has no method `bit_length`"),
    ],
)
def test_a_wrong_call_is_refused(call: str, said: str) -> None:
    with pytest.raises(TypeProblem) as caught:
        result_type(text(f"lambda r: {call}"), (ROW,))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("r.a > max", "`max` is a function, where a value is meant"),
        ("not max", "`max` is a function"),
        ("1 if max else 2", "`max` is a function"),
        ("(max, 1)", "`max` is a function"),
        ("f'{max}'", "`max` is a function"),
        ("[max for x in r.t]", "`max` is a function"),
        ("(m := max) == 1", "`max` is a function"),
        ("math.sqrt > 1", "`math.sqrt` is a function"),
        ("r.t == str.upper", "`.upper` is a function"),
        ("r.a > (lambda x: x)", "there is a function"),
        ("r.t.upper > 'A'", "`upper` is a method, where a value is meant"),
        ("str(max)", "argument 1 of `str` is a function, not a value"),
        ("coalesce(r.a, max)", "argument 2 of `coalesce` is a function"),
        ("sorted(r.t, reverse=len)", "`reverse` of `sorted` is a function"),
        ("r.t.join(max)", "argument 1 of `join` is a function"),
    ],
)
def test_a_function_is_no_value(call: str, said: str) -> None:
    with pytest.raises(TypeProblem) as caught:
        result_type(text(f"lambda r: {call}"), (ROW,))
    assert said in str(caught.value)
    assert caught.value.help is not None
    assert "call it" in caught.value.help


def test_a_function_is_a_key() -> None:
    calls = "(sorted(r.t, key=len), max(r.t, key=str.upper), min(r.t, key=r.u.find))"
    kind = "(array<string>, string, string)"
    assert result_type(text(f"lambda r: {calls}"), (ROW,)) == parse_ddl(kind)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("math.floor(math.sqrt(r.f) * math.pi)", "long"),
        ("math.log(r.f, 2)", "double"),
        ("r.f.real", "double"),
        ("r.f.imag", "double"),
        ("r.t.split(sep=',')", "array<string>"),
        ("r.t.split(None, 2)", "array<string>"),
        ("r.t.startswith(('a', r.u))", "boolean"),
        ("{1: 'a'}.keys()", "array<long>"),
        ("r.w.isocalendar()[0]", "long"),
    ],
)
def test_types_of_calls(call: str, kind: str) -> None:
    assert result_type(text(f"lambda r: {call}"), (ROW,)) == parse_ddl(kind)


def test_what_a_flow_in_python_takes_of_math_has_a_type() -> None:
    calls = "(math.floor(r.f), math.sqrt(r.f), math.isnan(r.f), math.log(r.f, 2))"
    fn = live(f"lambda r: {calls}", math=math)
    assert result_type(fn, (ROW,)) == parse_ddl("(long, double, boolean, double)")
    with pytest.raises(TypeProblem, match=r"`math\.floor` takes a number, not string"):
        result_type(live("lambda r: math.floor(r.t)", math=math), (ROW,))


def test_a_call_of_a_member_is_written_as_people_write_it() -> None:
    tree = Op("math.sqrt", (Part(Param("r"), "f", True),))
    assert text_of(tree, ("r",)) == "lambda r: math.sqrt(r.f)"
    tree = Op("date.fromisoformat", (Part(Param("r"), "t", True),))
    assert text_of(tree, ("r",)) == "lambda r: date.fromisoformat(r.t)"


def test_a_text_program_sees_the_builtins_alone() -> None:
    with pytest.raises(TypeProblem, match="there is no name `np`"):
        text("lambda r: np.sqrt(r.f)")
    assert not any("." in name for name in BUILTINS)
    assert set(BUILTINS) < set(FUNCTIONS)
