"""The functions of `over` as programs write them: `lag("price", 1)`, `running(sum("v"))`.

The same for text and Python; a reader knows what a written argument is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hydro_core.catalog.aggregates import NAMES
from hydro_core.catalog.over_functions import FUNCTIONS, OverFunctionSpec
from hydro_core.catalog.spec import Arg, OverFunction
from hydro_core.lang.constant_arguments import (
    ArgumentProblem,
    constant_argument,
    missing_argument,
    no_argument,
)
from hydro_core.lang.signature import ArgumentReader
from hydro_core.lang.similar import did_you_mean


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
    reader: ArgumentReader[Any],
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
            raise missing_argument(name, parameter.name, _written(spec), written)
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
            raise no_argument(spec.name, name, _written(spec), value)
        if name in given:
            message = f"`{name}` of `{spec.name}` is given twice"
            raise ArgumentProblem("arity", message, "give it once", value)
        given[name] = value
    return given


def _read(spec: OverFunctionSpec, arg: Arg, written: Any, reader: ArgumentReader[Any]) -> Any:
    match arg.kind:
        case "aggregate":
            return reader.aggregate(written)
        case "operand":
            return reader.column_or_function(written)
    value = reader.constant(written)
    try:
        return constant_argument(replace(arg, name=f"{arg.name}` of `{spec.name}"), value, written)
    except ArgumentProblem as problem:
        problem.help = _written(spec)
        raise


def _check_frame(spec: OverFunctionSpec, read: Sequence[Any], written: object) -> None:
    """One of the arguments that say how far a function looks, where it has several."""
    frames = [
        value
        for arg, value in zip(spec.parameters, read, strict=True)
        if arg.name in ("rows", "within")
    ]
    if frames and frames.count(None) != 1:
        how = "neither" if None in frames else "both"
        message = f"`{spec.name}` takes `rows` or `within`, and {how} is given"
        help_ = '`rolling(sum("v"), rows=7)`, or `rolling(sum("v"), within=timedelta(days=7))`'
        raise ArgumentProblem("arity", message, help_, written)
