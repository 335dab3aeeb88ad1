"""Regular expressions: the functions of `re`, in the syntax of RE2, which never backtracks.

Both engines run this code, so a pattern means one thing. It is a constant, which is checked when
the program is read; a search takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from hydro_core.functions.library.nulls import strict

TextSpan = tuple[int, int]
_NOWHERE = (-1, -1)
_KEPT = 256
"""Patterns that a process keeps compiled."""
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_NAMED = re.compile(r"\(\?P?<(\w+)>")
_WITHOUT_LEAST = re.compile(r"\{,\d+\}")
_ESCAPES = {"\\": "\\", "n": "\n", "t": "\t", "r": "\r"}


class TextMatch:
    """What a search has found: where, and of which text."""

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
        """The texts of all groups; null for one that took no part."""
        return tuple(map(self._text, range(1, len(self._spans))))

    def groupdict(self) -> dict[str, str | None]:
        """The texts of the groups that have names."""
        return {name: self._text(name) for name in self._names}

    def start(self, which: int | str = 0) -> int:
        """Where a group begins, in characters; −1 of one that took no part."""
        return self._place(self._span(which)[0])

    def end(self, which: int | str = 0) -> int:
        """Behind a group, in characters."""
        return self._place(self._span(which)[1])

    def span(self, which: int | str = 0) -> tuple[int, int]:
        """Where a group begins and ends."""
        return self.start(which), self.end(which)

    def _span(self, which: int | str) -> TextSpan:
        if isinstance(which, str):
            if which not in self._names:
                raise IndexError(f"the pattern has no group {which!r}")
            which = self._names[which]
        if not 0 <= which < len(self._spans):
            raise IndexError(f"the pattern has no group {which}")
        return self._spans[which]

    def _text(self, which: int | str) -> str | None:
        start, end = self._span(which)
        return None if start < 0 else self._data[start:end].decode()

    def _place(self, at: int) -> int:
        return at if at < 0 else len(self._data[:at].decode())


@dataclass(frozen=True, slots=True)
class TextPattern:
    """A pattern that is compiled."""

    regexp: Any
    names: Mapping[str, int] = field(default_factory=dict)

    @property
    def groups(self) -> tuple[str | None, ...]:
        """The names of the groups, None of those that have none."""
        named = {index: name for name, index in self.names.items()}
        return tuple(named.get(i + 1) for i in range(self.regexp.groups))

    def found(self, how: str, data: bytes, at: int = 0) -> TextMatch | None:
        """What `search`, `match` or `fullmatch` finds from a place on."""
        found = getattr(self.regexp, how)(data, at)
        if found is None:
            return None
        spans = tuple(found.span(i) for i in range(self.regexp.groups + 1))
        return TextMatch(data, spans, self.names)

    def all_in(self, text: str) -> Iterator[TextMatch]:
        """What is found one after the other; after an empty match one character further on."""
        data, at = text.encode(), 0
        while at <= len(data):
            found = self.found("search", data, at)
            if found is None:
                return
            yield found
            start, end = found._span(0)  # noqa: SLF001 - in bytes
            at = end if end > start else _next_character(data, end)


def _next_character(data: bytes, at: int) -> int:
    at += 1
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return at


@lru_cache(maxsize=_KEPT)
def compiled(pattern: str) -> TextPattern:
    """The pattern compiled; a `ValueError` that says what is wrong with it."""
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
    """Texts, and at the odd places groups."""
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
    """What stands behind a backslash: a group or a character; and what follows it."""
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
        raise ValueError(f"the pattern has no group {group!r}")


def _expanded(parts: tuple[Any, ...], found: TextMatch) -> str:
    texts = [
        part if i % 2 == 0 else found.group(int(part) if part.isdigit() else part) or ""
        for i, part in enumerate(parts)
    ]
    return "".join(texts)


# what programs call


@strict
def search(pattern: str, text: str) -> TextMatch | None:
    """The first place of a text that fits the pattern, as a match; null where there is none."""
    return compiled(pattern).found("search", text.encode())


@strict
def match(pattern: str, text: str) -> TextMatch | None:
    """The beginning of a text, if it fits the pattern, as a match."""
    return compiled(pattern).found("match", text.encode())


@strict
def fullmatch(pattern: str, text: str) -> TextMatch | None:
    """The whole text, if it fits the pattern, as a match."""
    return compiled(pattern).found("fullmatch", text.encode())


@strict
def finditer(pattern: str, text: str) -> list[TextMatch]:
    """All places that fit, one behind the other, as matches."""
    return list(compiled(pattern).all_in(text))


@strict
def findall(pattern: str, text: str) -> list[Any]:
    """The texts of all places that fit; of a pattern with groups those of the group, or tuples."""
    known = compiled(pattern)
    count = len(known.groups)
    if count > 1:
        return [tuple(g or "" for g in found.groups()) for found in known.all_in(text)]
    return [found.group(count) or "" for found in known.all_in(text)]


@strict
def split(pattern: str, text: str, maxsplit: int = 0) -> list[str | None]:
    """The parts between the places that fit, and the groups of these; at most so many if not 0."""
    parts: list[str | None] = []
    data, behind = text.encode(), 0
    for count, found in enumerate(compiled(pattern).all_in(text), 1):
        start, end = found._span(0)  # noqa: SLF001 - in bytes
        parts += [data[behind:start].decode(), *found.groups()]
        behind = end
        if count == maxsplit:
            break
    return [*parts, data[behind:].decode()]


@strict
def sub(
    pattern: str, replacement: str | Callable[[TextMatch], str], text: str, count: int = 0
) -> str:
    r"""The text with another in the places that fit, at most so many if not 0.

    `\1` and `\g<name>` in a replacement are groups; it may be a function of the match.
    """
    known, parts, behind = compiled(pattern), list[str](), 0
    data = text.encode()
    for done, found in enumerate(known.all_in(text), 1):
        start, end = found._span(0)  # noqa: SLF001 - in bytes
        parts += [data[behind:start].decode(), _replaced(replacement, pattern, found)]
        behind = end
        if done == count:
            break
    return "".join([*parts, data[behind:].decode()])


def _replaced(replacement: str | Callable[[TextMatch], str], pattern: str, found: TextMatch) -> str:
    if isinstance(replacement, str):
        return _expanded(template(replacement, pattern), found)
    made = replacement(found)
    if not isinstance(made, str):
        raise TypeError(f"a place is replaced by a text, not by {made!r}")
    return made


@strict
def regexp_like(text: str, pattern: str) -> bool:
    """Whether a place of a text fits the pattern."""
    return search(pattern, text) is not None


@strict
def regexp_count(text: str, pattern: str) -> int:
    """How many places of a text fit the pattern, one behind the other."""
    return sum(1 for _ in compiled(pattern).all_in(text))


@strict
def regexp_extract(text: str, pattern: str, group: int = 1) -> str:
    """A group of the first place that fits (0: all of it), as in Spark: the empty text for none."""
    found = search(pattern, text)
    return "" if found is None else found.group(group) or ""


@strict
def regexp_extract_all(text: str, pattern: str, group: int = 1) -> list[str]:
    """A group of every place that fits (0: all of it)."""
    return [found.group(group) or "" for found in compiled(pattern).all_in(text)]


@strict
def regexp_replace(text: str, pattern: str, replacement: str) -> str:
    r"""The text with another in all places that fit; `\1` and `\g<name>` in it are groups."""
    return sub(pattern, replacement, text) or ""


class ReModule:
    """What a text program sees as `re`: a name with functions."""

    search = staticmethod(search)
    match = staticmethod(match)
    fullmatch = staticmethod(fullmatch)
    finditer = staticmethod(finditer)
    findall = staticmethod(findall)
    split = staticmethod(split)
    sub = staticmethod(sub)


ReModule.__name__ = "re"
