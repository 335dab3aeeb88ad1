"""The catalogue: every operator by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hydro_core.catalog import combine, group, io, itemwise, nearest, order, ordered, state
from hydro_core.catalog.spec import OpSpec

CATALOG: Mapping[str, OpSpec] = MappingProxyType(
    {
        entry.name: entry
        for module in (io, itemwise, combine, nearest, group, ordered, order, state)
        for entry in vars(module).values()
        if isinstance(entry, OpSpec)
    }
)
"""The operators by their names, in the order of the language page's families; aliases apart."""

NAMES: Mapping[str, OpSpec] = MappingProxyType(
    {name: entry for entry in CATALOG.values() for name in (entry.name, *entry.aliases)}
)
"""The operators by all their names."""


def lookup(name: str) -> OpSpec | None:
    """The operator called `name`, by an alias too; None where there is none.

    >>> lookup("defer_tick").name
    'prev'
    """
    return NAMES.get(name)
