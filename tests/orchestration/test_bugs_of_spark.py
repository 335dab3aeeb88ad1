"""A run that met an internal error of Spark is not tried again, and none ends without a word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from hydro_core.errors import Diagnostic, InfrastructureError, InternalSparkError
from hydrotick.code_location.tick_asset import _report_bugs
from hydrotick.instance.run_tags import JUDGED_TAG

pytestmark = pytest.mark.dagster

DISK = InfrastructureError(Diagnostic("runtime", "the disk is full", help="make room"))


@pytest.mark.parametrize(
    ("error", "tags"), [(InternalSparkError("a bug"), {JUDGED_TAG: "run 1"}), (DISK, {})]
)
def test_only_a_bug_is_told_as_what_comes_again(error: Exception, tags: dict[str, str]) -> None:
    told: dict[str, str] = {}
    context: Any = Mock()
    context.run.run_id = "run 1"
    context.instance.add_run_tags = lambda _, more: told.update(more)

    def reports() -> Iterator[Any]:
        yield "the first"
        raise error

    found = _report_bugs(context, reports())
    assert next(found) == "the first"
    with pytest.raises(type(error)):
        next(found)
    assert told == tags


def test_what_would_end_the_process_in_silence_is_an_error() -> None:
    def reports() -> Iterator[Any]:
        yield "the first"
        raise SystemExit(0)

    found = _report_bugs(Mock(), reports())
    assert next(found) == "the first"
    with pytest.raises(RuntimeError, match="ended its process: SystemExit: 0") as caught:
        next(found)
    assert isinstance(caught.value.__cause__, SystemExit)
