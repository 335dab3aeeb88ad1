"""What can be known of a graph before it runs: types, orders, strata, cycles."""
