"""Regular expressions: the functions of `re`, their types, and what patterns are refused for."""

from __future__ import annotations

import re as pythons
from random import Random
from time import process_time
from typing import Any

import pytest

from hydro_core import fn
from hydro_core.errors import TypeProblem
from hydro_core.fn import re
from hydro_core.functions.call import call_item
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.result_type import result_type
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.values import conform
from tests.support.functions import live, text

ROW = parse_ddl("v long, t string")
ITEM = conform({"v": 1, "t": "añb12 c345"}, ROW)


@pytest.mark.parametrize(
    ("call", "kind", "gives"),
    [
        (r"re.search(r'(\d)(\d+)', r.t).groups()", "(string, string)", ("1", "2")),
        (
            r"re.search(r'(?P<a>\d)(?P<b>x)?', r.t).groupdict()",
            "a string, b string",
            {"a": "1", "b": None},
        ),
        (r"re.search(r'ñ(b)', r.t)[1]", "string", "b"),
        (r"re.search(r'(?P<x>\d+)', r.t)['x']", "string", "12"),
        (r"re.search(r'(\d)(\d)', r.t).group(2, 1, 0)", "(string, string, string)", "2 1 12"),
        (r"re.search(r'\d+', r.t).span()", "(long, long)", (3, 5)),
        (r"re.search(r'(x)|\d', r.t).start(1)", "long", -1),
        (r"re.search('x', r.t) is None", "boolean", True),
        (r"re.match('ñ', r.t) is None", "boolean", True),
        (r"re.fullmatch(r'\S+ \S+', r.t).end()", "long", 10),
        (r"(m := re.search(r'(\d+)', r.t)) and int(m[1])", "long", 12),
        (r"re.findall(r'\d', r.t)", "array<string>", list("12345")),
        (r"re.findall(r'[a-z](\d+)', r.t)", "array<string>", ["12", "345"]),
        (r"re.findall(r'(\w)(\d+)', r.t)", "array<(string, string)>", ["b 12", "c 345"]),
        (r"re.findall('(?m)$', 'a\nb')", "array<string>", ["", ""]),
        (r"re.findall('a*', 'baac')", "array<string>", ["", "aa", "", ""]),
        (r"[m.start() for m in re.finditer(r'\d+', r.t)]", "array<long>", [3, 7]),
        (r"re.split(r'(\s)|(x)', r.t)", "array<string>", ["añb12", " ", None, "c345"]),
        (r"re.split(r'\d', r.t, maxsplit=1)", "array<string>", ["añb", "2 c345"]),
        (r"re.sub(r'(\d)', r'<\g<1>\\\1>', '1')", "string", "<1\\1>"),
        (r"re.sub(r'\d+', lambda m: str(int(m[0]) + r.v), r.t, count=1)", "string", "añb13 c345"),
        (r"re.sub('', '-', 'ñx')", "string", "-ñ-x-"),
        (r"re.search(r'\bc', r.t).start()", "long", 6),
        (r"regexp_extract(r.t, 'z', 0)", "string", ""),
    ],
)
def test_what_they_give_and_their_types(call: str, kind: str, gives: Any) -> None:
    of_text = text(f"lambda r: {call}")
    of_python = live(f"lambda r: {call}", re=re, regexp_extract=fn.regexp_extract)
    assert of_text.tree == of_python.tree
    known = result_type(of_text, (ROW,))
    assert known == parse_ddl(kind)
    wanted = conform(_spread(gives, known), known)
    for one in (of_text, of_python, function_of(of_text.tree, of_text.params)):
        assert conform(call_item(one, ITEM), known) == wanted


def _spread(gives: Any, known: Any) -> Any:
    """Tuples of texts are written as one text."""
    match gives:
        case str() if " " in gives and "(" in str(known):
            return tuple(gives.split())
        case list():
            return [_spread(g, known) for g in gives]
        case _:
            return gives


