"""Aggregates over rows `k, v`, by what rules do to them: name, function and columns of each."""

from __future__ import annotations

RUNNING = (
    (("m", "avg", ("v",)),),
    (("m", "avg", ("v",)), ("n", "count", ("v",)), ("x", "max", ("v",))),
    (("b", "max_by", ("k", "v")), ("s", "min_by", ("v", "v"))),
)
MOVING = (
    (("s", "sum", ("v",)), ("n", "count", ())),
    (("m", "avg", ("v",)), ("s", "sum", ("v",)), ("n", "count", ("v",))),
)
DISTINCT = (
    (("d", "count_distinct", ("v",)),),
    (("d", "count_distinct", ("v", "k")), ("x", "max", ("v",))),
)
MIXED = (
    (("d", "count_distinct", ("v",)), ("n", "count", ())),
    (("s", "sum", ("v",)), ("d", "count_distinct", ("v",)), ("m", "avg", ("v",))),
)
