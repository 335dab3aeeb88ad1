"""Every command that prints data prints it as JSON, too."""

from __future__ import annotations

from hydro_core.cli.main import commands

TALKS = {"complete", "completion", "demo", "dev", "ready"}
"""They tell what they do while they do it, and give nothing."""
OTHERWISE = {"metrics"}
"""What it prints is in the form that Prometheus reads."""


def test_they_take_the_format() -> None:
    names = commands().keys() - TALKS - OTHERWISE
    assert {"status", "backfill", "reset", "test", "init", "check"} <= names
    for name in sorted(names):
        (form,) = [one for one in commands()[name].arguments if one.name == "--format"]
        assert "json" in form.choices, name
