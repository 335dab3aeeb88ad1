"""What commands say and ask: people and programs each get theirs."""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path

import pytest
from dagster._core.execution.compute_logs import redirect_to_file

from hydro_core.cli.output import Result, print_result
from hydro_core.errors import DataError
from hydrotick.project.console import Console
from tests.support.refused import Refused

Capture = pytest.CaptureFixture[str]


class Terminal(io.StringIO):
    """A standard input at which somebody sits."""

    def isatty(self) -> bool:
        return True


def console(style: str = "text", **options: bool) -> Console:
    return Console(argparse.Namespace(format=style, **options))


@pytest.mark.parametrize(
    ("style", "out", "err"),
    [("text", "going on\n2 rows\n", ""), ("json", '{"rows": 2}\n', "going on\n")],
)
def test_json_has_standard_output_for_itself(
    style: str, out: str, err: str, capsys: Capture
) -> None:
    console(style).say("going on")
    print_result(Result({"rows": 2}, "2 rows\n"), style)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == (out, err)


def test_a_record_without_a_text_is_printed_for_programs_alone(capsys: Capture) -> None:
    print_result(Result({"rows": 2}), "text")
    assert capsys.readouterr().out == ""
    print_result(Result({"name": "Zoë"}), "json")
    assert json.loads(capsys.readouterr().out) == {"name": "Zoë"}


@pytest.mark.parametrize(
    ("answer", "agreed"), [("y\n", True), ("YES\n", True), ("no\n", False), ("\n", False)]
)
def test_it_asks(
    answer: str, agreed: bool, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    assert console(yes=False).agreed() is agreed
    assert capsys.readouterr().out.endswith("" if agreed else "Nothing was changed.\n")


@pytest.mark.parametrize(
    ("answer", "agreed"), [("shop\n", True), ("SHOP\n", False), ("y\n", False), ("", False)]
)
def test_what_cannot_be_undone_wants_a_name(
    answer: str, agreed: bool, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    assert console(yes=False).named("shop", "Nothing was removed.") is agreed
    assert ("Nothing was removed." in capsys.readouterr().out) is not agreed


def test_a_yes_is_not_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, refused: Refused
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert console(yes=True).agreed()
    assert console(yes=True).named("shop", "")
    assert capsys.readouterr().out == ""
    with refused(DataError, "config"):
        console(yes=False).agreed()


def test_who_sits_in_front_of_a_run_is_told_while_it_goes_on(
    tmp_path: Path, capfd: Capture
) -> None:
    said = tmp_path / "run.out"
    told = console()
    with redirect_to_file(sys.stdout, said):
        told.say("late rows arrived")
        sys.stdout.write("printed by the run\n")
        sys.stdout.flush()
    assert capfd.readouterr().out == "late rows arrived\n"
    assert said.read_text() == "printed by the run\n"
