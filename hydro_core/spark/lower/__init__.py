"""From relations to a relation: one function for each operator, by families."""

from hydro_core.spark.lower import (
    by_key_changes,
    combine,
    group,
    io,
    itemwise,
    order,
    results,
    shards,
    state,
)

__all__ = [
    "by_key_changes",
    "combine",
    "group",
    "io",
    "itemwise",
    "order",
    "results",
    "shards",
    "state",
]
