"""Finds the flows that asset folders declare."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

from assets.spec import FlowAsset
from hydro_core.errors import Diagnostic, ProgramError

ASSET = "asset.py"


def found_in(directory: Path, package: str) -> tuple[FlowAsset, ...]:
    """The flows of the folders of a directory that is a package, each with its folder.

    Raises:
        ProgramError: two flows have one name (code `config`).
    """
    found: dict[str, FlowAsset] = {}
    for file in sorted(directory.glob(f"*/{ASSET}")):
        folder = file.parent
        module = importlib.import_module(f"{package}.{folder.name}.{file.stem}")
        declared = {id(v): v for v in vars(module).values() if isinstance(v, FlowAsset)}
        for flow in declared.values():
            if flow.name in found:
                raise _twice(flow, found[flow.name].folder, folder)
            found[flow.name] = replace(flow, folder=folder)
    return tuple(found.values())


def _twice(flow: FlowAsset, first: Path | None, second: Path) -> ProgramError:
    return ProgramError(
        Diagnostic(
            "config",
            f"there are two flows `{flow.name}`: in {first} and in {second}",
            help="give one of them another name",
        )
    )
