"""What a project's asset folders declare, and how it is read and judged; and two such folders, by
which this repository is a project like any other.
"""
