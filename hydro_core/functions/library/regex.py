"""Regular expressions: `re` of Python and those of SQL, in the syntax of RE2."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.kinds import FUNCTION, ExprType, MatchOf, Place, is_open, number, part
from hydro_core.functions.library import entry
from hydro_core.functions.library.entry import (
    KNOWN_TEXT,
    TEXT,
    WHOLE,
    Budget,
    CallSite,
    CallTyping,
    Library,
    Members,
    Operation,
    Parameter,
    check_made,
    constant,
    method,
    no_call,
    optional,
)
from hydro_core.types.item import BOOLEAN, LONG, STRING, Array, Field, Row, Tuple

# Patterns in the syntax of RE2, which never backtracks: compilation and matches.
#
# Both engines run this code, so a pattern means one thing; a search takes time linear in the
# text.


TextSpan = tuple[int, int]
_KEPT = 256
"""Most patterns that a process caches."""
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_NAMED = re.compile(r"\(\?P?<(\w+)>")
_WITHOUT_LEAST = re.compile(r"\{,\d+\}")
_ESCAPES = {"\\": "\\", "n": "\n", "t": "\t", "r": "\r"}


class TextMatch:
    """A match: its text and the spans of its groups."""

    __slots__ = ("_data", "_names", "_spans")

    def __init__(self, data: bytes, spans: tuple[TextSpan, ...], names: Mapping[str, int]) -> None:
        self._data, self._spans, self._names = data, spans, names

    def group(self, *which: int | str) -> Any:
        """The text of a group, of the whole match without an argument; of several, a tuple."""
        if len(which) > 1:
            return tuple(map(self._text, which))
        return self._text(*which or (0,))

    def __getitem__(self, which: int | str) -> str | None:
        return self._text(which)

    def groups(self) -> tuple[str | None, ...]:
        """The texts of all groups; null for one that did not take part in the match."""
        return tuple(map(self._text, range(1, len(self._spans))))

    def groupdict(self) -> dict[str, str | None]:
        """The texts of the groups that have names."""
        return {name: self._text(name) for name in self._names}

    def start(self, which: int | str = 0) -> int:
        """The start of a group, in characters; −1 of one that did not take part."""
        return self._characters(self.place(which)[0])

    def end(self, which: int | str = 0) -> int:
        """The end of a group, in characters."""
        return self._characters(self.place(which)[1])

    def span(self, which: int | str = 0) -> tuple[int, int]:
        return self.start(which), self.end(which)

    def place(self, which: int | str = 0) -> TextSpan:
        """The start and end of a group, in bytes."""
        number = self._names.get(which, -1) if isinstance(which, str) else which
        if not 0 <= number < len(self._spans):
            raise IndexError(_no_group(which))
        return self._spans[number]

    def _text(self, which: int | str) -> str | None:
        start, end = self.place(which)
        return None if start < 0 else self._data[start:end].decode()

    def _characters(self, at: int) -> int:
        return at if at < 0 else len(self._data[:at].decode())


@dataclass(frozen=True, slots=True)
class TextPattern:
    regexp: Any
    names: Mapping[str, int] = field(default_factory=dict)

    @property
    def groups(self) -> tuple[str | None, ...]:
        named = {index: name for name, index in self.names.items()}
        return tuple(named.get(i + 1) for i in range(self.regexp.groups))

    def found(self, how: str, data: bytes, at: int = 0) -> TextMatch | None:
        """The first result of `search`, `match` or `fullmatch` from a position on."""
        found = getattr(self.regexp, how)(data, at)
        if found is None:
            return None
        spans = tuple(found.span(i) for i in range(self.regexp.groups + 1))
        return TextMatch(data, spans, self.names)

    def all_in(self, text: str) -> Iterator[TextMatch]:
        """All matches from left to right; the search after an empty match goes on one character
        further.
        """
        data, at = text.encode(), 0
        while at <= len(data):
            found = self.found("search", data, at)
            if found is None:
                return
            yield found
            start, end = found.place()
            at = end if end > start else _next_character(data, end)


def _next_character(data: bytes, at: int) -> int:
    at += 1
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return at


@lru_cache(maxsize=_KEPT)
def compiled(pattern: str) -> TextPattern:
    """The compiled pattern; raises a `ValueError` that says what is wrong with it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        regexp = re2.compile(pattern, options)
    except re2.error as problem:
        said = problem.args[0]
        raise ValueError(said.decode() if isinstance(said, bytes) else str(said)) from None
    bare = _ESCAPED.sub("", pattern)
    named = _NAMED.findall(bare)
    if len(set(named)) < len(named):
        raise ValueError("two groups have one name")
    if _WITHOUT_LEAST.search(bare):
        raise ValueError("a repetition lacks its least number: {,")
    names = regexp.groupindex
    return TextPattern(regexp, {name: names[name] for name in sorted(names, key=names.__getitem__)})


