"""Rows from files, and outputs to files: the one reader of runs, of flows and of Spark's workers.

`inputs` says what an input is, `places` finds what lies at its path, `pieces` reads the files of a
kind, `rows` makes items of what they hold, and `reading` puts the rows of one process together.
"""
