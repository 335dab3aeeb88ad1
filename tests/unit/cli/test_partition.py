"""`hydrotick partition`: all choices, one choice, and what is wrong with a request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hydro_core.cli.main import main

PROGRAM = """
orders -> [0] j
users -> [1] j
j = join(on="user") -> out
"""
SCHEMAS = ["--schema", "orders=user long, n long", "--schema", "users=user long, name string"]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "orders.hydro"
    path.write_text(PROGRAM, encoding="utf-8")
    return str(path)


def test_json(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["partition", file, *SCHEMAS, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "partitionable": True,
        "any": False,
        "keys": [{"orders": ["user"], "users": ["user"]}],
        "blocked_by": [],
        "partial": [],
        "ordered": [],
        "complete": True,
    }


def test_text(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["partition", file, *SCHEMAS]) == 0
    assert "orders by user, users by user" in capsys.readouterr().out


def test_a_choice_is_judged(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    right = ["--on", "orders=user", "--on", "users=user"]
    assert main(["partition", file, *SCHEMAS, *right, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["partitionable"]
    wrong = ["--on", "orders=n", "--on", "users=user"]
    assert main(["partition", file, *SCHEMAS, *wrong]) == 0
    printed = capsys.readouterr().out
    assert "cannot be cut into shards by this choice" in printed
    assert f"{file}:4:5: `join` (j) needs all items of a key on one shard" in printed


def test_an_input_may_be_routed_by_several_fields(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ["--on", "orders=user", "--on", "orders=n", "--on", "users=user"]
    assert main(["partition", file, *SCHEMAS, *both, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["blocked_by"] == ["join"]


def test_an_unknown_field_is_an_error(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["partition", file, *SCHEMAS, "--on", "orders=usr", "--format", "json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["help"]) == ("input", "did you mean `user`?")


def test_a_choice_has_a_path(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["partition", file, *SCHEMAS, "--on", "orders"])
    assert caught.value.code == 2
    assert "write `--on INPUT=PATH`" in capsys.readouterr().err
