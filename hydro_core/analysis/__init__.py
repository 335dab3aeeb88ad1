"""Static analyses of a graph: types, orders, strata, cycles."""
