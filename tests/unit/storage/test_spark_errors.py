"""What Spark says of a store that refuses, as people are told."""

from __future__ import annotations

import pytest

from hydro_core.spark.executor.shell import store_error
from tests.support.store_server import SECRET

HADOOP = (
    "An error occurred while calling o59.collectToPython.\n: org.apache.spark.SparkException\n"
    "Caused by: java.nio.file.AccessDeniedException: s3a://landing/x/1.parquet: open: software."
    "amazon.awssdk.services.s3.model.S3Exception: no (Service: S3, Status Code: 403, Request ID: 1)"
    ":AccessDenied\n\tat org.apache.hadoop.fs.s3a.S3AUtils.translateException\n"
)
WORKER = (
    "\n  An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
    '  File "x.py", line 1\nhydro_core.errors.InfrastructureError: error[config]: there are no '
    "credentials for S3\nhelp: set them\n"
)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (HADOOP, "s3a://landing/x/1.parquet: these credentials have not the right to read it"),
        (
            HADOOP.replace("AccessDenied\n", "SignatureDoesNotMatch\n"),
            (
                "s3a://landing/x/1.parquet: the credentials are not those of anybody it knows "
                "(SignatureDoesNotMatch)"
            ),
        ),
        (
            "Caused by: org.apache.hadoop.fs.s3a.UnknownStoreException: `s3a://landing/x': open",
            "s3a://landing/x: there is no bucket `landing`",
        ),
        (WORKER, "there are no credentials for S3"),
    ],
)
def test_what_a_store_refused(said: str, told: str) -> None:
    found = store_error(RuntimeError(f"{said}\n{SECRET}"))
    assert found is not None
    (diagnostic,) = found.diagnostics
    assert diagnostic.message == told
    assert diagnostic.help
    assert SECRET not in str(found)


@pytest.mark.parametrize(
    "said",
    ["Caused by: java.io.IOException: No space left on device", "[DIVIDE_BY_ZERO] s3a://b/x"],
)
def test_what_is_of_no_store(said: str) -> None:
    assert store_error(RuntimeError(said)) is None
