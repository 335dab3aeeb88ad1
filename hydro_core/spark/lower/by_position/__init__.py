"""Operators that make or observe the order of a tick's items."""
