"""Functions as Spark columns: where their result may differ from Python's, they fail the job.

The job then runs again with the function in Python: see `hydro_core.spark.functions.guards`.
"""

from __future__ import annotations

from hydro_core.spark.functions.columns.compiler import predicate_column as predicate_column
from hydro_core.spark.functions.columns.compiler import to_column as to_column
from hydro_core.spark.functions.columns.value import NotCompilable as NotCompilable
