"""Runs programs many times: what is compiled once is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from hydro_core.compile import CompiledProgram, compile_text
from hydro_core.reference.interpreter import run_ticks
from hydro_core.running import read_ticks
from hydro_core.types.ddl import parse_ddl

Tick = dict[str, list[Any]]


@cache
def compiled(program: str, schemas: tuple[tuple[str, str], ...]) -> CompiledProgram:
    return compile_text(program, {name: parse_ddl(text) for name, text in schemas})


def run(program: str, schemas: Mapping[str, str], ticks: Sequence[Tick]) -> list[Mapping[str, Any]]:
    """The outputs of the reference interpreter, as items."""
    found = compiled(program, tuple(schemas.items()))
    return list(run_ticks(found.typed, found.strata, read_ticks(found.typed, ticks)))
