"""Rows from files, and outputs to files: the one reader of runs, of flows and of Spark's workers.

- `inputs`: an input as it is named, and errors of its data
- `kinds`: files at a location, and errors of files
- `places`: an input's files and their columns, before a row is read
- `csv_files`, `parquet`, `pieces`: the rows of a file, batch by batch (`row_batch`)
- `rows`: batches as items, with ticks and problems beside them
- `scan`: the rows of an input in this process, cut into ticks
- `outputs`: outputs as Parquet
"""
