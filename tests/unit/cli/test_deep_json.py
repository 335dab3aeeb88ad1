"""JSON that nests deeper than can be read is an error of whoever wrote it, wherever it is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hydro_core.cli.main import main

DEPTHS = (150, 900, 100_000)


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "p.hydro"
    path.write_text("a -> out")
    return str(path)


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def _error(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out)["error"]
    return found


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("way", ["ticks", "schemas", "batch", "lines", "stats"])
def test_deep_json_is_refused(
    way: str, depth: int, program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / ("given.jsonl" if way == "lines" else "given.json")
    text, arguments = {
        "ticks": (f'[{{"a": {_nested(depth)}}}]', ["run", program, "--ticks", str(path)]),
        "schemas": (
            f'{{"schemas": {_nested(depth)}, "ticks": []}}',
            ["run", program, "--ticks", str(path)],
        ),
        "batch": (
            f'{{"name": "j", "program": "a -> out", "ticks": [{{"a": {_nested(depth)}}}]}}',
            ["run", "--batch", str(path)],
        ),
        "lines": (f'{{"n": 0, "x": {_nested(depth)}}}', ["run", program, "--input", f"a={path}:n"]),
        "stats": (_nested(depth), ["optimize", program, "--stats", str(path)]),
    }[way]
    path.write_text(text + "\n")
    assert main([*arguments, "--format", "json"]) == (0 if way == "batch" else 1)
    error = _error(capsys)
    assert error["message"] != "internal error"
    assert error["help"]
