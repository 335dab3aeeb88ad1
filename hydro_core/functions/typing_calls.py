"""The kinds that calls give: of what is called by its name, and of methods."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from hydro_core.functions.kinds import (
    ANY,
    FUNCTION,
    ExprType,
    computed_of,
    is_open,
)
from hydro_core.functions.library.entry import CallSite
from hydro_core.functions.library.operations import operation
from hydro_core.functions.library.registry import members_of
from hydro_core.types.item import Row


def call(site: CallSite) -> ExprType:
    """The kind of the call's result."""
    entry = operation(site.name)
    if entry is None:
        return ANY
    _refuse_functions(site, entry.functions)
    return entry.result(site)


def method(base: ExprType, site: CallSite) -> ExprType:
    """The kind of `base.name(…)`."""
    if is_open(base):
        return computed_of(base)
    if isinstance(base, Row) and base.column(site.name) is not None:
        raise site.problem(
            f"the column `{site.name}` is not a method", "read it without parentheses"
        )
    known = {name: entry for name, entry in members_of(base).items() if entry.takes is not None}
    if site.name in known:
        _refuse_functions(site)
        return known[site.name].result(base, site)
    near = difflib.get_close_matches(site.name, known, 1)
    raise site.problem(
        f"{base} has no method `{site.name}`", f"did you mean `.{near[0]}`?" if near else None
    )


def _refuse_functions(site: CallSite, but: Collection[str | int] = ()) -> None:
    """Refuses functions where values are meant."""
    for which, kind in (*enumerate(site.args), *site.keywords.items()):
        if kind == FUNCTION and which not in but:
            shown = f"argument {which + 1}" if isinstance(which, int) else f"`{which}`"
            cure = "call it: `f(…)` is a value, `f` a function"
            raise site.problem(f"{shown} of `{site.name}` is a function, not a value", cure)