@lru_cache(maxsize=_KEPT)
def template(replacement: str, pattern: str) -> tuple[str, ...]:
    """The parts of a replacement: texts at even positions, groups at odd ones."""
    known, parts, rest = compiled(pattern), [""], replacement
    while rest:
        text, slash, rest = rest.partition("\\")
        parts[-1] += text
        if not slash:
            break
        group, literal, rest = _escaped(rest)
        parts[-1] += literal
        if group is not None:
            _check_group(known, group)
            parts += [group, ""]
    return tuple(parts)


def _escaped(rest: str) -> tuple[str | None, str, str]:
    """The group or character of an escape in a replacement, and the rest of the text."""
    if rest[:1] in _ESCAPES and rest:
        return None, _ESCAPES[rest[0]], rest[1:]
    if rest[:1].isascii() and rest[:1].isdigit():
        digits = rest[:2] if rest[:2].isdigit() else rest[:1]
        return digits, "", rest[len(digits) :]
    if rest.startswith("g<") and ">" in rest:
        name, _, behind = rest[2:].partition(">")
        return name, "", behind
    raise ValueError(
        f"`\\{rest[:1]}` is nothing in a replacement: `\\1` and `\\g<name>` are groups"
    )


def _check_group(pattern: TextPattern, group: int | str) -> None:
    if isinstance(group, str) and group.isdigit():
        group = int(group)
    there = group in pattern.names if isinstance(group, str) else group <= len(pattern.groups)
    if not there:
        raise ValueError(_no_group(group))


def _no_group(which: int | str) -> str:
    return f"the pattern has no group {which!r}"


def expanded(parts: tuple[Any, ...], found: TextMatch) -> str:
    """The text of a template for a match."""
    texts = [
        part if i % 2 == 0 else found.group(int(part) if part.isdigit() else part) or ""
        for i, part in enumerate(parts)
    ]
    return "".join(texts)


# Regular expressions: the functions of `re`, and those of SQL.
#
# A pattern is a constant, which is checked when the program is read.


RE, REGEXP = Library("re."), Library()
"""The functions of `re`, by the names that a program has for them, and those of SQL."""
_WHICH = Parameter("a number or a name", lambda kind: kind == STRING or WHOLE.fits(kind))
_MADE = constant(Parameter("a text or a function", lambda kind: kind in (STRING, FUNCTION)))
_PARTED = entry.per_character(120)
_CURES: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("(?=", "(?!", "(?<=", "(?<!"),
        "RE2 does not look around: match what is around as well, and take a group of it",
    ),
    (
        ("(?P=", *(f"\\{digit}" for digit in range(1, 10))),
        "RE2 has no back-references: take groups, and compare them: `m.group(1) == m.group(2)`",
    ),
    (("++", "*+", "?+", "(?>"), "RE2 never backtracks, so there is nothing to be possessive of"),
    (("\\Z",), "the end of the text is `\\z`"),
    (("{,",), "write `{0,n}`: to RE2 `{,n}` are characters"),
    (("invalid repetition size",), "a part is repeated up to 1,000 times, parts in it included"),
)
_SYNTAX = 'patterns are in the syntax of RE2, and texts such as `r"\\d+"`'


# Types of calls.


def _pattern(site: CallSite, position: int) -> TextPattern:
    """The pattern of a call, checked."""
    pattern = site.constant(position)
    place = site.exprs[position].place
    if not isinstance(pattern, str):
        cure = "write it as it is: patterns are checked before anything runs"
        raise site.problem(f"`{site.name}` takes a pattern that is constant", cure, place)
    try:
        return compiled(pattern)
    except ValueError as problem:
        said = f"{pattern!r} is no pattern: {problem}"
        wrong = f"{pattern} {problem}"
        cures = (cure for signs, cure in _CURES if any(sign in wrong for sign in signs))
        raise site.problem(said, next(cures, _SYNTAX), place) from None


def _of_pattern(gives: Callable[[TextPattern], ExprType], position: int = 0) -> CallTyping:
    return lambda site: gives(_pattern(site, position))


def _found(pattern: TextPattern) -> ExprType:
    return MatchOf(pattern.groups)


def _texts(pattern: TextPattern) -> ExprType:
    count = len(pattern.groups)
    return Array(Tuple((STRING,) * count) if count > 1 else STRING)


