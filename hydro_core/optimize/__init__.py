"""Equality saturation: a program over all of history becomes one that costs what the new data costs."""
