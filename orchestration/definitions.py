"""The code location: every flow of `assets.ALL_ASSETS` as Dagster definitions.

Loading parses the programs and builds assets; it starts no Spark and optimizes nothing.
"""

from __future__ import annotations

from assets import ALL_ASSETS
from orchestration.factory import project_definitions
from orchestration.runner import TickRunner
from orchestration.settings import project_settings

defs = project_definitions(ALL_ASSETS, TickRunner(project_settings()))
