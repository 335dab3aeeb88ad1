"""Which left rows of an as-of join a new right row may change: those up to the next one of its key.

A left row finds the nearest right row. One that comes is nearer than what was found to those rows
alone that stand between it and the next one, which stays what it is to all rows behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hydro_core.catalog.classes import History
from hydro_core.catalog.nearest import TIMES
from hydro_core.ir.graph import Node
from hydro_core.plan.found_rows import (
    FIRST,
    LAST,
    ROW,
    FoundRows,
    Lookup,
    LookupBounds,
    RowsUpToNext,
)
from hydro_core.plan.origins import NewRowOrigins
from hydro_core.plan.stored_rows import sides
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.types.item import FieldPath, is_integer
from hydro_core.types.item import at as leaf_at


def next_partners(
    plan: TickPlan, origins: NewRowOrigins, node: Node, found: Iterable[Lookup]
) -> Iterator[Lookup]:
    """The lookups of left rows of an as-of join by new right ones, found by its key: up to the next
    stored right row where it tells.
    """
    right = plan.graph[node.inputs[1].node]
    slot = origins.stored.slot(right)
    # a row of a history stays; what is nearest on both sides may be anywhere
    told = isinstance(right.cls, History) and not right.cls.before and slot is not None
    if not told or slot is None or node.args["direction"] == "nearest":
        yield from found
        return
    places = _places(origins, node)
    own = sides(node, 1)[0]
    stored = {one.by: one for one in origins.lookups(own, own) or ()}
    at = (node.args["at"],)
    for one in found:
        place, of_key = places.get(one), stored.get(one.by)
        if place is None or of_key is None or not one.fields or set(of_key.theirs) != {*one.theirs}:
            yield one
            continue
        since = (node.args["since"],)
        forward = node.args["direction"] == "forward"
        rows = FoundRows(slot.id, of_key)
        by = RowsUpToNext(one.by, rows, of_key.fields, (since, place), forward)
        fields = tuple((left, (ROW, *theirs)) for left, theirs in one.fields)
        between = LookupBounds(((at, (FIRST,)),), ((at, (LAST,)),))
        yield replace(one, by=by, fields=fields, bounds=between)


def _places(origins: NewRowOrigins, node: Node) -> dict[Lookup, FieldPath]:
    """Where the place stands of the rows that look up; of those alone whose places are compared."""
    (left, keys), (right, others) = sides(node, 0)
    at, since = (node.args["at"],), (node.args["since"],)
    types = leaf_at(origins.stored.item(left), at), leaf_at(origins.stored.item(right), since)
    if types[0] is None or types[0] != types[1]:
        return {}
    if not (types[0] in TIMES or is_integer(types[0])):
        return {}
    found = origins.lookups((left, [*keys, at]), (right, [*others, since]))
    told: dict[Lookup, FieldPath] = {}
    for one in found or ():
        place = dict(one.fields).get(at)
        if place is not None:
            of_key = tuple(pair for pair in one.fields if pair[0] != at)
            told[replace(one, fields=of_key)] = place
    return told
