"""All that a tree may name: operators, and what is called by its name."""

from __future__ import annotations

from collections.abc import Mapping

from hydro_core.functions.library.builtins import FUNCTIONS
from hydro_core.functions.library.entry import LibraryFunction
from hydro_core.functions.library.operators import CHAIN, OPERATORS

OPERATIONS: Mapping[str, LibraryFunction] = {**FUNCTIONS, **OPERATORS}
"""By their names; methods have entries by the types of what they are of."""


def operation(name: str) -> LibraryFunction | None:
    """The entry of what is no method; None where there is none."""
    return OPERATIONS.get(name) or (CHAIN if "," in name else None)
