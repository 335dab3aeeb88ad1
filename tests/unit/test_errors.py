"""How an error says where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.errors import Diagnostic, Span, shown_file


def test_a_file_below_the_current_folder_is_shown_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "assets" / "totals" / "totals.hydro"
    assert shown_file(file) == str(file)
    monkeypatch.chdir(tmp_path)
    assert shown_file(file) == "assets/totals/totals.hydro"
    assert shown_file("totals.hydro") == "totals.hydro"
    assert shown_file("<text>") == "<text>"
    monkeypatch.chdir("/")
    assert shown_file(file) == str(file).removeprefix("/")


def test_an_error_shows_its_file_so_and_tells_programs_the_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = str(tmp_path / "totals.hydro")
    error = Diagnostic("type", "it is wrong", Span(file, 2, 3, 2, 4), help="mend it")
    assert " --> totals.hydro:2:3" in error.render()
    assert error.as_json()["file"] == file
