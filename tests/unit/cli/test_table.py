"""The table of commands: what every entry says is so."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from hydro_core.cli.command import Command
from hydro_core.cli.main import commands, main
from hydro_core.spark.session.jars import STORES
from hydrotick.cli.init import put_project

ALL = commands()
READING = (
    "check",
    "check assets/totals/totals.hydro",
    "optimize assets/totals/totals.hydro --explain",
    "partition assets/totals/totals.hydro",
    "lineage assets/totals/totals.hydro",
    "graph assets/totals/totals.hydro",
    "simulate totals --engine reference --runs 2",
    "test",
    "status",
    "metrics",
    "completion bash",
    "complete show to",
)
"""Command lines that do without Spark, of commands that change nothing."""


def folder_of(run: str) -> Path:
    spec = find_spec(run.partition(":")[0])
    assert spec is not None
    return Path(str(spec.origin)).parent


def function_of(command: Command) -> tuple[ast.Module, ast.FunctionDef]:
    module, _, name = command.run.partition(":")
    file = folder_of(command.run) / f"{module.rpartition('.')[2]}.py"
    tree = ast.parse(file.read_text(encoding="utf-8"))
    (found,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    return tree, found


def asked_for(tree: ast.AST) -> Iterator[str]:
    """What functions of a module ask of the words of a command line."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            taken = {a.arg for a in function.args.args if _is_asked(a.annotation)}
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.value, ast.Name)
                    and node.value.id in taken
                ):
                    yield node.attr


def _is_asked(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == "Asked"


@pytest.mark.parametrize("name", ALL)
def test_an_entry_names_a_function_which_asks_for_what_it_declares(name: str) -> None:
    command = ALL[name]
    tree, function = function_of(command)
    (argument,) = function.args.args
    assert _is_asked(argument.annotation)
    of_module = [one for one in ALL.values() if one.run.split(":")[0] == command.run.split(":")[0]]
    declared = {a.dest for one in of_module for a in one.parser()._actions}
    assert set(asked_for(tree)) <= declared


def test_a_command_asks_for_every_option_that_it_declares() -> None:
    read = [file for command in ALL.values() for file in folder_of(command.run).glob("*.py")]
    read += folder_of("hydrotick.project.project:current").glob("*.py")
    text = "".join(file.read_text(encoding="utf-8") for file in set(read))
    for command in ALL.values():
        dests = {action.dest for action in command.parser()._actions} - {"help"}
        lacking = [d for d in dests if f".{d}" not in text and f'"{d}"' not in text]
        assert lacking == [], command.name


def test_a_sentence_lists_each() -> None:
    for command in ALL.values():
        assert command.does.endswith(".")
        assert command.does[0].isupper()
        assert all(argument.help for argument in command.arguments)
        assert command.needs != "a project" or command.run.startswith("hydrotick.")


def test_what_changes_a_project_may_ask_first_and_what_reads_it_never_does() -> None:
    for command in ALL.values():
        asks = "--yes" in {argument.name for argument in command.arguments}
        assert command.writes or not asks, command.name


def test_stores_are_those_that_have_jars() -> None:
    (store,) = ALL["ready"].arguments
    assert set(store.choices) == set(STORES)


def test_help_has_exit_codes_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["restore", "--help"])
    said = capsys.readouterr().out
    assert "exit codes:\n  0  done\n  1  nothing was changed" in said
    assert "for example:\n  hydrotick restore " in said


@pytest.mark.parametrize("line", READING)
def test_what_says_that_it_changes_nothing_changes_nothing(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = tmp_path / "shop"
    put_project(shop, "totals")
    monkeypatch.chdir(shop)
    before = contents(shop)
    assert not ALL[line.split(maxsplit=1)[0]].writes
    assert main(line.split()) == 0
    assert contents(shop) == before


def contents(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
