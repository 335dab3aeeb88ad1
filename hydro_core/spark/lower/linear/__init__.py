"""Operators that see an item at a time: sources and sinks, functions of items, bag sums."""
