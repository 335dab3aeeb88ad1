"""The functions of `over` as programs write them: `lag("price", 1)`, `running(sum("v"))`.

The same for text and Python; a reader knows what a written argument is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from hydro_core.catalog.aggregates import NAMES
from hydro_core.catalog.over_functions import (
    FUNCTIONS,
    OverFunctionSpec,
    OverParameter,
    is_distance,
)
from hydro_core.catalog.spec import Aggregate, OverFunction
from hydro_core.functions.fn import Fn
from hydro_core.lang.constant_arguments import ArgumentProblem
from hydro_core.lang.similar import did_you_mean
from hydro_core.types.values import ValueProblem, to_item

Written_contra = TypeVar("Written_contra", contravariant=True)


class PartReader(Protocol[Written_contra]):
    """How the arguments of a function of `over` are read."""

    def constant(self, written: Written_contra) -> Any:
        """The value."""

    def aggregate(self, written: Written_contra) -> Aggregate:
        """An aggregate such as `sum("v")`."""

    def column_or_function(self, written: Written_contra) -> str | Fn:
        """A column, or a function of the row."""


def no_function(name: str | None, written: object) -> ArgumentProblem:
    """What stands in the place of a function of `over` is none."""
    if name in NAMES:
        return ArgumentProblem(
            "arity",
            f"the aggregate `{name}` cannot stand here by itself: of which rows is it?",
            f"all of the key's are `whole({name}(…))`, those up to this one `running({name}(…))`,"
            f" the last n `rolling({name}(…), rows=n)`",
            written,
        )
    known = f"the functions are {', '.join(FUNCTIONS)}"
    if name is None:
        return ArgumentProblem("type", "a function of `over` must stand here", known, written)
    help_ = did_you_mean(name, FUNCTIONS) or known
    return ArgumentProblem("arity", f"there is no function `{name}` of `over`", help_, written)


def bound_function(
    name: str,
    positional: Sequence[Any],
    keywords: Mapping[str, Any],
    reader: PartReader[Any],
    written: object,
) -> OverFunction:
    """The function with all its arguments; `ArgumentProblem` for the first that is wrong."""
    if name not in FUNCTIONS:
        raise no_function(name, written)
    spec = FUNCTIONS[name]
    given = _by_name(spec, positional, keywords, written)
    read = tuple(
        _read(spec, p, given[p.name], reader) if p.name in given else p.default
        for p in spec.parameters
    )
    for parameter, value in zip(spec.parameters, read, strict=True):
        if parameter.required and value is None:
            message = f"`{name}` needs the argument `{parameter.name}`"
            raise ArgumentProblem("arity", message, _written(spec), written)
    _check_frame(spec, read, written)
    return OverFunction(name, read)


def _written(spec: OverFunctionSpec) -> str:
    return f"it is written `{spec.usage}`"


def _by_name(
    spec: OverFunctionSpec, positional: Sequence[Any], keywords: Mapping[str, Any], written: object
) -> Mapping[str, Any]:
    places = [p.name for p in spec.parameters if p.positional]
    if len(positional) > len(places):
        count = f"at most {len(places)}" if places else "no"
        message = f"`{spec.name}` takes {count} arguments by place, not {len(positional)}"
        raise ArgumentProblem("arity", message, _written(spec), written)
    given = dict(zip(places, positional, strict=False))
    known = {p.name for p in spec.parameters}
    for name, value in keywords.items():
        if name not in known:
            message = f"`{spec.name}` has no argument `{name}`"
            raise ArgumentProblem("arity", message, _written(spec), value)
        if name in given:
            message = f"`{name}` of `{spec.name}` is given twice"
            raise ArgumentProblem("arity", message, "give it once", value)
        given[name] = value
    return given


def _read(
    spec: OverFunctionSpec, parameter: OverParameter, value: Any, reader: PartReader[Any]
) -> Any:
    match parameter.kind:
        case "aggregate":
            return reader.aggregate(value)
        case "value":
            return reader.column_or_function(value)
        case _:
            return _constant(spec, parameter, reader.constant(value), value)


def _constant(spec: OverFunctionSpec, parameter: OverParameter, value: Any, written: object) -> Any:
    if value is None and not parameter.required and parameter.default is None:
        return None
    wanted = ""
    match parameter.kind:
        case "integer":
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            if not is_whole or value < parameter.least:
                wanted = f"a whole number, {parameter.least} or more"
        case "flag":
            wanted = "" if isinstance(value, bool) else "True or False"
        case "distance":
            wanted = "" if is_distance(value) else "a timedelta or a number, not negative"
        case _:
            try:
                return to_item(value)
            except ValueProblem as problem:
                message = f"`{parameter.name}` of `{spec.name}`: {problem}"
                raise ArgumentProblem("type", message, _written(spec), written) from None
    if wanted:
        message = f"`{parameter.name}` of `{spec.name}` must be {wanted}, not {value!r}"
        raise ArgumentProblem("type", message, _written(spec), written)
    return value


def _check_frame(spec: OverFunctionSpec, read: Sequence[Any], written: object) -> None:
    """One of the arguments that say how far a function looks, where it has several."""
    frames = [p.name for p in spec.parameters if not p.required and p.name in ("rows", "within")]
    told = [
        p.name
        for p, v in zip(spec.parameters, read, strict=True)
        if p.name in frames and v is not None
    ]
    if frames and len(told) != 1:
        how = "both" if told else "neither"
        message = f"`{spec.name}` takes `rows` or `within`, and {how} is given"
        help_ = '`rolling(sum("v"), rows=7)`, or `rolling(sum("v"), within=timedelta(days=7))`'
        raise ArgumentProblem("arity", message, help_, written)


def function_text(function: OverFunction, parts: Mapping[str, Any]) -> str:
    """A call as a program writes it.

    Args:
        function: the function.
        parts: the texts of its arguments by name, in order, without those that are the default's.
    """
    spec, shown, by_place = FUNCTIONS[function.function], [], True
    for parameter in spec.parameters:
        if parameter.name not in parts:
            by_place = False
            continue
        by_place = by_place and parameter.positional
        text = parts[parameter.name]
        shown.append(text if by_place else f"{parameter.name}={text}")
    return f"{spec.name}({', '.join(shown)})"


def said_arguments(function: OverFunction) -> Mapping[str, Any]:
    """The arguments of a function of `over` by name, without those that are the default's."""
    spec = FUNCTIONS[function.function]
    return {
        p.name: value
        for p, value in zip(spec.parameters, function.arguments, strict=True)
        if p.required or (type(value), value) != (type(p.default), p.default)
    }
