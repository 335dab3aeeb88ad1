"""Windows over the rows within a distance in their order, whatever type that has.

Spark's own interface for Python takes whole numbers of 64 bits alone.
"""

from __future__ import annotations

from typing import Any, cast

from pyspark.sql import Column, SparkSession, WindowSpec


def within_before(spark: SparkSession, window: WindowSpec, far: Column) -> WindowSpec:
    """The window over the rows at most so far before each in its order, and those equal to it.

    Args:
        spark: the session.
        window: rows in the order of one column, without a frame.
        far: minus the distance, a constant of the type of that column.
    """
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - Spark offers Python no other way
    constant, spec = cast("Any", far), cast("Any", window)
    start = jvm.org.apache.spark.sql.internal.WindowFrame.Value(constant._jc.node())  # noqa: SLF001
    by_range, here = _single(jvm, "Range"), _single(jvm, "CurrentRow")
    return WindowSpec(spec._jspec.withFrame(by_range, start, here))  # noqa: SLF001


def _single(jvm: Any, name: str) -> Any:
    """The object of Scala that is called so."""
    module = f"org.apache.spark.sql.internal.WindowFrame${name}$"
    return jvm.java.lang.Class.forName(module).getField("MODULE$").get(None)
