"""Flows in Python that an asset names as `module:attribute`.

An asset is data: whoever writes one must not thereby run what is installed. The module is a file of
the asset's folder or of the project, links followed, and it is the file that is imported: not
another one of its name. Of it a `Flow` is taken; a function is called only if it is written in that
file and says that it gives a flow: `def make(above: int) -> Flow:`.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, TypeGuard

from hydro_core.errors import ProgramError
from hydro_core.project.yaml_text import is_within_project

if TYPE_CHECKING:
    from hydro_core.ir.graph import Graph
    from hydro_core.lang.params import Params

PACKAGE = "hydrotick_project"
"""The package whose modules are those of the asset folders: `hydrotick_project.totals.asset`. So
they hide no module of another package, and are hidden by none."""
_MARK = "a flow is a `Flow` of the module, or a function written in it: `def make() -> Flow:`"


@dataclass(frozen=True, slots=True)
class FlowModule:
    """A module of a project: the name by which it is imported, and its file."""

    name: str
    file: Path


def module_in(folder: Path, module: str) -> FlowModule | None:
    """The module of an asset folder, or else of its project; None where there is none.

    Raises:
        ProgramError: a link leads out of the project, or another module hides it (code `config`).
    """
    root, parts = folder.parent.parent, module.split(".")
    for place, package in ((folder, f"{PACKAGE}.{folder.name}."), (root, "")):
        file = place.joinpath(*parts)
        for candidate in (file / "__init__.py", file.with_name(f"{file.name}.py")):
            if candidate.is_file():
                _refuse_outside(candidate, place, folder)
                if not package:
                    _refuse_hidden(root, parts[0])
                return FlowModule(f"{package}{module}", candidate)
    return None


def graph_of_module(folder: Path, spec: str, params: Params) -> Graph:
    """The graph of the flow that an asset names.

    Raises:
        ProgramError: it is no module of the project, or no flow of it (code `config`).
    """
    from hydro_core.ir.graph import Graph
    from hydro_core.lang.flow import FlowBuilder
    from hydro_core.lang.load import attribute_of, takes_none
    from hydro_core.lang.params import called_with

    module, _, attribute = spec.partition(":")
    found = module_in(folder, module)
    if found is None:
        message = f"there is no module `{module}` in the asset's folder, or in the project"
        raise _unusable(message, "an asset names a module of the project: put it there")
    loaded = _imported(found)
    value = attribute_of(loaded, attribute)
    if isinstance(value, FlowBuilder | Graph):
        if params.values:
            raise takes_none(spec)
    elif _makes_flow(value, loaded, found.file):
        value = called_with(value, params, spec)
    else:
        raise _unusable(f"`{spec}` is no flow of that module, so it is not called", _MARK)
    if isinstance(value, FlowBuilder):
        value = value.graph()
    if not isinstance(value, Graph):
        raise _unusable(f"`{spec}` gives no flow, but a {type(value).__name__}", _MARK)
    return value


def _makes_flow(value: object, module: ModuleType, file: Path) -> TypeGuard[FunctionType]:
    """Whether it is a function of that very file, and says that it gives a flow."""
    from hydro_core.ir.graph import Graph
    from hydro_core.lang.flow import FlowBuilder

    if not isinstance(value, FunctionType) or value.__module__ != module.__name__:
        return False
    if not _is_same(value.__code__.co_filename, file):
        return False
    said = value.__annotations__.get("return")
    if isinstance(said, str):
        *path, name = said.strip("'\"").split(".")
        return name in ("Flow", "FlowBuilder", "Graph") and all(map(str.isidentifier, path))
    return isinstance(said, type) and issubclass(said, FlowBuilder | Graph)


def _imported(module: FlowModule) -> ModuleType:
    from hydro_core.lang.load import imported

    top = module.name.partition(".")[0]
    known = sys.modules.get(top)
    if top != PACKAGE and known is not None and not _lies_at(known, module.file):
        # It is one of another project, which this process has had before.
        for name in [n for n in sys.modules if f"{n}.".startswith(f"{top}.")]:
            del sys.modules[name]
    found = imported(module.name)
    if not _is_same(found.__file__ or "", module.file):
        raise _hidden(module.name, found.__file__)
    return found


def _lies_at(top: ModuleType, file: Path) -> bool:
    """Whether a module, or the package of that name, is the one whose part lies at a file."""
    own = [top.__file__] if top.__file__ else list(getattr(top, "__path__", ()))
    places = [os.path.realpath(place).removesuffix("/__init__.py") for place in own]
    real = os.path.realpath(file)
    return any(real == place or real.startswith(f"{place}/") for place in places)


def _refuse_outside(file: Path, place: Path, folder: Path) -> None:
    packages = [up for up in file.parents if up.is_relative_to(place)]
    for part in (file, *(up / "__init__.py" for up in packages)):
        if part.exists() and not is_within_project(part, folder):
            message = f"`{part.relative_to(place)}` is a link that leads out of the project"
            raise _unusable(message, "put the module itself there")


def _refuse_hidden(root: Path, top: str) -> None:
    """Refuses a module of the project in whose place Python imports another one."""
    spec = None if top in sys.stdlib_module_names else PathFinder.find_spec(top)
    there = [] if spec is None else [spec.origin or "", *(spec.submodule_search_locations or ())]
    own = {root / top, root / top / "__init__.py", root / f"{top}.py"}
    if not any(_is_same(place, file) for place in there for file in own):
        raise _hidden(top, there[0] if there else None)


def _hidden(name: str, other: str | None) -> ProgramError:
    message = f"the module `{name}` of the project is hidden by {other or 'one of Python'}"
    return _unusable(message, "give it another name, or put it into the asset's folder")


def _is_same(place: str, file: Path) -> bool:
    return os.path.realpath(place) == os.path.realpath(file)


def _unusable(message: str, help_: str) -> ProgramError:
    return ProgramError.of("config", message, help=help_)
