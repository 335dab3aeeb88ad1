"""YAML as values that know their place in the file, for what people write by hand.

Keys that come twice are refused, which YAML's own readers let pass, and so are aliases that stand
for more than anybody writes, and tags, which are names of types. Everything that is wrong is
collected, so that it is told at once.

A number keeps its digits: the type that is declared for it may hold more than a double does.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from hydro_core.errors import Diagnostic, ProgramError, Span
from hydro_core.functions.call import shortened
from hydro_core.lang.source import did_you_mean
from hydro_core.machine.faults import why_not
from hydro_core.settings import MOST_ALIASED
from hydro_core.types.values import WrittenFloat, is_finer


def is_within_project(file: Path, folder: Path) -> bool:
    """Whether a file that an asset's folder names, links followed, is of the project of the folder.

    A folder that is a link itself has what lies in it.
    """
    return any(_is_below(file, top) for top in (folder, folder.parent.parent))


def leads_out(file: Path) -> bool:
    """True if a file is a link to one that is not below its folder."""
    return not _is_below(file, file.parent)


def _is_below(file: Path, folder: Path) -> bool:
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))


def declared_text(file: Path) -> str:
    """Text of a file that declares something.

    Raises:
        ProgramError: it cannot be read (code `config`).
    """
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        cure = "see that it is there, may be read, and is saved as UTF-8"
        why = why_not(file, problem) if isinstance(problem, OSError) else str(problem)
        raise ProgramError.of("config", f"{file} cannot be read: {why}", help=cure) from None


_OWN = "tag:yaml.org,2002:"
_TAGS: Mapping[type[yaml.Node], frozenset[str]] = {
    yaml.MappingNode: frozenset({f"{_OWN}map"}),
    yaml.SequenceNode: frozenset({f"{_OWN}seq"}),
    yaml.ScalarNode: frozenset(
        f"{_OWN}{name}"
        for name in (
            *("binary", "bool", "float", "int", "merge"),
            *("null", "str", "timestamp", "value"),
        )
    ),
}
"""The tags of YAML that a value may have, or has by how it is written."""

_YAML = "YAML has `name: value` a line, lists as `[a, b]`, and texts with signs in quotes"

_MOST_SHOWN = 60
"""Values of several parts are shown up to this length, and said to be such beyond."""
_MOST_BITS = 1023
"""No number that is meant has more; what has thousands of digits cannot be shown, and no double is
as large."""


@dataclass(frozen=True, slots=True)
class YamlValue:
    """A value: a `dict` of values by name, a `list` of values, or a scalar."""

    of: Any
    span: Span

    @property
    def plain(self) -> Any:
        """The value without places."""
        if isinstance(self.of, dict):
            return {name: value.plain for name, value in self.of.items()}
        if isinstance(self.of, list):
            return [value.plain for value in self.of]
        return self.of


class Document:
    """A YAML file that is read, and what is found to be wrong with it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.problems: list[Diagnostic] = []
        self._lines: list[str] = []
        self._starts: list[int] = [0]

    def read(self) -> YamlValue:
        """What the file holds.

        Raises:
            ProgramError: it cannot be read, or is no YAML.
        """
        try:
            return self.parsed(self._text()) or YamlValue({}, self._span(0, 0))
        except yaml.MarkedYAMLError as problem:
            mark = problem.problem_mark or problem.context_mark
            span = self._span(*self._place(mark)) if mark else None
            message = f"this is no YAML: {problem.problem or problem.context}"
            raise ProgramError.of("config", message, span, help=_YAML) from None
        except yaml.YAMLError as problem:
            message = f"{self.file} is no YAML: {problem}"
            raise ProgramError.of("config", message, help=_YAML) from None
        except RecursionError:
            message = f"{self.file} is no YAML: it nests too deep"
            raise ProgramError.of("config", message, help=_YAML) from None

    def parsed(self, text: str) -> YamlValue | None:
        """The value of a text; None if it is empty.

        Raises:
            YAMLError, RecursionError: it is no YAML.
        """
        self._starts = [0, *(n + 1 for n, char in enumerate(text) if char == "\n")]
        self._lines = text.split("\n")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            return None
        _refuse_many(node)
        return self._value(node)

    def _text(self) -> str:
        if self.file.exists() and not self.file.is_file():
            raise self._unusable("is no file", "put one in its place")
        if not is_within_project(self.file, self.file.parent):
            cure = "put the file itself there"
            raise self._unusable("is a link that leads out of the project", cure)
        return declared_text(self.file)

    def _unusable(self, why: str, cure: str) -> ProgramError:
        return ProgramError.of("config", f"{self.file} {why}", help=cure)

    def done(self) -> None:
        """Ends the reading.

        Raises:
            ProgramError: something was wrong.
        """
        if self.problems:
            raise ProgramError(*self.problems)

    def wrong(self, value: YamlValue, message: str, cure: str) -> None:
        self.problems.append(Diagnostic("config", message, value.span, help=cure))

    def mapping(self, value: YamlValue, what: str) -> Mapping[str, YamlValue]:
        """The value as names with values; of another one it is said that `what` has them."""
        if value.of is None:
            return {}
        if not isinstance(value.of, dict):
            message = f"{what} has names with values, and this is {_kind(value)}"
            self.wrong(value, message, "write `name: value` a line, or `{name: value}`")
            return {}
        return value.of

    def items(self, value: YamlValue, what: str) -> list[YamlValue]:
        """The value as a list; of another one it is said that `what` is one."""
        if value.of is None:
            return []
        if not isinstance(value.of, list):
            cure = "write `- ` before each entry, or `[…]` around them"
            self.wrong(value, f"{what} is a list, and this is {_kind(value)}", cure)
            return []
        return value.of

    def known(self, found: Mapping[str, YamlValue], names: Iterable[str], what: str) -> None:
        listed = tuple(names)
        for name, value in found.items():
            if name not in listed:
                there = ", ".join(f"`{n}`" for n in listed)
                cure = did_you_mean(name, listed) or f"there are {there}"
                self.wrong(value, f"{what} has no `{name}`", cure)

    def fields(
        self, found: Mapping[str, YamlValue], kinds: Mapping[str, Callable[[Any], Any]], what: str
    ) -> dict[str, Any]:
        """The values by name, each as its kind makes it; names that have no kind are wrong.

        A kind gives what a value means, or raises a `ValueError` of two texts: what it is to be,
        and the cure.
        """
        self.known(found, kinds, what)
        made = {}
        for name, value in found.items():
            if name in kinds:
                try:
                    made[name] = kinds[name](value.plain)
                except ValueError as problem:
                    said = f"`{name}` is {_shown(value)}, and is to be {problem.args[0]}"
                    self.wrong(value, said, problem.args[1])
        return made

    def _value(self, node: yaml.Node) -> YamlValue:
        _refuse_tag(node)
        if isinstance(node, yaml.MappingNode):
            return YamlValue(dict(self._entries(node)), self._of(node))
        if isinstance(node, yaml.SequenceNode):
            return YamlValue([self._value(inner) for inner in node.value], self._of(node))
        return YamlValue(_scalar(node), self._of(node))

    def _entries(self, node: yaml.MappingNode) -> Iterator[tuple[str, YamlValue]]:
        seen = set()
        for key, inner in node.value:
            # A name is what is written: YAML reads `on` and `1` as something else.
            _refuse_tag(key)
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if not isinstance(key, yaml.ScalarNode):
                self.wrong(YamlValue(None, self._of(key)), "a name is a text", "write a word")
            elif name in seen:
                cure = "leave one of them out"
                self.wrong(YamlValue(None, self._of(key)), f"`{name}` is said twice", cure)
            seen.add(name)
            yield name, YamlValue(self._value(inner).of, self._of(key))

    def _of(self, node: yaml.Node) -> Span:
        line, column = self._place(node.start_mark)
        end_line, last = self._place(node.end_mark)
        return self._span(line, column, last if end_line == line else len(self._lines[line]))

    def _place(self, mark: yaml.Mark) -> tuple[int, int]:
        """Line and column from 0 on: YAML's own end at separators of Unicode, too."""
        line = bisect_right(self._starts, mark.index) - 1
        return line, mark.index - self._starts[line]

    def _span(self, line: int, column: int, last: int = 0) -> Span:
        text = self._lines[line].removesuffix("\r")
        last = max(last, column + 1)
        return Span(str(self.file), line + 1, column + 1, line + 1, last + 1, text)


