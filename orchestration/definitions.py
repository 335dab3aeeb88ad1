"""The code location: every flow of the project as Dagster definitions.

Loading parses the programs and builds assets; it starts no Spark and optimizes nothing.
"""

from __future__ import annotations

import dagster as dg

from . import project
from .factory import project_definitions
from .runner import TickRunner

_found = project.current()
defs = dg.Definitions.merge(
    project_definitions(_found.flows, TickRunner(_found.settings), _found.broken),
    # Workers stay warm: a step in a process of its own would start another Spark.
    dg.Definitions(executor=dg.in_process_executor),
)
