"""What the files of programs end in."""

from __future__ import annotations

RULES = ".dl"
"""Rules over time."""
PROGRAMS = (".hydro", RULES)
"""Programs that are read from their text."""
FORMS = "`*.hydro`, rules `*.dl`, or `module:attribute`"
"""What a FILE of the command line is."""
