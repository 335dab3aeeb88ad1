"""Commands whose output nobody reads any more (`| head`): they end, silently."""

from __future__ import annotations

import argparse
import ast
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

import pytest

from hydro_core.cli import main as command_line
from hydro_core.cli.command import Asked, Command
from hydro_core.cli.main import main
from hydro_core.cli.output import UNREAD, Result
from hydrotick.project.console import Console

ROOT = Path(__file__).parents[3]
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
"""As a shell's: what is not buffered may end in the middle of a write, and is not told of it."""
RIGHT = 'a = source("long")\na -> unique() -> out\n'


@pytest.fixture
def unread() -> Iterator[TextIO]:
    """A pipe whose reader has left."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        yield stream


@pytest.mark.parametrize("words", [["--help"], ["check", "a.hydro"], ["check", "wrong.hydro"]])
def test_a_command_ends_as_if_the_signal_had_ended_it(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.hydro").write_text(RIGHT)
    (tmp_path / "wrong.hydro").write_text("a -> frob\n")
    told_on_errors = words[-1].startswith("wrong")
    with ExitStack() as stack:
        reading, writing = os.pipe()
        os.close(reading)
        stack.callback(os.close, writing)
        command = Path(sys.executable).parent / "hydrotick"
        others = subprocess.PIPE
        done = subprocess.run(
            [command, *words],
            cwd=tmp_path,
            env=BUFFERED,
            stdout=others if told_on_errors else writing,
            stderr=writing if told_on_errors else others,
            check=False,
        )
    assert (done.returncode, done.stdout or b"", done.stderr or b"") == (UNREAD, b"", b"")


def test_a_result_that_is_read_in_part(tmp_path: Path) -> None:
    """As a shell does it, with more than a pipe holds."""
    lines = "".join(f"a -> map(lambda x: x) -> {'out' * 200}{n}\n" for n in range(100))
    (tmp_path / "a.hydro").write_text(f'a = source("long")\n{lines}')
    command = f"{Path(sys.executable).parent / 'hydrotick'} check a.hydro --format json"
    line = f"{command} | head -c 10; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], check=False, cwd=tmp_path, env=BUFFERED, capture_output=True
    )
    assert (done.stdout[10:], done.stderr) == (f"{UNREAD}\n".encode(), b"")


def test_output_that_is_closed(tmp_path: Path) -> None:
    (tmp_path / "a.hydro").write_text(RIGHT)
    line = f"{Path(sys.executable).parent / 'hydrotick'} check a.hydro >&-; echo $? >&2"
    done = subprocess.run(["bash", "-c", line], check=False, cwd=tmp_path, capture_output=True)
    assert (done.stdout, done.stderr) == (b"", b"0\n")


def test_progress_that_nobody_reads(unread: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", unread)
    console = Console(argparse.Namespace(format="text"))
    with pytest.raises(SystemExit) as caught:
        console.say("1 tick(s) are done")
    assert caught.value.code == UNREAD
    console.to.close()  # and says nothing more


def test_a_socket_is_no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever ended at its other end is told of as before."""
    talks = Command(
        "talks",
        "Talks.",
        f"{__name__}:_talks",
        about="A project",
        needs="nothing",
        writes=False,
        arguments=(),
        examples=("talks",),
    )
    monkeypatch.setattr(command_line, "COMMANDS", (talks,))
    with pytest.raises(BrokenPipeError):
        main(["talks"])


def _talks(_: Asked) -> Result:
    one, other = socket.socketpair()
    other.close()
    with one:
        return Result(code=one.send(b"is somebody there?"))


def test_everything_is_printed_in_one_place() -> None:
    """What is written to standard output elsewhere would not end so."""
    files = [p for top in ("hydro_core", "orchestration") for p in (ROOT / top).rglob("*.py")]
    found = {
        str(file.relative_to(ROOT))
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr in {"write", "writelines"}
        and ast.unparse(node.value) == "sys.stdout"
    }
    assert len(files) > 200
    assert found == set()
