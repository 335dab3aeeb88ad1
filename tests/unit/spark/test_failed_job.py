"""What is told of a Spark whose JVM is gone: even to ask an error for its words fails then."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError

from hydro_core.errors import InfrastructureError
from hydro_core.spark.executor.failed_job import told_failures
from hydro_core.spark.session import ended


class _GoneError(Py4JJavaError):  # type: ignore[misc]
    """An error of Java whose words are still in the JVM."""

    def __init__(self) -> None:
        Exception.__init__(self)

    def __str__(self) -> str:
        raise ConnectionRefusedError(111, "Connection refused")


def test_an_error_of_a_jvm_that_is_gone_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended, "_has_ended", lambda: True)
    with pytest.raises(InfrastructureError) as caught, told_failures():
        raise _GoneError
    assert "Spark's JVM ended" in str(caught.value)
