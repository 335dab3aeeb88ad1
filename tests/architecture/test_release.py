"""What a release is made of: licence, version, change log, and no stray files beside them."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
_MOST_WORDS = 20
TOP_LEVEL = {
    *(".ci", ".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md", "CONTRIBUTING.md"),
    *("LICENSE", "Makefile", "README.md", "assets", "benchmarks", "docker", "docs", "examples"),
    *("hydro_core", "orchestration", "pyproject.toml", "requirements", "tests", "tools"),
    "workspace.yaml",
}


def test_the_licence_is_the_one_that_the_package_declares() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert text.split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert "END OF TERMS AND CONDITIONS" in text
    assert PROJECT["license"] == "Apache-2.0"
    assert PROJECT["license-files"] == ["LICENSE"]


def test_the_change_log_begins_with_the_version() -> None:
    versions = re.findall(r"^## \[(.+?)\]", LOG, re.MULTILINE)
    assert versions[0] == PROJECT["version"] == metadata("hydrotick")["Version"]
    assert versions == sorted(versions, reverse=True)


def test_entries_of_the_change_log_are_short_lines() -> None:
    entries = LOG[LOG.index("\n## ") :].splitlines()
    entries = [entry for entry in entries if entry and not entry.startswith("#")]
    assert entries
    assert [entry for entry in entries if not re.fullmatch(r"- \S.*\.", entry)] == []
    assert [entry for entry in entries if len(entry[2:].split()) > _MOST_WORDS] == []


def test_nothing_stray_lies_beside_the_code() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("this is no checkout")
    files = [Path(line) for line in listed.stdout.splitlines()]
    assert {file.parts[0] for file in files if (ROOT / file).exists()} == TOP_LEVEL
    assert [
        str(file) for file in files if (ROOT / file).is_file() and not _may_be_empty(file)
    ] == []


def _may_be_empty(file: Path) -> bool:
    return file.name in {"__init__.py", "py.typed"} or (ROOT / file).stat().st_size > 0


def test_hooks_check_what_lint_checks() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    entries = [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]]
    tools = ("ruff format", "ruff check", "mypy", "check_sizes", "words", "lint-imports", "docs.py")
    for tool in tools:
        assert any(tool in entry for entry in entries), tool