def value_of(text: str) -> Any:
    """Value of a text by itself, such as that of `--param`.

    Raises:
        ValueError: it is no YAML.
    """
    document = Document(Path())
    try:
        value = document.parsed(text)
    except yaml.MarkedYAMLError as problem:
        raise ValueError(problem.problem or problem.context) from None
    except (yaml.YAMLError, RecursionError) as problem:
        raise ValueError(str(problem)) from None
    if document.problems:
        raise ValueError(document.problems[0].message)
    return None if value is None else value.plain


def _refuse_tag(node: yaml.Node) -> None:
    """Refuses a tag that no value here is of; YAML's own readers let none pass, either."""
    known = _TAGS.get(type(node), _TAGS[yaml.ScalarNode])
    if node.tag not in known:
        what = f"the tag `{shortened(node.tag)}` means nothing here"
        raise yaml.MarkedYAMLError(None, None, what, node.start_mark)


def _refuse_many(top: yaml.Node) -> None:
    """Refuses aliases that stand for more than `MOST_ALIASED` values beside those that are written:
    a line of aliases of aliases is a number of values that no machine holds.
    """
    sizes: dict[int, int | None] = {}

    def size(node: yaml.Node) -> int:
        known = sizes.get(id(node), 0)
        if known is None:
            raise yaml.MarkedYAMLError(None, None, "an alias is in itself", node.start_mark)
        if known:
            return known
        sizes[id(node)] = None
        if isinstance(node, yaml.ScalarNode):
            # A long text counts as several values: it is as dear to repeat.
            found = 1 + len(node.value) // 100
        elif isinstance(node, yaml.MappingNode):
            found = 1 + sum(size(key) + size(value) for key, value in node.value)
        else:
            found = 1 + sum(map(size, node.value))
        sizes[id(node)] = found
        written.append(1 if isinstance(node, yaml.CollectionNode) else found)
        return found

    written: list[int] = []
    if size(top) - sum(written) > MOST_ALIASED:
        message = f"its aliases stand for more than {MOST_ALIASED:,} values"
        raise yaml.MarkedYAMLError(None, None, message, top.start_mark)


