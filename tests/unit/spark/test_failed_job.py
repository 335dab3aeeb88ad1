"""What is told of a Spark whose JVM is gone: even to ask an error for its words fails then; of what
Java has not; of a scratch directory that is full.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from hydro_core.errors import InfrastructureError, InternalSparkError
from hydro_core.machine import faults
from hydro_core.spark.executor.shell import failures_as_errors
from hydro_core.spark.session import failures


class _GoneError(Py4JJavaError):  # type: ignore[misc]
    """An error of Java whose words are still in the JVM."""

    def __init__(self) -> None:
        Exception.__init__(self)

    def __str__(self) -> str:
        raise ConnectionRefusedError(111, "Connection refused")


def test_an_error_of_a_jvm_that_is_gone_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "_has_ended", lambda: True)
    with pytest.raises(InfrastructureError) as caught, failures_as_errors():
        raise _GoneError
    assert "Spark's JVM ended" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            "An error occurred while calling o12.foo. Trace:\npy4j.Py4JException: No foo\n\tat x\n",
            "py4j.Py4JException: No foo",
        ),
        ("An error occurred while calling o12.foo", "Spark does not know what it was asked for"),
        ("org.apache.spark.Nothing does not exist in the JVM", "org.apache.spark.Nothing"),
    ],
)
def test_what_java_has_not_is_a_bug_in_its_own_words(text: str, cause: str) -> None:
    with pytest.raises(InternalSparkError) as caught, failures_as_errors():
        raise Py4JError(text)
    assert str(caught.value).startswith(cause)
    assert "An error occurred while calling" not in str(caught.value)


@pytest.mark.parametrize("is_variable", [True, False])
def test_a_full_scratch_directory_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_variable: bool
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    is_mount = Path.is_mount
    monkeypatch.setattr(Path, "is_mount", lambda path: path == other or is_mount(path))
    monkeypatch.setattr(faults, "_free", lambda mount: 3 * 2**20 if mount == other else 2**40)
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    if is_variable:
        monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{other / 'a'},{other / 'b'}")
    else:
        conf = SimpleNamespace(get=lambda name, default: {"spark.local.dir": str(other)}[name])
        context = SimpleNamespace(getConf=lambda: conf)
        monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    with pytest.raises(InfrastructureError) as caught, failures_as_errors():
        raise PySparkException("java.io.IOException: No space left on device")
    name = "SPARK_LOCAL_DIRS" if is_variable else "spark.local.dir"
    assert f"{other} (Spark's `{name}`) has 3 MiB free" in str(caught.value)
