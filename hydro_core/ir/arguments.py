"""Arguments in S-expressions: functions by name, everything else as `name=literal`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hydro_core.catalog.internal import operator
from hydro_core.catalog.spec import Aggregate, Arg, Args, OpSpec
from hydro_core.functions.fn import Fn
from hydro_core.functions.read import constant
from hydro_core.types.ddl import parse_ddl, to_ddl
from hydro_core.types.literal import literal

Reader = Callable[[str, str, Mapping[str, Fn]], tuple[str, Any]]
OPEN: Mapping[str, Reader] = {
    "computed": lambda name, text, functions: (name, functions[text]),
    "renames": lambda name, text, _: (name, ast.literal_eval(text)),
    "aggregates": lambda name, text, functions: (name, _aggregate(text, functions)),
}
"""Kinds of arguments that are open lists of `name=…`."""


def printed(op: OpSpec, args: Args, names: Mapping[Fn, str]) -> list[str]:
    """The arguments as they are printed: functions, then `name=literal` where not the default."""
    first, rest = [], []
    for arg in op.args:
        value = args.get(arg.name, arg.default)
        if arg.kind == "function" and isinstance(value, Fn):
            first.append(names[value])
        elif arg.kind in OPEN:
            rest += [f"{name}={_open(value, names)}" for name, value in value or ()]
        elif value != arg.default or arg.required or type(value) is not type(arg.default):
            rest.append(f"{arg.name}={_literal(arg, value, names)}")
    return first + rest


def read_argument(
    name: str, given: Sequence[str | None], functions: Mapping[str, Fn]
) -> tuple[OpSpec, Args, tuple[int, ...]]:
    """The operator called `name`, its arguments, and the positions of `given` that are streams.

    `given` is what follows the operator: the text of an atom, None for an expression.
    """
    op = operator(name)
    wanted = [a for a in op.args if a.kind == "function"]
    values: dict[str, Any] = {a.name: a.default for a in op.args}
    opened: dict[str, list[tuple[str, Any]]] = {}
    streams: list[int] = []
    for position, text in enumerate(given):
        key, equals, literal = (text or "").partition("=")
        if text is not None and wanted and not equals:
            values[wanted.pop(0).name] = functions[text]
        elif text is not None and equals and key.isidentifier():
            _keyword(op, key, literal, functions, values, opened)
        else:
            streams.append(position)
    values |= {kind: tuple(pairs) for kind, pairs in opened.items()}
    return op, Args(tuple(values.items())), tuple(streams)


def _keyword(
    op: OpSpec,
    key: str,
    literal: str,
    functions: Mapping[str, Fn],
    values: dict[str, Any],
    opened: dict[str, list[tuple[str, Any]]],
) -> None:
    arg = op.arg(key)
    if arg is not None and arg.kind not in OPEN:
        values[key] = _value(arg, literal, functions)
        return
    open_arg = next((a for a in op.args if a.kind in OPEN), None)
    if open_arg is None:
        raise ValueError(f"`{op.name}` has no argument {key!r}")
    opened.setdefault(open_arg.name, []).append(OPEN[open_arg.kind](key, literal, functions))


def _literal(arg: Arg, value: Any, names: Mapping[Fn, str]) -> str:
    if isinstance(value, Fn):
        return names[value]
    if arg.kind == "schema" and value is not None:
        return repr(to_ddl(value))
    return literal(value, repr)


def _value(arg: Arg, text: str, functions: Mapping[str, Fn]) -> Any:
    if text in functions:
        return functions[text]
    if arg.kind == "schema":
        return None if text == "None" else parse_ddl(ast.literal_eval(text))
    if arg.kind in {"value", "items"}:
        value = constant(ast.parse(text, mode="eval").body, {})
        return tuple(value) if arg.kind == "items" else value
    return ast.literal_eval(text)


def _open(value: Any, names: Mapping[Fn, str]) -> str:
    match value:
        case Fn():
            return names[value]
        case Aggregate(function, arguments):
            inner = ", ".join(
                names[a] if isinstance(a, Fn) else literal(a, repr) for a in arguments
            )
            return f"{function}({inner})"
        case _:
            return literal(value, repr)


def _aggregate(text: str, functions: Mapping[str, Fn]) -> Aggregate:
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise TypeError(f"{text} is not an aggregate")
    parts = tuple(
        functions[a.id] if isinstance(a, ast.Name) else ast.literal_eval(a) for a in call.args
    )
    return Aggregate(call.func.id, parts)
