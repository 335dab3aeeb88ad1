"""`hydrotick init DIR`: a project that runs; `hydrotick land`: the data that a flow brings."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path, PurePosixPath

from hydro_core.cli.command import Asked, MisuseError
from hydro_core.cli.output import Result
from hydro_core.errors import DataError
from hydro_core.project.discover import ASSETS, SETTINGS
from hydro_core.storage.remote import RemotePath, is_remote, local_path, remote_at
from hydro_core.storage.settings import StorageSettings

from ..instance import SETTINGS as INSTANCE_SETTINGS
from ..instance import prepare_instance
from ..project.console import asked_flow
from ..project.settings import leading_elsewhere
from ..project.settings_file import wrong_place

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TEMPLATE = "hydrotick.template"
_SAMPLE = "data/landing/payments/2026-01.csv"
_INSTANCE = "data/dagster"
_IGNORED = f"""\
data/pipelines/
{_INSTANCE}/*
!{_INSTANCE}/dagster.yaml
!{_INSTANCE}/dagster.yaml.copied
__pycache__/
"""
"""Files that runs write; Dagster's settings belong to the project."""


def init(options: Asked) -> Result:
    if not _NAME.fullmatch(options.flow):
        raise MisuseError(
            f"--flow: {options.flow!r} is no name: take letters, digits and underscores, "
            "and begin with a letter of a to z"
        )
    directory = local_path(options.directory)
    store = None if options.storage is None else _empty_folder(options.storage)
    made = put_project(directory, options.flow, store)
    prepare_instance(directory / _INSTANCE)
    made.append(f"{_INSTANCE}/{INSTANCE_SETTINGS}")
    record = {"project": str(directory.absolute()), "flow": options.flow, "files": made}
    return Result(record, _says(directory, options.flow, made))


def put_project(directory: Path, flow: str, store: RemotePath | None = None) -> list[str]:
    """Makes a project with a flow of that name, and gives the names of its files.

    Args:
        directory: where it is made.
        flow: the name of its flow.
        store: the folder in a store that has its data; None: that is below the directory.

    Raises:
        DataError: something is in the way (code `config`).
    """
    in_place = next((one for one in (directory, *directory.parents) if one.is_file()), None)
    if in_place is not None:
        raise _in_the_way(f"{in_place} is a file")
    if directory.exists():
        there = sorted(directory.iterdir())
        if there:
            raise _in_the_way(f"{directory} is not empty: `{there[0].name}` is in it")
    found = dict(_contents(flow))
    landed: list[str] = []
    if store is not None:
        found[SETTINGS] += f'\n[storage]\ndata = "{store}"   # tables, ledgers, and what lands\n'
        file = store / PurePosixPath(_SAMPLE).relative_to("data")
        file.write_bytes(found.pop(_SAMPLE).encode())
        landed.append(str(file))
    for name, text in found.items():
        target = directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return [*found, *landed]


def _empty_folder(url: str) -> RemotePath:
    """The folder in a store that a URL names.

    Raises:
        DataError: it is none, or something is in it (code `config`).
    """
    wrong = wrong_place(url)
    if wrong is not None:
        raise DataError.of("config", f"--storage: {url!r} is {wrong[0]}", help=wrong[1])
    # How it is reached is not written into the project: the environment may tell.
    store = remote_at(url, StorageSettings().where(os.environ))
    first = next(store.files(), None)
    if first is not None:
        raise _in_the_way(f"{store} is not empty: `{first.relative_to(store)}` is in it")
    return store


def _contents(flow: str) -> Mapping[str, str]:
    folder = f"{ASSETS}/{flow}"
    places = {
        "README.md": "README.md",
        SETTINGS: SETTINGS,
        f"{folder}/{flow}.hydro": "program.hydro",
        f"{folder}/asset.yaml": "asset.yaml",
        f"{folder}/tests.yaml": "tests.yaml",
        _SAMPLE: "payments.csv",
    }
    template = files(_TEMPLATE)
    read = {
        place: (template / name).read_text(encoding="utf-8").replace("FLOW", flow)
        for place, name in places.items()
    }
    return {**read, ".gitignore": _IGNORED}


def _in_the_way(message: str) -> DataError:
    return DataError.of("config", message, help="name a folder that is new or empty")


def _says(directory: Path, flow: str, made: Sequence[str]) -> str:
    go = "" if directory.resolve() == Path.cwd().resolve() else f"  cd {directory}\n"
    lines = [f"{name if is_remote(name) else directory / name}\n" for name in made]
    lines += [f"\nA project with the flow `{flow}`. Next:\n{go}"]
    lines += [f"  hydrotick test\n  hydrotick backfill {flow}\n  hydrotick show {flow} totals\n"]
    lines += [
        f"\n{name} is set, and leads these commands elsewhere: unset it first\n"
        for name in leading_elsewhere()
    ]
    return "".join(lines)


def land(options: Asked) -> Result:
    flow, settings = asked_flow(options)
    if flow.land is None:
        message = f"`{flow.name}` brings no data with it"
        cure = f"what its inputs read is to land below {settings.landing_store or settings.landing}"
        raise DataError.of("config", message, help=cure)
    if settings.landing_store is not None:
        message = f"the data of `{flow.name}` cannot be landed in {settings.landing_store}"
        cure = "a store is only read: put the data there, or take `landing` out of `[paths]`"
        raise DataError.of("config", message, help=cure)
    flow.land(settings.landing)
    record = {"flow": flow.name, "landing": str(settings.landing)}
    return Result(record, f"{flow.name}: landed below {settings.landing}")
