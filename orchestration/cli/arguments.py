"""Words that many commands about projects take."""

from __future__ import annotations

from hydro_core.cli.command import Word

FLOW = Word("FLOW", "a flow of the project")
YES = Word("--yes", "do not ask")
