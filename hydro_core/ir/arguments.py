"""Arguments in S-expressions: functions by name, everything else as `name=literal`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hydro_core.catalog.spec import Aggregate, Arg, Args, OpSpec, OverFunction
from hydro_core.functions.fn import Fn
from hydro_core.types.ddl import to_ddl
from hydro_core.types.literal import literal

OPEN = frozenset({"computed", "renames", "aggregates", "over_functions"})
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


def _literal(arg: Arg, value: Any, names: Mapping[Fn, str]) -> str:
    if isinstance(value, Fn):
        return names[value]
    if arg.kind == "schema" and value is not None:
        return repr(to_ddl(value))
    return literal(value, repr)


def _open(value: Any, names: Mapping[Fn, str]) -> str:
    match value:
        case Fn():
            return names[value]
        case Aggregate(function, arguments):
            inner = ", ".join(
                names[a] if isinstance(a, Fn) else literal(a, repr) for a in arguments
            )
            return f"{function}({inner})"
        case OverFunction(function, arguments):
            return f"{function}({', '.join(_open(a, names) for a in arguments)})"
        case _:
            return literal(value, repr)
