"""`hydrotick docs [FLOW] --out DIR`: a page for each flow, and one that lists them."""

from __future__ import annotations

import sys
from pathlib import Path

from hydro_core.cli import output
from hydro_core.cli.command import Asked
from hydro_core.errors import DataError, HydroError
from hydro_core.files.local_path import local_path

from ..project import project
from ..project.console import Console, flow_named
from ..project.project import Project
from ..runner.runner import TickRunner
from .page import index, page, page_of_flow


def docs(options: Asked) -> int:
    found, out = project.current(), local_path(options.out)
    wanted = [flow_named(options.flow, found)] if options.flow else list(found.flows)
    broken = [] if options.flow else _broken(found)
    made = {}
    runner = TickRunner(found.settings)
    for flow in wanted:
        try:
            made[flow.name] = page_of_flow(flow, runner)
        except HydroError as error:
            if options.flow:
                raise
            broken.append((flow.name, error))
    pages = {f"{name}.html": page(one) for name, one in made.items()}
    pages["index.html"] = index(list(made.values()), broken)
    _write(out, pages)
    files = [str(out / name) for name in pages]
    wrong = {name: error.as_json() for name, error in broken}
    console = Console(options)
    console.give({"out": str(out), "files": files, "broken": wrong}, "\n".join(files))
    if not console.gives_json:
        output.write("".join(f"{name}: {error}\n" for name, error in broken), sys.stderr)
    return 1 if broken else 0


def _broken(found: Project) -> list[tuple[str, HydroError]]:
    return [(flow.name, flow.error) for flow in found.broken]


def _write(out: Path, pages: dict[str, str]) -> None:
    """Writes the pages.

    Raises:
        DataError: they cannot be written there (code `config`).
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (out / name).write_text(text, encoding="utf-8")
    except OSError as problem:
        message = f"{out} cannot be written: {problem}"
        raise DataError.of("config", message, help="choose another --out") from None
