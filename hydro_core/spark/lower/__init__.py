"""From relations to a relation: one function for each operator, by families."""

from hydro_core.spark.lower import (
    combine,
    group,
    io,
    itemwise,
    order,
    results,
    shards,
    state,
    touched,
)

__all__ = [
    "combine",
    "group",
    "io",
    "itemwise",
    "order",
    "results",
    "shards",
    "state",
    "touched",
]
