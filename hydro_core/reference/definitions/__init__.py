"""The definitions of the operators, a module per family; importing the package registers all."""

from hydro_core.reference.definitions import group, itemwise, joins, ordered, state
