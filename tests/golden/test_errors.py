"""One wrong program a file, its whole message beside it: `make golden` writes the messages anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.compile import compile_text
from hydro_core.errors import CODES, ProgramError

ERRORS = Path(__file__).parent / "errors"
PROGRAMS = sorted(ERRORS.glob("*.hydro"))
AT_RUN_TIME = {"runtime", "state", "config"}


def message_of(path: Path) -> ProgramError:
    with pytest.raises(ProgramError) as caught:
        compile_text(path.read_text(encoding="utf-8"), file=path.name)
    return caught.value


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_message(path: Path, update_golden: bool) -> None:
    error = message_of(path)
    expected = path.with_suffix(".txt")
    if update_golden:
        expected.write_text(f"{error}\n", encoding="utf-8")
    assert f"{error}\n" == expected.read_text(encoding="utf-8")
    assert path.stem.startswith(error.code.replace("-", "_"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_diagnostic_has_place_and_cure(path: Path) -> None:
    for diagnostic in message_of(path).diagnostics:
        assert diagnostic.help, diagnostic.message
        assert diagnostic.span is not None
        assert diagnostic.span.first_line


def test_every_code_that_needs_no_data_is_there() -> None:
    there = {message_of(path).code for path in PROGRAMS}
    assert there == set(CODES) - AT_RUN_TIME


def test_no_message_without_program() -> None:
    assert {p.stem for p in ERRORS.glob("*.txt")} == {p.stem for p in PROGRAMS}
