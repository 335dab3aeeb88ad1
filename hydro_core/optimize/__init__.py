"""Equality saturation: programs over all of history become ones that cost what new data costs."""
