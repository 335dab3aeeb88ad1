"""Great Expectations, loaded without Spark Connect: the only module that imports it.

Great Expectations looks for Spark Connect when it is imported, and does without where that raises
an `ImportError` for a package that it misses. But where the main module has no file (in a child of
`multiprocessing`, which is what Dagster's default launcher starts for each run) Spark Connect takes
the process for one that runs doctests, and ends it: `SystemExit: 0`. No tick has anything to do
with Spark Connect, so it is not found in here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _not_found(module: str) -> Iterator[None]:
    """Within it the module cannot be imported, unless it is there already."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]


with _not_found("pyspark.sql.connect"):
    import great_expectations as gx
    import great_expectations.expectations as gxe
    from great_expectations.core.expectation_validation_result import (
        ExpectationValidationResult as ValidationResult,
    )
    from great_expectations.data_context.types.base import ProgressBarsConfig

__all__ = ["ProgressBarsConfig", "ValidationResult", "gx", "gxe"]
