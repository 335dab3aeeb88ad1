"""Streams and their items as DataFrames: types, Arrow, relations over a range of ticks."""
