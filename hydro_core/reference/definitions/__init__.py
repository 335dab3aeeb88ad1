"""The definitions of the operators, a module per family; importing the package registers all."""

from hydro_core.reference.definitions import (
    combine,
    group,
    internal,
    io,
    itemwise,
    joins,
    ordered,
    state,
)
