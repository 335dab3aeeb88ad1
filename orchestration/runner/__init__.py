"""Runs ticks of flows: what landed and came late, ranges, corrections, and what is told of them."""
