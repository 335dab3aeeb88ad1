"""Whether functions may be asked about items that the program never shows them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hydro_core.errors import TypeProblem
from hydro_core.functions.bind import bind
from hydro_core.functions.fn import Fn
from hydro_core.types.item import ItemType


def is_total(fn: Fn, item: ItemType, *, there: bool = False) -> bool:
    """Whether the function has a value for every item of the type, null among them.

    Not for null, if items are `there`.

    >>> import ast
    >>> from hydro_core.functions.read import read_function
    >>> from hydro_core.types.ddl import parse_ddl
    >>> f = read_function(ast.parse("lambda x: x is not None and x > 1", mode="eval").body, {})
    >>> is_total(f, parse_ddl("long")), is_total(f, parse_ddl("decimal(9, 2)"))
    (True, True)
    >>> f = read_function(ast.parse("lambda x: x > 1", mode="eval").body, {})
    >>> is_total(f, parse_ddl("long"))
    False
    """
    if fn.tree is None or len(fn.params) != 1:
        return False
    try:
        return not bind(fn, (item,)).may_fail(there=there)
    except TypeProblem:
        return False


@dataclass(slots=True)
class Uses:
    """The types of items that functions are applied to, in the program and by rules."""

    types: dict[Fn, set[tuple[ItemType, bool]]] = field(default_factory=dict)

    def add(self, fn: Fn, item: ItemType, *, there: bool) -> None:
        """The function may be asked about items of the type, of which none is null if `there`."""
        self.types.setdefault(fn, set()).add((item, there))

    def are_total(self, fns: Iterable[Fn]) -> bool:
        """Whether all of them have a value for every item that they may be asked about."""
        known = self.types.get
        return all(
            known(fn) and all(is_total(fn, item, there=there) for item, there in self.types[fn])
            for fn in fns
        )
