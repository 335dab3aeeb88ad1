"""From relations to a relation: one function for each operator, by families."""

from hydro_core.spark.lower import (
    combine,
    differences,
    group,
    io,
    itemwise,
    order,
    resume,
    shards,
    state,
)

__all__ = [
    "combine",
    "differences",
    "group",
    "io",
    "itemwise",
    "order",
    "resume",
    "shards",
    "state",
]
