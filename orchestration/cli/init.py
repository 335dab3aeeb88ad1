"""`hydrotick init DIR`: a project that runs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from hydro_core.errors import DataError, Diagnostic
from hydro_core.files.local_path import local_path
from hydro_core.project.discover import ASSETS, SETTINGS

from ..instance import SETTINGS as INSTANCE_SETTINGS
from ..instance import prepare_instance
from ..project.arguments import add_format
from ..project.console import Console
from ..project.settings import leading_elsewhere

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TEMPLATE = "hydrotick.template"
_INSTANCE = "data/dagster"
_IGNORED = f"""\
data/pipelines/
{_INSTANCE}/*
!{_INSTANCE}/dagster.yaml
!{_INSTANCE}/dagster.yaml.copied
__pycache__/
"""
"""What runs have made; Dagster's settings belong to the project."""


def init(arguments: Sequence[str]) -> int:
    """Makes a project that runs: a flow with its program, sample data and a test."""
    parser = argparse.ArgumentParser(prog="hydrotick init", description=init.__doc__)
    parser.add_argument(
        "directory", metavar="DIR", type=local_path, help="a new or an empty folder"
    )
    parser.add_argument("--flow", metavar="NAME", default="totals", help="its flow (totals)")
    add_format(parser)
    options = parser.parse_args(arguments)
    if not _NAME.fullmatch(options.flow):
        parser.error(f"--flow: {options.flow!r} is no name: take letters, digits and underscores")
    directory: Path = options.directory
    made = put_project(directory, options.flow)
    prepare_instance(directory / _INSTANCE)
    made.append(f"{_INSTANCE}/{INSTANCE_SETTINGS}")
    told = {"project": str(directory.absolute()), "flow": options.flow, "files": made}
    Console(options).give(told, _says(directory, options.flow, made))
    return 0


def put_project(directory: Path, flow: str) -> list[str]:
    """Makes a project with a flow of that name, and gives the names of its files.

    Raises:
        DataError: something is in the way (code `config`).
    """
    _refuse_unless_empty(directory)
    made = _contents(flow)
    for name, text in made.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return list(made)


def _contents(flow: str) -> Mapping[str, str]:
    """The files of the project, and what is in them."""
    folder = f"{ASSETS}/{flow}"
    places = {
        "README.md": "README.md",
        SETTINGS: SETTINGS,
        f"{folder}/{flow}.hydro": "program.hydro",
        f"{folder}/asset.yaml": "asset.yaml",
        f"{folder}/tests.yaml": "tests.yaml",
        "data/landing/payments/2026-01.csv": "payments.csv",
    }
    template = files(_TEMPLATE)
    read = {
        place: (template / name).read_text(encoding="utf-8").replace("FLOW", flow)
        for place, name in places.items()
    }
    return {**read, ".gitignore": _IGNORED}


def _refuse_unless_empty(directory: Path) -> None:
    """Raises a `DataError` where something is in the way (code `config`)."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise _in_the_way(f"{directory} is a file")
    first = next(iter(sorted(directory.iterdir())), None)
    if first is not None:
        raise _in_the_way(f"{directory} is not empty: `{first.name}` is in it")


def _in_the_way(message: str) -> DataError:
    return DataError(Diagnostic("config", message, help="name a folder that is new or empty"))


def _says(directory: Path, flow: str, made: Sequence[str]) -> str:
    go = "" if directory.resolve() == Path.cwd().resolve() else f"  cd {directory}\n"
    lines = [f"{directory / name}\n" for name in made]
    lines += [f"\nA project with the flow `{flow}`. Next:\n{go}"]
    lines += [f"  hydrotick test\n  hydrotick backfill {flow}\n  hydrotick show {flow} totals\n"]
    lines += [
        f"\n{name} is set, and leads these commands elsewhere: unset it first\n"
        for name in leading_elsewhere()
    ]
    return "".join(lines)
