"""Operators that reach over ticks: histories, the tick before, changes, commands."""
