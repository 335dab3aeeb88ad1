"""Operators of pairs: each new row of a side meets all rows of the other."""
