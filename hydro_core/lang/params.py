"""Parameters: constants that a program names and that a run gives.

They are items, of the type of their value. A program with another value is another program: the
value is a part of its functions, never text that is inserted before they are read.
"""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hydro_core.errors import Diagnostic, ProgramError, Span
from hydro_core.functions.library.registry import DATA_FUNCTIONS
from hydro_core.functions.reading.scope import plain, visible_builtin
from hydro_core.ir.graph import Graph
from hydro_core.lang.source import did_you_mean
from hydro_core.types.values import ValueProblem, to_item


@dataclass(frozen=True, slots=True)
class Params:
    """Constants by name, with their locations, if they are given in a file."""

    values: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[str, Span] = field(default_factory=dict, compare=False)


NO_PARAMS = Params()


def params_of(given: Mapping[str, Any], places: Mapping[str, Span] | None = None) -> Params:
    """The parameters from values by name.

    Args:
        given: Python values: booleans, numbers, texts, dates, times with an offset, lists and
            mappings of these.
        places: the location of each value, for those in a file.

    Raises:
        ProgramError: a name is no name or has another meaning, or a value is no item (code
            `config`).
    """
    at = places or {}
    wrong = {name: said for name, value in given.items() if (said := _wrong(name, value))}
    if wrong:
        raise ProgramError(
            *(Diagnostic("config", w[0], at.get(name), help=w[1]) for name, w in wrong.items())
        )
    return Params({name: plain(to_item(value)) for name, value in given.items()}, at)


def _wrong(name: str, value: Any) -> tuple[str, str] | None:
    """The problem of a parameter, and the help; None if there is no problem."""
    if not name.isidentifier() or keyword.iskeyword(name):
        message = f"a parameter is a name in a program, and `{name}` is none"
        return message, "take letters, digits and `_`, such as `threshold`"
    if visible_builtin(name) is not None and name not in DATA_FUNCTIONS:
        message = f"`{name}` is a function of Python, so it is no parameter"
        return message, f"take another name, such as `the_{name}`"
    parts = list(_parts(value))
    if None in parts:
        message = f"the parameter `{name}` has no value, so it has no type"
        return message, "give it one, or leave it out"
    if any(isinstance(part, datetime) and part.tzinfo is None for part in parts):
        message = f"the parameter `{name}` is a time without an offset"
        return message, "say which: `2026-01-01T06:00:00Z`, or `+01:00` in the place of `Z`"
    try:
        to_item(value)
    except ValueProblem as problem:
        return f"the parameter `{name}`: {problem}", "such as `100`, `0.5`, `EUR` or `[DE, FR]`"
    return None


def _parts(value: Any) -> Iterator[Any]:
    """The scalar parts of a value."""
    match value:
        case dict():
            for part in value.values():
                yield from _parts(part)
        case list() | tuple():
            for part in value:
                yield from _parts(part)
        case _:
            yield value


def written(params: Params) -> Mapping[str, str]:
    """The parameters as texts, by name; equal texts mean equal types and values."""
    return {name: repr(value) for name, value in sorted(params.values.items())}


def changed_params(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The differences between two `written` ones, a sentence for each parameter."""
    names = sorted({*before, *after})
    return [
        f"parameter `{name}`: {before.get(name, 'none')} → {after.get(name, 'none')}"
        for name in names
        if before.get(name) != after.get(name)
    ]


def check_named(params: Params, text: str, graph: Graph) -> None:
    """Checks that a program names its parameters, and has no stream with such a name.

    Raises:
        ProgramError: it does not (code `config`).
    """
    words = frozenset(re.findall(r"\w+", text))
    problems = []
    for name in params.values:
        span = params.places.get(name)
        if name in graph.nodes or name in graph.sinks:
            message = f"`{name}` is a stream of the program, and a parameter"
            problems.append(Diagnostic("config", message, span, help="give one another name"))
        elif name not in words:
            message = f"the program names no `{name}`, which is given as a parameter"
            cure = did_you_mean(name, words) or "name it in a function, or leave it out"
            problems.append(Diagnostic("config", message, span, help=cure))
    if problems:
        raise ProgramError(*problems)


def called_with(make: Callable[..., object], params: Params, spec: str) -> object:
    """The result of a Python function that gets the parameters by name.

    Raises:
        ProgramError: its parameters are others (code `config`).
    """
    try:
        inspect.signature(make).bind(**params.values)
    except ValueError:
        pass  # The function is not Python's own, and has no signature.
    except TypeError as problem:
        said = ", ".join(f"`{name}`" for name in params.values) or "none"
        message = f"`{spec}` does not take the parameters that are given ({said}): {problem}"
        cure = "its arguments are its parameters: give each that has no default, and no others"
        raise ProgramError.of("config", message, help=cure) from None
    return make(**params.values)
