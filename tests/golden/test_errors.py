"""One wrong program a file, its whole message beside it: `make golden` writes the messages anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.errors import CODES
from tests.golden.cases import check_message, message_of

ERRORS = Path(__file__).parent / "errors"
PROGRAMS = sorted(ERRORS.glob("*.hydro"))
AT_RUN_TIME = {"runtime", "state", "config"}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_message(path: Path, update_golden: bool) -> None:
    check_message(path, update_golden)


def test_every_code_that_needs_no_data_is_there() -> None:
    there = {message_of(path).code for path in PROGRAMS}
    assert there == set(CODES) - AT_RUN_TIME


def test_no_message_without_program() -> None:
    assert {p.stem for p in ERRORS.glob("*.txt")} == {p.stem for p in PROGRAMS}
