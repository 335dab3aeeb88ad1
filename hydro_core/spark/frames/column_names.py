"""The names of columns beside the items: what `Relation` says of them. No Spark is loaded."""

from __future__ import annotations

ITEM, TICK, UNTIL, ORD, COUNT = "item", "t", "until", "ord", "n"


def quoted(name: str) -> str:
    """The name of a column as Spark reads it, whatever characters it has."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"
