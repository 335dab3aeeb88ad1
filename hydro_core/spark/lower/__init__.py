"""From relations to a relation: one function for each operator, by families."""

from hydro_core.spark.lower import (
    combine,
    differences,
    group,
    io,
    itemwise,
    order,
    shards,
    state,
    touched,
)

__all__ = [
    "combine",
    "differences",
    "group",
    "io",
    "itemwise",
    "order",
    "shards",
    "state",
    "touched",
]
