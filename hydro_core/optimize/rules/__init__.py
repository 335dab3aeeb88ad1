"""The rewrite rules: listed ones, and those that follow from the catalogue's columns."""
