"""The commands about projects, all of them: what the entry point of this package gives."""

from __future__ import annotations

from . import project_commands, table_commands, tick_commands

COMMANDS = (*project_commands.COMMANDS, *tick_commands.COMMANDS, *table_commands.COMMANDS)
