"""Functions of a program: read as trees, typed, evaluated, traced field by field."""
