"""Rows from files, and outputs to files: the one reader of what runs, flows and Spark's workers read.

`inputs` says what an input is, `places` finds what lies at its path, `pieces` reads the files of one
kind, `rows` makes items of what they hold, and `reading` puts a process's own rows together.
"""
