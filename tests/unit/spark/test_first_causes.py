"""What Java says of its first cause is told, and not what the link to it says of a call."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from hydro_core.spark.session.failures import data_error


class _RaisedError(Py4JJavaError):  # type: ignore[misc]
    def __init__(self, java: Any) -> None:
        self.args = ("An error occurred while calling o123.execute.\n: java.lang.X",)
        self.java_exception, self.errmsg = java, self.args[0]

    def __str__(self) -> str:
        return str(self.args[0])


def _java(text: str, cause: Any = None) -> Any:
    return SimpleNamespace(getCause=lambda: cause, toString=lambda: text, __str__=lambda: text)


def test_the_first_cause_of_java_is_told() -> None:
    cause = _java("java.io.IOException: the codec lz9 is not there\n\tat java.base/x")
    told = str(data_error(_RaisedError(_java("org.apache.spark.SparkException: failed", cause))))
    assert "Spark failed: java.io.IOException: the codec lz9 is not there" in told
    assert "An error occurred" not in told


def test_a_link_that_names_no_cause_says_what_it_can() -> None:
    told = str(data_error(Py4JError("An error occurred while calling o5.x\n the method is gone")))
    assert "Spark failed: the method is gone" in told