@pytest.mark.parametrize(
    ("call", "said", "cure"),
    [
        ("re.search(r.t, r.t)", "takes a pattern that is constant", "checked before"),
        ("re.search('(?=a)', r.t)", "no pattern: invalid perl operator: (?=", "look around"),
        ("re.search('(?<!a)b', r.t)", "is no pattern", "look around"),
        (r"re.search(r'(a)\1', r.t)", r"invalid escape sequence: \1", "back-references"),
        ("re.search('(?P<x>a)(?P=x)', r.t)", "is no pattern", "back-references"),
        ("re.search('a++', r.t)", "is no pattern", "possessive"),
        (r"re.search(r'a\Z', r.t)", "is no pattern", r"`\z`"),
        ("re.search('(a{100}){100}', r.t)", "invalid repetition size", "1,000 times"),
        ("re.search('a{,3}', r.t)", "lacks its least number", "{0,n}"),
        ("re.search('(?P<x>a)|(?P<x>b)', r.t)", "two groups have one name", "RE2"),
        ("re.search('(a', r.t)", "is no pattern: missing )", "RE2"),
        ("re.search('a', r.v)", "`re.search` takes a string, not long", None),
        ("re.search('a', r.t, flags=2)", "takes no such `flags`", "it takes pattern, text"),
        ("re.sub('a', text=r.t)", "`re.sub` lacks an argument", "replacement"),
        ("re.search('(a)', r.t).group(2)", "has no group 2: it has 1", None),
        ("re.search('(a)', r.t)['x']", "has no group 'x'", "(?P<name>…)"),
        ("re.search('(a)', r.t)", "a match is not an item", "is not None"),
        ("re.search('a', r.t) > 1", "match and long have no order", None),
        (r"re.sub('a', r'\1', r.t)", "no replacement: the pattern has no group", None),
        (r"re.sub('a', r'\q', r.t)", r"`\q` is nothing in a replacement", None),
        ("re.sub('a', r.t, r.t)", "takes a replacement that is constant", "lambda m"),
        ("re.sub('a', lambda m: 1, r.t)", "replaced by a text, not by long", "str(x)"),
        (r"regexp_extract(r.t, r'\d')", "the pattern has no group 1", "parentheses"),
        ("re.compile('a')", "there is no `re.compile` here", "where it is used"),
        ("re.IGNORECASE", "there is no `re.IGNORECASE` here", "(?i)"),
        ("re", "`re` is a function, where a value is meant", "re.search"),
    ],
)
def test_what_is_refused(call: str, said: str, cure: str | None) -> None:
    with pytest.raises(TypeProblem) as caught:
        result_type(text(f"lambda r: {call}"), (ROW,))
    assert said in str(caught.value)
    assert cure is None or cure in (caught.value.help or "")


def _pattern(random: Random, depth: int) -> str:
    kind = random.randrange(6 if depth else 2)
    inner = [_pattern(random, depth - 1) for _ in range(2)] if depth and kind > 1 else []
    match kind:
        case 0:
            return random.choice("ab")
        case 1:
            return random.choice((".", "[ab]", "[^a]", "é", r"\d", r"\b"))
        case 2:
            return f"({inner[0]})"
        case 3:
            return f"(?:{inner[0]}|{inner[1]})"
        case 4:
            return f"(?:{inner[0]}){random.choice(('*', '+', '?', '{1,2}', '*?'))}"
        case _:
            return "".join(inner)


def test_what_both_have_means_what_it_means_in_python() -> None:
    random, tried = Random(5), 0
    for _ in range(1500):
        pattern = _pattern(random, 4)
        of_python = pythons.compile(pattern, pythons.ASCII)
        given = "".join(random.choice("abé1 ") for _ in range(random.randrange(9)))
        for mine, his in (
            (re.search(pattern, given), of_python.search(given)),
            (re.match(pattern, given), of_python.match(given)),
            (re.fullmatch(pattern, given), of_python.fullmatch(given)),
        ):
            assert (mine and mine.span()) == (his and his.span()), (pattern, given)
        # After an empty match Python looks at the same place once more.
        if "" not in [m.group() for m in of_python.finditer(given)]:
            spans = [m.span() for m in re.finditer(pattern, given)]
            assert spans == [m.span() for m in of_python.finditer(given)], (pattern, given)
            assert re.sub(pattern, "-", given) == of_python.sub("-", given), (pattern, given)
            tried += bool(spans)
    assert tried > 200


def test_time_is_linear_in_the_text() -> None:
    before = process_time()
    assert re.search("(a*)*b", "a" * 100_000) is None
    assert re.search("(a|aa)+$", "a" * 100_000 + "b") is None
    assert process_time() - before < 5
