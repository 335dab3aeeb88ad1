"""Every program on a page is one, and its ticks give what the page says, to the last row.

A block of `hydrotick` is followed by `ticks`, a table of what comes in and out, or by `error`, what
is printed instead; or it says `# tick 0: a [1] gives out [2]` itself. A block of `console` shows
commands with what they print. `--update-golden` writes what is so into the pages.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from hydro_core.cli.main import main
from hydro_core.cli.table import COMMANDS
from hydro_core.compile import CompiledProgram, compile_graph
from hydro_core.engines import Options
from hydro_core.errors import HydroError
from hydro_core.lang.load import load_text
from hydro_core.running import calendar_given, run_json
from hydro_core.ticks.calendar import Calendar
from tests.pages.blocks import ALL, Block, following, rewritten
from tests.pages.command_lines import Command, commands_of
from tests.pages.tick_tables import Batches, Column, names_of, read, written

LANGUAGES = {
    *("hydrotick", "rules", "ticks", "error", "console"),  # here
    *("python", "yaml", "toml", "json"),  # in `files_of_tests`
    *("sh", "ini"),  # in `test_commands`, and in `tests/orchestration/test_services.py`
    *("csv", "text", "mermaid", "sql"),
}
PROGRAMS = [block for block in ALL if block.language in ("hydrotick", "rules")]
CONSOLES = [block for block in ALL if block.language == "console"]


def test_there_are_programs() -> None:
    assert len(PROGRAMS) > 60


@pytest.mark.parametrize("block", ALL, ids=lambda block: block.place)
def test_every_block_says_its_language(block: Block) -> None:
    assert block.language in LANGUAGES


@pytest.mark.parametrize("block", PROGRAMS, ids=lambda block: block.place)
def test_a_program_does_what_the_page_says(block: Block, update_golden: bool) -> None:
    said = _after(block)
    found = _found(block, said)
    if update_golden:
        for after, text in zip(said, found, strict=True):
            rewritten(after, text)
    else:
        assert found == [after.text for after in said]


def _after(block: Block) -> list[Block]:
    """What is said of a program: its ticks, what is printed instead, or both."""
    said = []
    after = following(block)
    while after is not None and after.language in ("ticks", "error"):
        said.append(after)
        after = following(after)
    return said


def _found(block: Block, said: list[Block]) -> list[str]:
    """What the blocks after a program ought to say."""
    match [after.language for after in said]:
        case []:
            compiled = compiled_of(block, partial=True)
            _check_comments(block, compiled)
            return []
        case ["ticks"]:
            return [written(*_run(compiled_of(block), said[0]))]
        case ["error"]:
            with pytest.raises(HydroError) as refused:
                compiled_of(block)
            return [f"{refused.value}\n"]
        case ["ticks", "error"]:
            compiled = compiled_of(block)
            with pytest.raises(HydroError) as failed:
                _run(compiled, said[0])
            inputs = [s for s in streams_of(compiled, said[0].text) if not s.out]
            return [written(inputs, read(said[0].text, inputs)), f"{failed.value}\n"]
        case languages:
            raise AssertionError(f"{block.place} is followed by {languages}")


def compiled_of(block: Block, partial: bool = False) -> CompiledProgram:
    """The program of a block."""
    file = block.file or ("program.dl" if block.language == "rules" else "program.hydro")
    return compile_graph(load_text(block.text, file, name=Path(file).stem), partial=partial)


def streams_of(compiled: CompiledProgram, table: str) -> list[Column]:
    """The streams that a table names, inputs first; all outputs where it names none."""
    typed = compiled.typed
    names = [name for name, out in names_of(table) if not out]
    shown = [name for name, out in names_of(table) if out]
    return [
        *(Column(name, False, typed.inputs[name].item) for name in names),
        *(Column(name, True, typed.outputs[name].item) for name in shown or typed.outputs),
    ]


def _run(compiled: CompiledProgram, table: Block) -> tuple[list[Column], Batches]:
    """The streams of a table, with what came in and what comes out of them."""
    streams = streams_of(compiled, table.text)
    given = read(table.text, [stream for stream in streams if not stream.out])
    gives = run(compiled, given, calendar_of(table))
    return streams, [{**i, **o} for i, o in zip(given, gives, strict=True)]


def calendar_of(table: Block) -> Calendar | None:
    """The times of a table's ticks, where its fence says them: "ticks 1h from 2026-01-01"."""
    every, _, start = table.file.partition(" from ")
    return calendar_given(start, every) if start else None


def run(compiled: CompiledProgram, ticks: Batches, calendar: Calendar | None = None) -> Batches:
    """What a program gives on the reference, as it is written and as it is optimized."""
    naive = run_json(compiled.graph, {}, ticks, Options(optimized=False), calendar)
    assert run_json(compiled.graph, {}, ticks, Options(), calendar) == naive
    return list(naive)


_TICK = re.compile(r"^# tick \d+: (.*?) ?gives (.*)$", re.MULTILINE)


def _check_comments(block: Block, compiled: CompiledProgram) -> None:
    said = [(_batches(given), _batches(gives)) for given, gives in _TICK.findall(block.text)]
    if said:
        assert run(compiled, [given for given, _ in said]) == [gives for _, gives in said]


def _batches(text: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    while text:
        name, _, rest = text.partition(" ")
        found[name], end = json.JSONDecoder().raw_decode(rest)
        text = rest[end:].lstrip(", ")
    return found


@pytest.mark.parametrize("block", CONSOLES, ids=lambda block: block.place)
def test_a_command_prints_what_the_page_says(
    block: Block, update_golden: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands about a program; those about a project are run in `tests/wheel`."""
    for other in ALL:
        if other.page == block.page and other.file and other.start < block.start:
            (tmp_path / other.file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / other.file).write_text(other.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    shown = "".join(f"$ {command.line}\n{_printed(command)}" for command in commands_of(block))
    if update_golden:
        rewritten(block, shown)
    else:
        assert shown == block.text


CORE = {command.name for command in COMMANDS}


def _printed(command: Command) -> str:
    words = command.words
    if words[0] != "hydrotick" or words[1] not in CORE:
        return str(command.shows)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        main(words[1:])
    return printed.getvalue()
