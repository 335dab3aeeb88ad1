"""Bugs that Spark meets are told as bugs, and what the machine does is no tick's fault."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, UnknownException

from hydro_core.errors import (
    DataError,
    Diagnostic,
    HydroError,
    InfrastructureError,
    InternalSparkError,
)
from hydro_core.plan.planner import in_parts
from hydro_core.spark.executor.shell import failures_as_errors
from hydrotick.runner.correction import bugs_name_their_ticks

LOST = (
    "[INTERNAL_ERROR_ATTRIBUTE_NOT_FOUND] Could not find _extract_k#7L in [t#8L]. SQLSTATE: XX000"
)
TRACE = f"""An error occurred while calling o1.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: {LOST}
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2935)
Caused by: org.apache.spark.SparkException: {LOST}
\tat org.apache.spark.sql.catalyst.expressions.BindReferences$.bind(BoundAttribute.scala:109)
"""
WITHIN = TRACE.replace(LOST, "it ends")


def told(text: str) -> Exception:
    with pytest.raises(Exception, match=r".") as caught, failures_as_errors():
        raise Py4JError(text)
    return caught.value


def test_an_internal_error_is_a_bug_with_the_first_cause_and_its_traceback() -> None:
    found = told(TRACE)
    assert isinstance(found, InternalSparkError)
    assert not isinstance(found, HydroError)
    assert str(found).startswith(f"org.apache.spark.SparkException: {LOST}\n")
    assert "report it" in str(found)
    assert isinstance(found.__cause__, Py4JError)


@pytest.mark.parametrize(
    "cause",
    [
        'java.lang.NullPointerException: Cannot invoke "Object.toString()"',
        "java.lang.ClassCastException: class A cannot be cast to class B",
        "scala.MatchError: ArrayType(NullType,true)",
        "java.util.NoSuchElementException: key not found: t#12",
        "java.lang.IllegalArgumentException: requirement failed: no such attribute",
        "java.lang.StackOverflowError",
        "org.codehaus.commons.compiler.InternalCompilerException: Compiling failed",
        "java.lang.NoSuchMethodError: 'void A.b()'",
    ],
)
def test_code_that_takes_a_value_for_another_is_a_bug(cause: str) -> None:
    found = told(f"{WITHIN}Caused by: {cause}\n\tat A.b(A.java:1)\n")
    assert isinstance(found, InternalSparkError)
    assert str(found).startswith(f"{cause}\n")


def test_what_the_optimizer_raises_is_a_bug_without_a_cause_too() -> None:
    with pytest.raises(InternalSparkError, match="key not found"), failures_as_errors():
        raise UnknownException("java.util.NoSuchElementException: key not found: t#12")


def test_a_bug_names_its_flow_and_its_ticks_and_what_to_send() -> None:
    error = InternalSparkError("key not found: t#12")
    with pytest.raises(InternalSparkError) as caught, bugs_name_their_ticks("shop", "tick 3"):
        raise error
    (note,) = caught.value.__notes__
    assert "`shop`" in note
    assert "tick 3" in note
    assert "send" in note


def test_what_is_unknown_is_a_bug_if_it_comes_again() -> None:
    found = told(f"{WITHIN}Caused by: java.io.IOException: stream closed\n")
    assert isinstance(found, InfrastructureError)
    assert "if it fails alike" in found.diagnostics[0].help


class _RefusedError(AnalysisException):
    def getSqlState(self) -> str:  # noqa: N802 - Spark's name
        return "42703"


def test_an_analysis_without_a_state_is_a_bug() -> None:
    with pytest.raises(InternalSparkError, match="no such attribute"), failures_as_errors():
        raise AnalysisException("no such attribute")


def test_a_plan_that_spark_refuses_is_a_bug() -> None:
    with pytest.raises(InternalSparkError, match="no column `x`"), failures_as_errors():
        raise _RefusedError("there is no column `x`")


OVERFLOW = "org.apache.spark.SparkArithmeticException: [ARITHMETIC_OVERFLOW] long overflow."
NO_NUMBER = """org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] \
The value 'x' of the type "STRING" cannot be cast. SQLSTATE: 22018"""
UNREAD = """org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] \
Encountered error while reading file file:/a/b.parquet. SQLSTATE: KD001
Caused by: java.lang.UnsupportedOperationException: not a file"""


@pytest.mark.parametrize(
    ("cause", "kind", "says"),
    [
        (OVERFLOW, DataError, "an integer is beyond 64 bits"),
        (NO_NUMBER, DataError, "The value 'x'"),
        (UNREAD, DataError, "/a/b.parquet"),
        ("java.lang.OutOfMemoryError: Java heap space", InfrastructureError, "Java heap space"),
    ],
)
def test_what_is_no_bug_stays_an_error_for_people(
    cause: str, kind: type[DataError], says: str
) -> None:
    found = told(f"{WITHIN}Caused by: {cause}\n")
    assert type(found) is kind
    assert says in str(found)
    assert "o1.getResult" not in str(found)


@pytest.mark.parametrize(
    "error",
    [
        InternalSparkError("a bug"),
        InfrastructureError(Diagnostic("runtime", "the disk is full", help="make room")),
    ],
)
def test_what_no_tick_can_cause_is_told_at_once(error: Exception) -> None:
    tried: list[tuple[int, int]] = []

    def run(first: int, last: int) -> None:
        tried.append((first, last))
        raise error

    with pytest.raises(type(error)):
        list(in_parts(0, 9, None, run))
    assert tried == [(0, 9)]
