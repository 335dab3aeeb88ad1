"""Command lines on pages are ones that the commands' own parsers take, and the page of commands
has all of them.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator, Sequence

import pytest
import yaml

from hydro_core.cli.main import commands
from tests.pages.blocks import ALL, ROOT, Block
from tests.pages.command_lines import SHELL, commands_of

pytestmark = pytest.mark.dagster

OTHERS = {"cd", "make", "pip", "python", "python3", "export", "mkdir", "cp", "dg", "git", "docker"}
"""Commands of others that a page may show."""


@pytest.mark.parametrize("block", SHELL, ids=lambda block: block.place)
def test_the_parsers_take_it(block: Block, capsys: pytest.CaptureFixture[str]) -> None:
    lines = list(commands_of(block))
    assert lines
    for words in (line.words for line in lines):
        *settings, program = [w for i, w in enumerate(words) if _is_setting(words[:i])]
        name = program.rpartition("/")[2]
        if name == "hydrotick":
            try:
                take(words[len(settings) + 1 :])
            except SystemExit as end:
                raise AssertionError(f"{words}: {capsys.readouterr().err}") from end
        else:
            assert name in OTHERS, words
            tests = [word for word in words if word.startswith("tests/")]
            assert all((ROOT / test).exists() for test in tests), words
        if program == "make":
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            targets = [word for word in words[len(settings) + 1 :] if "=" not in word]
            assert all(re.search(rf"^{word}:", makefile, re.MULTILINE) for word in targets), words


def services() -> Iterator[tuple[str, str]]:
    """The command lines by which pages have others start commands, and where they stand."""
    for block in ALL:
        if block.language == "ini":
            unit = configparser.RawConfigParser()
            unit.read_string(block.text)
            line = unit["Service"]["ExecStart"]
            # Those of Dagster are judged in `tests/orchestration/test_services.py`.
            if line.split()[0].endswith("hydrotick"):
                yield block.place, line
        elif block.file == "compose.yaml":
            for service in yaml.safe_load(block.text)["services"].values():
                yield block.place, service["command"]


@pytest.mark.parametrize(("place", "line"), list(services()))
def test_the_parsers_take_what_others_start(place: str, line: str) -> None:
    program, *words = line.split()
    assert program.rpartition("/")[2] == "hydrotick", place
    take(words)


def _is_setting(before: Sequence[str]) -> bool:
    """Whether all words before are `NAME=VALUE`, so that this one may be the program."""
    return all("=" in word for word in before)


def take(words: Sequence[str]) -> None:
    """Parses the words of a command line; misuse ends as it does for users."""
    name, *after = words
    commands()[name].parser().parse_args(after)


@pytest.mark.parametrize("name", commands())
def test_every_option_is_on_the_page(name: str) -> None:
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    section = re.search(rf"^### {name}\n(.*?)(?=^##|\Z)", page, re.DOTALL | re.MULTILINE)
    assert section is not None
    for argument in commands()[name].arguments:
        assert f"`{argument.name}" in section[1] or argument.choices
        assert all(choice in section[1] for choice in argument.choices)


@pytest.mark.parametrize("name", commands())
def test_a_command_takes_its_examples(name: str) -> None:
    assert commands()[name].examples
    for line in commands()[name].examples:
        assert line.split()[0] == name
        take(line.split())


def test_every_variable_is_on_the_page() -> None:
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    sources = [*ROOT.glob("hydro_core/**/*.py"), *ROOT.glob("orchestration/**/*.py")]
    text = "".join(file.read_text(encoding="utf-8") for file in sources)
    named = set(re.findall(r"\bHYDROTICK_[A-Z_]+\b", text))
    assert len(named) > 5
    assert {name for name in named if f"| `{name}`" not in page} == set()
