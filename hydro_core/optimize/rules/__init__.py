"""The rewrite rules: those that are written by hand, and those that follow from the catalogue's
columns.
"""
