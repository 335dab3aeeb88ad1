"""Where Spark puts what it has no memory for: mostly on another file system than the project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkContext

_VARIABLE = "SPARK_LOCAL_DIRS"
_SETTING = "spark.local.dir"


def scratch_directories() -> Mapping[Path, str]:
    """The directories, each with the words for what it is; none where nobody has named any.

    The environment's variable wins over the setting, as Spark has it.
    """
    named, what = os.environ.get(_VARIABLE, ""), _VARIABLE
    if not named:
        named, what = _configured(), _SETTING
    return {Path(one.strip()): f"Spark's `{what}`" for one in named.split(",") if one.strip()}


def _configured() -> str:
    context = SparkContext._active_spark_context  # noqa: SLF001 - PySpark starts one if it is asked
    if context is None:
        return ""
    try:
        return str(context.getConf().get(_SETTING, ""))
    except (Py4JError, OSError):
        # It is asked when something has failed: the JVM may be gone by now.
        return ""
