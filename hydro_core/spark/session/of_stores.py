"""Errors of object stores that come out of Spark: of Hadoop's file system, or of a worker of ours.

Both have the words of the store in them, among traces and requests; what people are told is what
the process itself would tell them.
"""

from __future__ import annotations

import re

from hydro_core.errors import Code, InfrastructureError
from hydro_core.spark.session.internal import first_cause
from hydro_core.storage.problems import problem

_OF_A_WORKER = re.compile(
    r"hydro_core\.errors\.InfrastructureError: error\[(config|runtime)\]: (.+)\s+help: (.+)"
)
_PLACE = re.compile(r"\b(?:s3a|abfss|gs)://([^/\s'\"]+)[^\s'\",;]*")
_REFUSED = re.compile(
    r"AccessDeniedException|UnknownStoreException|AWS\w*Exception|S3Exception"
    r"|NoAuthWithAWSException|SdkClientException|Status Code: \d{3}"
)


def store_error(error: BaseException) -> InfrastructureError | None:
    """What a store refused to Spark, as an error for people; None where it refused nothing."""
    said = str(error)
    found = _OF_A_WORKER.search(said)
    if found is not None:
        code, message, cure = found.groups()
        known: Code = "config" if code == "config" else "runtime"
        return InfrastructureError.of(known, message.strip(), help=cure.strip())
    cause = first_cause(error)
    place = _PLACE.search(cause) or _PLACE.search(said)
    if place is None or _REFUSED.search(cause) is None:
        return None
    return problem(cause, place[0].rstrip(".:"), place[1], "read")
