"""The catalogue: every operator by its name, and the usage text of a call."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hydro_core.catalog import combine, group, itemwise, ordered, state
from hydro_core.catalog.spec import Arg, OpSpec

CATALOG: Mapping[str, OpSpec] = MappingProxyType(
    {
        entry.name: entry
        for module in (itemwise, combine, group, ordered, state)
        for entry in vars(module).values()
        if isinstance(entry, OpSpec)
    }
)
"""The operators by their names, in the order of the language page's families; without aliases."""

NAMES: Mapping[str, OpSpec] = MappingProxyType(
    {name: entry for entry in CATALOG.values() for name in (entry.name, *entry.aliases)}
)
"""The operators by all their names."""


def lookup(name: str) -> OpSpec | None:
    """The operator `name`, which may be an alias; None if there is none.

    >>> lookup("defer_tick").name
    'prev'
    """
    return NAMES.get(name)


ALGEBRA = ("commutative", "associative", "idempotent", "neutral")
"""Properties that a program may declare of a function with an accumulator."""
TYPED = "typed"
"""`typed("long", lambda …)` declares a result's type where there is no argument `returns` for
it.
"""

_OPEN: Mapping[str, str] = MappingProxyType(
    {
        "named_columns": '"column", …',
        "computed": "name=function, …",
        "renames": 'new="old", …',
        "aggregates": "name=aggregate, …",
        "over_functions": "name=function, …",
    }
)


def usage(op: OpSpec) -> str:
    """A call with all its arguments, optional ones in brackets.

    >>> usage(lookup("join"))
    'join(right=stream, [on=…], [how=…], [suffix=…], [where=…])'
    """
    parts = [f"{port.keyword}=stream" for port in op.inputs if port.keyword]
    parts += [_argument(arg) for arg in op.args]
    if op.variadic:
        parts.append("stream, …")
    return f"{op.name}({', '.join(parts)})"


def _argument(arg: Arg) -> str:
    text = _OPEN.get(arg.kind, arg.name if arg.positional else f"{arg.name}=…")
    return text if arg.required or arg.kind in _OPEN else f"[{text}]"