def _scalar(node: yaml.Node) -> Any:
    try:
        value = yaml.SafeLoader("").construct_object(node)
    except yaml.YAMLError:
        raise
    except (ArithmeticError, AttributeError, LookupError, ValueError) as problem:
        # A tag such as `!!bool` is taken at its word by what reads it.
        what = str(problem) if isinstance(problem, ValueError) else ""
        what = what or f"{shortened(node.value)} is no {node.tag.rpartition(':')[2]}"
        raise yaml.MarkedYAMLError(None, None, what, node.start_mark) from None
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        what = f"a number of more than {_MOST_BITS:,} bits"
        raise yaml.MarkedYAMLError(None, None, what, node.start_mark)
    if isinstance(value, float):
        return _with_digits(value, node.value.replace("_", ""))
    if isinstance(value, datetime) and is_finer(node.value):
        # YAML's reader drops the digits; who knows the type refuses the text.
        return node.value
    if isinstance(value, str) and "\0" in value:
        raise yaml.MarkedYAMLError(None, None, "a text with a NUL in it", node.start_mark)
    return value


def _with_digits(value: float, text: str) -> float:
    """The number with its digits; one of base 60, an infinity or a NaN is as it is."""
    try:
        return WrittenFloat(text) if math.isfinite(value) else value
    except ValueError:
        return value


def _shown(value: YamlValue) -> str:
    """Text of a value as it is written, or its kind if that is long."""
    if not value.of or not isinstance(value.of, dict | list):
        return _kind(value)
    text = yaml.safe_dump(value.plain, default_flow_style=True, sort_keys=False, width=_MOST_SHOWN)
    return (
        f"`{text.strip()}`" if len(text) <= _MOST_SHOWN and text.count("\n") == 1 else _kind(value)
    )


yaml.SafeDumper.add_representer(
    WrittenFloat, lambda to, number: to.represent_scalar(f"{_OWN}float", repr(number))
)


def _kind(value: YamlValue) -> str:
    match value.of:
        case None:
            return "empty"
        case dict():
            return "names with values"
        case list():
            return "a list"
        case bool():
            return f"{str(value.of).lower()} (`yes`, `no`, `on` and `off` mean that, too)"
        case str():
            return f"the text {value.of!r}"
        case _:
            return f"{value.of}"