def _substituted(site: CallSite) -> ExprType:
    pattern = _pattern(site, 0)
    if site.args[1] != FUNCTION:
        _check_template(site, 0, 1)
        return STRING
    made = site.apply(1, (MatchOf(pattern.groups),))
    if not is_open(made) and made != STRING:
        cure = "make it a text: `str(x)`"
        raise site.problem(f"a place is replaced by a text, not by {made}", cure)
    return STRING


def _replaced_all(site: CallSite) -> ExprType:
    _pattern(site, 1)
    _check_template(site, 1, 2)
    return STRING


def _check_template(site: CallSite, pattern: int, position: int) -> None:
    replacement = site.constant(position)
    if not isinstance(replacement, str):
        cure = "or a function of the match: `re.sub(pattern, lambda m: r.name, text)`"
        place = site.exprs[position].place
        raise site.problem(f"`{site.name}` takes a replacement that is constant", cure, place)
    try:
        template(replacement, site.constant(pattern))
    except ValueError as problem:
        cure = "a backslash itself is `\\\\`"
        raise site.problem(f"{replacement!r} is no replacement: {problem}", cure) from None


def _extracted(gives: ExprType) -> CallTyping:
    def rule(site: CallSite) -> ExprType:
        pattern, group = _pattern(site, 1), site.constant(2)
        wanted = group if isinstance(group, int) else 1
        if group is ... and len(site.args) > 2:
            return gives
        if not 0 <= wanted <= len(pattern.groups):
            cure = "parentheses make one; 0 is all that fits"
            raise site.problem(f"the pattern has no group {wanted}", cure)
        return gives

    return rule


def _group(site: CallSite) -> ExprType:
    base = _match_of(site)
    for i, kind in enumerate(site.args):
        group_kind(base, kind, site.constant(i), site.place)
    return STRING if len(site.args) < 2 else Tuple((STRING,) * len(site.args))


def group_kind(base: MatchOf, kind: ExprType, which: Any, place: Place) -> ExprType:
    """The type of a group of a match, which must exist."""
    named = [name for name in base.groups if name is not None]
    if isinstance(which, int) and not 0 <= which <= len(base.groups):
        said = f"the pattern has no group {which}: it has {len(base.groups)}"
        raise TypeProblem(said, place=place)
    if isinstance(which, str) and which not in named:
        known = f"there are {', '.join(named)}" if named else "`(?P<name>…)` gives one a name"
        raise TypeProblem(f"the pattern has no group {which!r}", known, place=place)
    if not is_open(kind) and kind != STRING and number(kind) != LONG:
        raise TypeProblem(f"a group has a number or a name, not a {kind}", place=place)
    return STRING


def _where(gives: ExprType) -> CallTyping:
    def rule(site: CallSite) -> ExprType:
        _group(site)
        return gives

    return rule


def _all_groups(site: CallSite) -> ExprType:
    return Tuple((STRING,) * len(_match_of(site).groups))


def _named_groups(site: CallSite) -> ExprType:
    names = _match_of(site).groups
    return Row(tuple(Field(name, STRING) for name in names if name is not None))


def _match_of(site: CallSite) -> MatchOf:
    assert isinstance(site.base, MatchOf)
    return site.base


MATCH_MEMBERS: Members = {
    "group": method(_group, *(optional(_WHICH),) * 20),
    "groups": method(_all_groups),
    "groupdict": method(_named_groups),
    "start": method(_where(LONG), optional(_WHICH)),
    "end": method(_where(LONG), optional(_WHICH)),
    "span": method(_where(Tuple((LONG, LONG))), optional(_WHICH)),
}


# Bounds of results of constants.


def _filled(limits: Budget, args: list[Any]) -> None:
    texts = [a for a in args if isinstance(a, str)]
    if len(texts) == 3:
        limits.foresee((len(texts[0]) + 1) * (len(texts[1]) + 1) * (len(texts[2]) + 1))


# Functions that programs call.


@RE.strict(_of_pattern(_found), KNOWN_TEXT, TEXT)
def search(pattern: str, text: str) -> TextMatch | None:
    """The first match of the pattern in a text; null if there is none."""
    return compiled(pattern).found("search", text.encode())


@RE.strict(_of_pattern(_found), KNOWN_TEXT, TEXT)
def match(pattern: str, text: str) -> TextMatch | None:
    """The match at the start of a text; null if there is none."""
    return compiled(pattern).found("match", text.encode())


@RE.strict(_of_pattern(_found), KNOWN_TEXT, TEXT)
def fullmatch(pattern: str, text: str) -> TextMatch | None:
    """The whole text, if it fits the pattern, as a match."""
    return compiled(pattern).found("fullmatch", text.encode())


