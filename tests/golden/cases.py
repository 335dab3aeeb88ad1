"""Reads `*.case` files: programs with ticks and outputs that read as stories.

A file holds cases, each a title (`# …`), then sections: `program`, optionally `schemas` (`name:
schema`), `ticks` and `outputs` with a line per tick (`a: [1, 2]; b: []`, or `-` for nothing), or
`error` with `code: words of the message`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hydro_core.compile import compile_graph
from hydro_core.errors import ProgramError
from hydro_core.lang.load import load_text

Tick = dict[str, list[Any]]
PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Case:
    name: str
    program: str
    schemas: dict[str, str]
    ticks: list[Tick]
    outputs: list[Tick]
    error: tuple[str, str] | None


def all_cases(folder: Path = PROGRAMS) -> list[Case]:
    return [case for file in sorted(folder.glob("*.case")) for case in read_cases(file)]


def read_cases(file: Path) -> Iterator[Case]:
    for text in re.split(r"^# ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, *parts = re.split(r"^--- (\w+)\n", text, flags=re.MULTILINE)
        sections = dict(zip(parts[::2], parts[1::2], strict=True))
        yield _case(f"{file.stem}: {' '.join(title.split())}", sections)


def _case(name: str, sections: dict[str, str]) -> Case:
    unknown = sections.keys() - {"program", "schemas", "ticks", "outputs", "error"}
    if unknown or not {"outputs", "error"} & sections.keys():
        raise ValueError(f"{name}: sections {sorted(sections)}")
    code, _, words = sections.get("error", "").strip().partition(": ")
    return Case(
        name,
        sections["program"],
        dict(_line.split(": ", 1) for _line in _lines(sections.get("schemas", ""))),
        [_tick(line) for line in _lines(sections.get("ticks", "-"))],
        [_tick(line) for line in _lines(sections.get("outputs", ""))],
        (code, words) if code else None,
    )


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _tick(line: str) -> Tick:
    tick: Tick = {}
    decoder = json.JSONDecoder()
    while line and line != "-":
        name, _, rest = line.partition(":")
        tick[name.strip()], end = decoder.raw_decode(rest.lstrip())
        line = rest.lstrip()[end:].lstrip("; ")
    return tick


def message_of(path: Path) -> ProgramError:
    """What is wrong with the program in a file."""
    with pytest.raises(ProgramError) as caught:
        compile_graph(load_text(path.read_text(encoding="utf-8"), path.name))
    return caught.value


def check_message(path: Path, update_golden: bool) -> None:
    """The message is that of the file beside it, named by its code; it has places and cures."""
    error, expected = message_of(path), path.with_suffix(".txt")
    if update_golden:
        expected.write_text(f"{error}\n", encoding="utf-8")
    assert f"{error}\n" == expected.read_text(encoding="utf-8")
    assert path.stem.startswith(error.code.replace("-", "_"))
    for diagnostic in error.diagnostics:
        assert diagnostic.help, diagnostic.message
        assert diagnostic.span is not None
        assert diagnostic.span.first_line
