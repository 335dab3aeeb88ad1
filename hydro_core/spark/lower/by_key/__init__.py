"""Operators of all rows of a key: their results in values, and along the ticks as changes."""
