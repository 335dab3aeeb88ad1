"""Patterns in the syntax of RE2, which never backtracks: compiled, and what they find.

Both engines run this code, so a pattern means one thing; a search takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

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
        return self._characters(self.place(which)[0])

    def end(self, which: int | str = 0) -> int:
        """Behind a group, in characters."""
        return self._characters(self.place(which)[1])

    def span(self, which: int | str = 0) -> tuple[int, int]:
        return self.start(which), self.end(which)

    def place(self, which: int | str = 0) -> TextSpan:
        """Where a group begins and ends, in bytes."""
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
            start, end = found.place()
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
