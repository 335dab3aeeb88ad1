"""`over` without a key, as that of one key: all rows have the same.

A history of one key goes on from its last rows as that of many does. The key is a column that is
0 in each row, so that whoever looks up rows by keys finds these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hydro_core.analysis.identity import mapped
from hydro_core.catalog.internal import RUNNING_OVER
from hydro_core.catalog.itemwise import SELECT, WITH_COLUMNS
from hydro_core.catalog.ordered import OVER
from hydro_core.catalog.spec import Args, OpSpec, functions_of
from hydro_core.catalog.tails import with_tails
from hydro_core.functions.fn import Fn
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.tree import Const
from hydro_core.functions.views import ITEM
from hydro_core.optimize.columns import columns_of
from hydro_core.optimize.rule import lines
from hydro_core.optimize.shape import GLOBAL
from hydro_core.types.item import LONG, Field, ItemType, Row

ONE_KEY = lines(f"""
over-global-running: ({OVER.name}{GLOBAL} ?f (persist ?b))
    => ({SELECT.name} ?h ({RUNNING_OVER.name} ?g ({WITH_COLUMNS.name} ?c ?b)))
    when (one_key ?f ?c ?g ?h)
    rows without a key have the same one
""")
INTRODUCED: tuple[tuple[OpSpec, dict[str, object]], ...] = ((WITH_COLUMNS, {}),)


def of_one_key(args: Args, item: ItemType, output: ItemType) -> Sequence[Args] | None:
    """The arguments of what gives all rows a key, of `over` by it, and of what leaves it out.

    None where `over` has a key, looks at more than the rows before, or at whole rows.
    """
    if args["by"] is not None or not isinstance(item, Row) or not isinstance(output, Row):
        return None
    if any(columns_of(fn) is None for fn in functions_of(args)):
        return None
    name = next(n for n in ("one", *(f"one_{i}" for i in range(99))) if n not in output.names)
    key = replace(function_of(Const(0), (ITEM,)), over=(item,))
    wider = Row((*item.fields, Field(name, LONG)))

    def over_wider(fn: Fn) -> Fn:
        return replace(fn, over=(wider,))

    given: list[tuple[str, Any]] = [(n, mapped(v, over_wider)) for n, v in args.entries]
    keyed = Args(tuple(given)).with_(by=(name,))
    found = with_tails(keyed, wider, OVER.result(keyed, (wider,)))
    if found is None:
        return None
    shown = Args((("columns", output.names), ("computed", ())))
    return args, Args((("computed", ((name, key),)),)), found[0], shown
