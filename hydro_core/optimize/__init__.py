"""Equality saturation: programs over all of history become ones that cost what the new data
costs.
"""
