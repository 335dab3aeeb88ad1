"""The command line: exit codes, where errors go, help everywhere."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from hydro_core.cli import main as command_line
from hydro_core.cli.command import Asked, Command, MisuseError, Word
from hydro_core.cli.main import main
from hydro_core.cli.output import Result
from hydro_core.cli.table import COMMANDS

CHAT = """\
add_member -> persist() -> [0] broadcast
messages   -> persist() -> [1] broadcast
broadcast  = cross() -> delta() -> notify
"""
SCHEMAS = ["--schema", "add_member=user string", "--schema", "messages=string"]


@pytest.fixture
def chat(tmp_path: Path) -> str:
    file = tmp_path / "chat.hydro"
    file.write_text(CHAT)
    return str(file)


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    file = tmp_path / "wrong.hydro"
    file.write_text('a = source("long")\na -> enumerate() -> out\na -> frob\n')
    return str(file)


Capture = pytest.CaptureFixture[str]


def test_without_a_command(capsys: Capture) -> None:
    assert main([]) == 2
    assert "COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["frob"], ["optimize"], ["check", "x", "--frob"], ["graph", "x", "--format", "png"]]
)
def test_misuse(words: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "usage: hydrotick" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["", *(one.name for one in COMMANDS)])
def test_help(command: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command.split(), "--help"])
    assert caught.value.code == 0
    assert "usage: hydrotick" in capsys.readouterr().out


def test_check(chat: str, capsys: Capture) -> None:
    assert main(["check", chat, *SCHEMAS]) == 0
    shown = capsys.readouterr()
    assert "notify  NoOrder  (struct<user: string>, string)" in shown.out
    assert "7 operators in 2 strata" in shown.out
    assert shown.err == ""


def test_check_json(chat: str, capsys: Capture) -> None:
    assert main(["check", chat, *SCHEMAS, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inputs"] == {"add_member": "user string", "messages": "string"}
    assert list(found["outputs"]) == ["notify"]
    assert found["strata"][1] == ["delta_1", "notify"]
    assert found["handoffs"] == [{"stream": "broadcast", "from": 0, "to": 1}]
    assert found["recursive"] == found["warnings"] == []


def test_check_shows_warnings_and_cycles(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "a.hydro"
    file.write_text(
        'a = source("long")\nx = union() -> unique() -> tee()\na -> x\nx -> x\n'
        "y = x -> sort()\nx -> out"
    )
    assert main(["check", str(file)]) == 0
    shown = capsys.readouterr()
    assert "warning[name]: `y` is defined and never read" in shown.err
    assert "runs to a fixpoint: tee" not in shown.out
    assert "runs to a fixpoint: union_1, unique_1, x" in shown.out


def test_errors_for_people(wrong: str, capsys: Capture) -> None:
    assert main(["check", wrong]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f" --> {wrong}:2:6\n" in shown.err
    assert shown.err.startswith("error[ordering]")


@pytest.mark.parametrize("asked", [["--format", "json"], ["--format=json"]])
def test_errors_for_programs(wrong: str, asked: list[str], capsys: Capture) -> None:
    assert main(["check", wrong, *asked]) == 1
    shown = capsys.readouterr()
    assert shown.err == ""
    error = json.loads(shown.out)["error"]
    assert error["code"] == "ordering"
    assert (error["file"], error["line"], error["column"]) == (wrong, 2, 6)
    assert error["operator"] == "enumerate"
    assert error["help"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--schema", "ad_member=string"], "did you mean `add_member`?"),
        (["--schema", "add_member"], "has no `=`"),
        (["--schema", "add_member=strng"], "the schema of `add_member`"),
        ([], "`add_member` is never defined"),
    ],
)
def test_schemas(chat: str, words: list[str], message: str, capsys: Capture) -> None:
    assert main(["check", chat, *words]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("error[input]")
    assert message in shown


def test_no_such_file(capsys: Capture) -> None:
    assert main(["check", "nowhere.hydro", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "config"


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        ([], "flowchart"),
        (["--format", "mermaid"], "flowchart"),
        (["--format", "dot"], "digraph"),
        (["--format", "svg"], "<svg"),
        (["--format", "json"], "{"),
    ],
)
def test_graph_needs_no_schemas(chat: str, words: list[str], begins: str, capsys: Capture) -> None:
    assert main(["graph", chat, *words]) == 0
    assert capsys.readouterr().out.startswith(begins)


def test_graph_to_a_file(chat: str, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "chat.svg"
    assert main(["graph", chat, "--out", str(target)]) == 0
    assert target.read_text().startswith("<svg")
    assert main(["graph", chat, "--out", str(tmp_path / "no" / "chat.svg")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_nothing_of_a_text_program_is_executed(tmp_path: Path) -> None:
    file = tmp_path / "a.hydro"
    file.write_text('a = source("long")\na -> map(lambda x: 1 // (x - x)) -> out\n')
    assert main(["check", str(file)]) == 0
    assert main(["graph", str(file)]) == 0


TALKS = Command(
    "talks",
    "Says what it was asked.",
    f"{__name__}:talks",
    about="A project",
    needs="nothing",
    writes=False,
    arguments=(Word("WORD", "what is said"), Word("--loud", "loudly")),
    examples=("talks hello",),
)
TABLE = (TALKS,)


def talks(asked: Asked) -> Result:
    if asked.word == "nothing":
        raise MisuseError("nothing is said")
    return Result(text=asked.word.upper() if asked.loud else asked.word, code=3)


def plugged(monkeypatch: pytest.MonkeyPatch, *values: str) -> None:
    points = [
        EntryPoint(f"others{n}", value, command_line.PLUGINS) for n, value in enumerate(values)
    ]
    monkeypatch.setattr(command_line, "entry_points", lambda group: points)


def test_the_commands_of_another_package(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    plugged(monkeypatch, f"{__name__}:TABLE")
    assert main(["talks", "hello", "--loud"]) == 3
    assert capsys.readouterr().out == "HELLO\n"
    assert main([]) == 2
    assert "talks      says what it was asked\n" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["talks", "nothing"])
    assert ended.value.code == 2
    assert "talks: error: nothing is said" in capsys.readouterr().err


def test_a_table_that_cannot_be_loaded_stands_in_no_other_commands_way(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    plugged(monkeypatch, "json:nothing_of_the_name", f"{__name__}:TABLE")
    file = tmp_path / "a.hydro"
    file.write_text('a = source("long")\na -> out\n')
    assert main(["check", str(file)]) == 0
    assert main(["talks", "hello"]) == 3
    assert main([]) == 2
    assert "The commands `others0` cannot be loaded: " in capsys.readouterr().out


def test_a_command_whose_module_cannot_be_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(command_line, "COMMANDS", (replace(TALKS, run="json:nothing"),))
    assert main(["talks", "hello"]) == 1
    assert "the command `talks` cannot be loaded" in capsys.readouterr().err
