"""What PySpark asks the JVM again for every expression is asked once.

`col("x")` is three questions to the JVM: what `functions` is, whether it has a `col`, and then the
call. The answers to the first two are always the same, and are four of ten questions of a small
tick.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass

_CLASSES = ("org.apache.spark.sql.functions", "functions", "PythonUtils")
"""Classes of Spark, by the names that PySpark has for them."""


class _LookedUp(JavaClass):  # type: ignore[misc]
    """A class of the JVM whose static methods are looked up once."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        # An attribute that is there is not asked for again.
        setattr(self, name, found)
        return found


def look_up_once(jvm: Any) -> None:
    """Has the classes looked up once, as long as this JVM lives."""
    for name in _CLASSES:
        found = getattr(jvm, name)
        if not isinstance(found, _LookedUp):
            setattr(jvm, name, _LookedUp(found._fqn, found._gateway_client))  # noqa: SLF001
