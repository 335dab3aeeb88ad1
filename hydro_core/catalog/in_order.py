"""Folds and scans of a key's rows in an order of their own: what they are over a sorted stream.

A sort goes through all items in each tick, a fold behind it through those of all keys. Where the
order is an argument, a key's result depends on that key's rows alone.
"""

from __future__ import annotations

from dataclasses import replace

from hydro_core.catalog import lineage_rules
from hydro_core.catalog.classes import OrderedByKey
from hydro_core.catalog.group import FOLD_KEYED, REDUCE_KEYED
from hydro_core.catalog.inputs import WHOLE
from hydro_core.catalog.order import SCAN_KEYED
from hydro_core.catalog.ordered import DESCENDING, ORDER
from hydro_core.catalog.spec import Example, OpSpec, OrderRule
from hydro_core.catalog.variants import Places

_PAIRS = {"a": "(string, long)"}


def _sorted(op: OpSpec, example: Example) -> OpSpec:
    """The operator over a stream in no order, of which it goes through each key by `order`."""
    return replace(
        op,
        name=f"sorted_{op.name}",
        summary=f"`{op.name}` of the items in the order of `order`; ties by the item, ascending",
        inputs=WHOLE,
        args=(*op.args, ORDER, DESCENDING),
        refine=None,
        order=OrderRule.LOSES,
        lineage=lineage_rules.keyed_in_order,
        stands_for=op.name,
        aliases=(),
        example=example,
    )


SORTED_FOLD_KEYED = _sorted(
    FOLD_KEYED,
    Example(
        "a -> sort() -> fold_keyed(0, lambda acc, v: acc * 10 + v) -> out",
        ({"a": [["x", 2], ["x", 1], ["y", 3]]},),
        ({"out": [["x", 12], ["y", 3]]},),
        _PAIRS,
    ),
)

SORTED_REDUCE_KEYED = _sorted(
    REDUCE_KEYED,
    Example(
        "a -> sort() -> reduce_keyed(lambda x, y: x * 10 + y) -> out",
        ({"a": [["x", 2], ["x", 1], ["y", 3]]},),
        ({"out": [["x", 12], ["y", 3]]},),
        _PAIRS,
    ),
)

SORTED_SCAN_KEYED = replace(
    _sorted(
        SCAN_KEYED,
        Example(
            "a -> sort() -> scan_keyed(0, lambda acc, v: acc * 10 + v) -> out",
            ({"a": [["x", 2], ["x", 1], ["y", 3]]},),
            ({"out": [["x", 1], ["x", 12], ["y", 3]]},),
            _PAIRS,
        ),
    ),
    cls=OrderedByKey(Places.EACH),
    family="group",
)

ENTRIES = (SORTED_FOLD_KEYED, SORTED_REDUCE_KEYED, SORTED_SCAN_KEYED)
