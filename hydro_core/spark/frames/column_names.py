"""The names of columns beside the items: what `Relation` says of them. No Spark is loaded."""

from __future__ import annotations

ITEM, TICK, UNTIL, ORD, COUNT = "item", "t", "until", "ord", "n"
