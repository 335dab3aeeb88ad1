"""What `check` and `lineage` do grows as the program does, however wide its rows are.

Calls are counted, not seconds: four times the program may take five times the calls, and a loop
within a loop would take sixteen times.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hydro_core.cli.main import main
from tests.support.selection import alternately_slow

SMALL, LARGE = 100, 400
MOST = 5.0


def _columns(n: int, form: str) -> str:
    return ", ".join(form.format(i=i) for i in range(n))


def _rows(n: int, step: str, *, required: bool = False) -> str:
    schema = _columns(n, "c{i} long not null" if required else "c{i} long")
    return f's = source("k string, {schema}")\ns -> {step} -> out'


SHAPES: dict[str, Callable[[int], str]] = {
    "select": lambda n: _rows(n, f"select({_columns(n, repr('c{i}'))})"),
    "drop": lambda n: _rows(n, f"drop({_columns(n, repr('c{i}'))})"),
    "rename": lambda n: _rows(n, f"rename({_columns(n, 'd{i}=' + repr('c{i}'))})"),
    "computed": lambda n: _rows(n, f"with_columns({_columns(n, 'd{i}=lambda r: r.c{i} + 1')})"),
    "not null": lambda n: _rows(
        n, f"with_columns({_columns(n, 'c{i}=lambda r: r.c{i} + 1')})", required=True
    ),
    "map": lambda n: _rows(n, f"map(lambda r: {{{_columns(n, repr('d{i}') + ': r.c{i}')}}})"),
    "spread": lambda n: _rows(n, f"map(lambda r: {{**r, {_columns(n, repr('d{i}') + ': 1')}}})"),
    "tuple": lambda n: _rows(n, f"map(lambda r: ({_columns(n, 'r.c{i}')}))"),
    "aggregate": lambda n: _rows(
        n, f'persist() -> aggregate(by="k", {_columns(n, "s{i}=sum(" + repr("c{i}") + ")")})'
    ),
    "by": lambda n: _rows(n, f"latest(by=[{_columns(n, repr('c{i}'))}], order='k')"),
    "join": lambda n: (
        f'a = source("k string, {_columns(n, "a{i} long")}")\n'
        f'b = source("k string, {_columns(n, "b{i} long")}")\n'
        'a -> join(right=b, on="k", how="left") -> out'
    ),
    "outputs": lambda n: (
        's = source("long")\n'
        + "\n".join(f"s -> filter(lambda v: v > {i}) -> o{i}" for i in range(n))
    ),
    "sinks of one output": lambda n: (
        's = source("long")\n'
        + "\n".join(f"s -> filter(lambda v: v > {i}) -> out" for i in range(n))
    ),
}


def _calls(work: Callable[[], object]) -> int:
    count = 0

    def seen(*_: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    ("shape", "command"),
    alternately_slow(SHAPES, ["check", "lineage"]),
)
def test_work_grows_as_the_program_does(
    command: str, shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = []
    for size in (3, SMALL, LARGE):  # the first one loads what is loaded once
        path = tmp_path / f"{size}.hydro"
        path.write_text(SHAPES[shape](size))
        arguments = [command, str(path), "--format", "json"]
        taken.append(_calls(lambda given=arguments: _run(given)))
    capsys.readouterr()
    _, small, large = taken
    assert large < MOST * small


def _run(arguments: list[str]) -> None:
    assert main(arguments) == 0
