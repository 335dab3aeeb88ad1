"""Every command that prints data prints it as JSON, too."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

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


def test_a_command_returns_its_record() -> None:
    returned = {}
    for name, command in commands().items():
        module, _, function = command.run.partition(":")
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
        (found,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function]
        returned[name] = ast.unparse(found.returns) if found.returns else ""
    assert set(returned.values()) == {"Result"}
