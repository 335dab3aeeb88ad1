"""Every command that prints data prints it as JSON, too."""

from __future__ import annotations

import pytest

from hydro_core.cli.main import commands, main

TALKS = {"completion", "demo", "dev", "ready"}
"""They tell what they do while they do it, and give nothing."""
OTHERWISE = {"metrics"}
"""What it prints is in the form that Prometheus reads."""


def test_they_take_the_format(capsys: pytest.CaptureFixture[str]) -> None:
    names = commands().keys() - TALKS - OTHERWISE
    assert {"status", "backfill", "reset", "test", "init", "check"} <= names
    lacking = []
    for name in sorted(names):
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        said = capsys.readouterr().out
        assert ended.value.code == 0, name
        lacking += [name] if "--format" not in said or "json" not in said else []
    assert lacking == []