@RE.strict(_of_pattern(lambda p: Array(part(_found(p)))), KNOWN_TEXT, TEXT, cost=_PARTED)
def finditer(pattern: str, text: str) -> list[TextMatch]:
    """All matches, from left to right."""
    return list(compiled(pattern).all_in(text))


@RE.strict(_of_pattern(_texts), KNOWN_TEXT, TEXT, cost=_PARTED)
def findall(pattern: str, text: str) -> list[Any]:
    """The texts of all places that fit; of a pattern with groups those of the group, or tuples."""
    known = compiled(pattern)
    count = len(known.groups)
    if count > 1:
        return [tuple(g or "" for g in found.groups()) for found in known.all_in(text)]
    return [found.group(count) or "" for found in known.all_in(text)]


@RE.strict(_of_pattern(lambda _: Array(STRING)), KNOWN_TEXT, TEXT, optional(WHOLE), cost=_PARTED)
def split(pattern: str, text: str, maxsplit: int = 0) -> list[str | None]:
    """The parts between the matches, and the groups of these; at most `maxsplit` splits if it is
    not 0.
    """
    parts: list[str | None] = []
    data, behind = text.encode(), 0
    for count, found in enumerate(compiled(pattern).all_in(text), 1):
        start, end = found.place()
        parts += [data[behind:start].decode(), *found.groups()]
        behind = end
        if count == maxsplit:
            break
    return [*parts, data[behind:].decode()]


@RE.strict(
    _substituted, KNOWN_TEXT, _MADE, TEXT, optional(WHOLE), cost=_filled, functions=frozenset({1})
)
def sub(
    pattern: str, replacement: str | Callable[[TextMatch], str], text: str, count: int = 0
) -> str:
    r"""The text with another in the places that fit, at most so many if not 0.

    `\1` and `\g<name>` in a replacement are groups; it may be a function of the match.
    """
    known, parts, behind, made = compiled(pattern), list[str](), 0, 0
    data = text.encode()
    for done, found in enumerate(known.all_in(text), 1):
        start, end = found.place()
        parts += [data[behind:start].decode(), _replaced(replacement, pattern, found)]
        made += len(parts[-1])
        check_made(made, "sub")
        behind = end
        if done == count:
            break
    return "".join([*parts, data[behind:].decode()])


def _replaced(replacement: str | Callable[[TextMatch], str], pattern: str, found: TextMatch) -> str:
    if isinstance(replacement, str):
        return expanded(template(replacement, pattern), found)
    made = replacement(found)
    if not isinstance(made, str):
        raise TypeError(f"a place is replaced by a text, not by {made!r}")
    return made


@REGEXP.strict(_of_pattern(lambda _: BOOLEAN, 1), TEXT, KNOWN_TEXT)
def regexp_like(text: str, pattern: str) -> bool:
    """True if some part of a text matches the pattern."""
    return search(pattern, text) is not None


@REGEXP.strict(_of_pattern(lambda _: LONG, 1), TEXT, KNOWN_TEXT)
def regexp_count(text: str, pattern: str) -> int:
    """The number of matches of the pattern in a text."""
    return sum(1 for _ in compiled(pattern).all_in(text))


@REGEXP.strict(_extracted(STRING), TEXT, KNOWN_TEXT, optional(WHOLE))
def regexp_extract(text: str, pattern: str, group: int = 1) -> str:
    """A group of the first place that fits (0: all of it), as in Spark: the empty text for none."""
    found = search(pattern, text)
    return "" if found is None else found.group(group) or ""


@REGEXP.strict(_extracted(Array(STRING)), TEXT, KNOWN_TEXT, optional(WHOLE), cost=_PARTED)
def regexp_extract_all(text: str, pattern: str, group: int = 1) -> list[str]:
    """A group of every place that fits (0: all of it)."""
    return [found.group(group) or "" for found in compiled(pattern).all_in(text)]


@REGEXP.strict(_replaced_all, TEXT, KNOWN_TEXT, KNOWN_TEXT, cost=_filled)
def regexp_replace(text: str, pattern: str, replacement: str) -> str:
    r"""The text with another in all places that fit; `\1` and `\g<name>` in it are groups."""
    return sub(pattern, replacement, text) or ""


class ReModule:
    """The value of `re` in a text program: a name with functions."""

    search = staticmethod(search)
    match = staticmethod(match)
    fullmatch = staticmethod(fullmatch)
    finditer = staticmethod(finditer)
    findall = staticmethod(findall)
    split = staticmethod(split)
    sub = staticmethod(sub)


ReModule.__name__ = "re"
RE_ITSELF = Operation(no_call, None, ReModule)
