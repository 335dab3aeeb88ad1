"""What regular expressions are checked for, and what they give: the entries of `re`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.constant_limits import Budget
from hydro_core.functions.kinds import FUNCTION, ExprType, MatchOf, Place, is_open, number, part
from hydro_core.functions.library import regex
from hydro_core.functions.library.entry import (
    TEXT,
    WHOLE,
    CallSite,
    LibraryFunction,
    Parameter,
    constant,
    members,
    method,
    optional,
)
from hydro_core.functions.library.nulls import of_data
from hydro_core.types.item import BOOLEAN, LONG, STRING, Array, Field, Row, Tuple

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


# the types of calls


def _pattern(site: CallSite, position: int) -> regex.TextPattern:
    """The pattern of a call, which is checked here."""
    pattern = site.constant(position)
    place = site.exprs[position].place
    if not isinstance(pattern, str):
        cure = "write it as it is: patterns are checked before anything runs"
        raise site.problem(f"`{site.name}` takes a pattern that is constant", cure, place)
    try:
        return regex.compiled(pattern)
    except ValueError as problem:
        said = f"{pattern!r} is no pattern: {problem}"
        wrong = f"{pattern} {problem}"
        cures = (cure for signs, cure in _CURES if any(sign in wrong for sign in signs))
        raise site.problem(said, next(cures, _SYNTAX), place) from None


def _of_pattern(gives: Callable[[regex.TextPattern], ExprType], position: int = 0) -> Any:
    return lambda site: gives(_pattern(site, position))


def _found(pattern: regex.TextPattern) -> ExprType:
    return MatchOf(pattern.groups)


def _texts(pattern: regex.TextPattern) -> ExprType:
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
        regex.template(replacement, site.constant(pattern))
    except ValueError as problem:
        cure = "a backslash itself is `\\\\`"
        raise site.problem(f"{replacement!r} is no replacement: {problem}", cure) from None


def _extracted(gives: ExprType) -> Any:
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


def _group(base: ExprType, site: CallSite) -> ExprType:
    assert isinstance(base, MatchOf)
    for i, kind in enumerate(site.args):
        group_kind(base, kind, site.constant(i), site.place)
    return STRING if len(site.args) < 2 else Tuple((STRING,) * len(site.args))


def group_kind(base: MatchOf, kind: ExprType, which: Any, place: Place) -> ExprType:
    """The kind of a group of a match, which must be there."""
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


def _where(gives: ExprType) -> Any:
    def rule(base: ExprType, site: CallSite) -> ExprType:
        _group(base, site)
        return gives

    return rule


def _all_groups(base: ExprType, _: CallSite) -> ExprType:
    assert isinstance(base, MatchOf)
    return Tuple((STRING,) * len(base.groups))


def _named_groups(base: ExprType, _: CallSite) -> ExprType:
    assert isinstance(base, MatchOf)
    return Row(tuple(Field(name, STRING) for name in base.groups if name is not None))


# what is made of constants at most


def _filled(limits: Budget, args: list[Any]) -> None:
    texts = [a for a in args if isinstance(a, str)]
    if len(texts) == 3:
        limits.foresee((len(texts[0]) + 1) * (len(texts[1]) + 1) * (len(texts[2]) + 1))


def _parted(limits: Budget, args: list[Any]) -> None:
    limits.foresee(120 * sum(len(a) for a in args if isinstance(a, str)))


_KNOWN = constant(TEXT)
_WHICH = Parameter("a number or a name", lambda kind: kind == STRING or WHOLE.fits(kind))
_MADE = Parameter("a text or a function", lambda kind: kind in (STRING, FUNCTION), "constant")
MATCH_MEMBERS = members(
    method("group", *(optional(_WHICH),) * 20, gives=_group),
    method("groups", gives=_all_groups),
    method("groupdict", gives=_named_groups),
    method("start", optional(_WHICH), gives=_where(LONG)),
    method("end", optional(_WHICH), gives=_where(LONG)),
    method("span", optional(_WHICH), gives=_where(Tuple((LONG, LONG)))),
)
_AT_MOST = optional(WHOLE)
OF_RE: Mapping[str, LibraryFunction] = {
    "re.search": of_data(regex.search, _of_pattern(_found), _KNOWN, TEXT),
    "re.match": of_data(regex.match, _of_pattern(_found), _KNOWN, TEXT),
    "re.fullmatch": of_data(regex.fullmatch, _of_pattern(_found), _KNOWN, TEXT),
    "re.finditer": of_data(
        regex.finditer, _of_pattern(lambda p: Array(part(_found(p)))), _KNOWN, TEXT, cost=_parted
    ),
    "re.findall": of_data(regex.findall, _of_pattern(_texts), _KNOWN, TEXT, cost=_parted),
    "re.split": of_data(
        regex.split, _of_pattern(lambda _: Array(STRING)), _KNOWN, TEXT, _AT_MOST, cost=_parted
    ),
    "re.sub": of_data(
        *(regex.sub, _substituted, _KNOWN, _MADE, TEXT, _AT_MOST),
        cost=_filled,
        functions=frozenset({1}),
    ),
}
"""The functions of `re`, by the names that a program has for them."""
REGEXP_FUNCTIONS: Mapping[str, LibraryFunction] = {
    "regexp_like": of_data(regex.regexp_like, _of_pattern(lambda _: BOOLEAN, 1), TEXT, _KNOWN),
    "regexp_count": of_data(regex.regexp_count, _of_pattern(lambda _: LONG, 1), TEXT, _KNOWN),
    "regexp_extract": of_data(
        regex.regexp_extract, _extracted(STRING), TEXT, _KNOWN, optional(WHOLE)
    ),
    "regexp_extract_all": of_data(
        regex.regexp_extract_all,
        _extracted(Array(STRING)),
        TEXT,
        _KNOWN,
        optional(WHOLE),
        cost=_parted,
    ),
    "regexp_replace": of_data(
        regex.regexp_replace, _replaced_all, TEXT, _KNOWN, constant(TEXT), cost=_filled
    ),
}


def _no_call(site: CallSite) -> ExprType:
    raise site.problem("`re` is no function", 'such as `re.search(r"\\d+", x)`')


RE = LibraryFunction(regex.ReModule, _no_call)
