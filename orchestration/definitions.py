"""The code location: every flow of the project as Dagster definitions.

Loading parses the programs and builds assets; it starts no Spark and optimizes nothing.
"""

from __future__ import annotations

from .code_location.factory import project_definitions
from .project import project
from .runner.runner import TickRunner

_found = project.current()
defs = project_definitions(_found.flows, TickRunner(_found.settings), _found.broken)
