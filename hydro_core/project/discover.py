"""Projects: their folder, the flows that asset folders declare, and flows that are Python modules.

A project is a folder with `assets/`. Each folder in there that has an `asset.yaml` or an `asset.py`
declares flows; one whose declaration is wrong is told beside the others, which it does not touch.

An asset is data: whoever writes one must not thereby run what is installed. A module that it names
as `module:attribute` is a file of the asset's folder or of the project, links followed, and it is
the file that is imported: not another one of its name. Of it a `Flow` is taken; a function is
called only if it is written in that file and says that it gives a flow: `def make(above: int) ->
Flow:`.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.machinery import PathFinder
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, TypeGuard

from hydro_core.errors import HydroError, ProgramError, Span, shown_file
from hydro_core.lang.source import PROGRAMS
from hydro_core.machine.environment import wrong_variable
from hydro_core.project.asset_yaml import flow_of_yaml
from hydro_core.project.check import check_alone, reads_wrong
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.yaml_text import is_within_project

if TYPE_CHECKING:
    from hydro_core.ir.graph import Graph
    from hydro_core.lang.params import Params


ASSETS = "assets"
SETTINGS = "hydrotick.toml"
DECLARATIONS = ("asset.yaml", "asset.py")
PROJECT = "HYDROTICK_PROJECT"
"""The variable that names a project from elsewhere."""
_ADDED = "__added__"
"""Where the package has what it has added to the places of modules."""


@dataclass(frozen=True, slots=True)
class BrokenFlow:
    """A flow that is none: what declares it, and what is wrong with that."""

    name: str
    folder: Path
    error: HydroError


@dataclass(frozen=True, slots=True)
class DiscoveredFlows:
    """The flows of a project, each with its folder, and the declarations that are wrong."""

    flows: tuple[FlowAsset, ...] = ()
    broken: tuple[BrokenFlow, ...] = ()


def project_above(start: Path) -> Path | None:
    """The project that a folder is in: the nearest above it, or itself; None where there is none.

    A folder `assets` that declares no flow is one of something else, if another one is above it.
    """
    near = [folder for folder in (start, *start.parents) if (folder / ASSETS).is_dir()]
    sure = (folder for folder in near if (folder / SETTINGS).is_file() or _declarations(folder))
    return next(sure, next(iter(near), None))


def project_root(environ: Mapping[str, str]) -> Path | None:
    """The folder of the project that a command is about; None where there is none.

    Raises:
        DataError: the environment names one that is none (code `config`).
    """
    value = environ.get(PROJECT)
    if not value:
        return project_above(Path.cwd())
    root = Path(value).absolute()
    if not (root / ASSETS).is_dir():
        cure = f"write the path of a folder with `{ASSETS}/`"
        raise wrong_variable(PROJECT, value, "no project", cure)
    return root


def found_in(root: Path) -> DiscoveredFlows:
    _open_package(root)
    flows: list[FlowAsset] = []
    broken: list[BrokenFlow] = []
    for file in _declarations(root):
        try:
            flows += _declared(file)
        except HydroError as error:
            broken.append(BrokenFlow(file.parent.name, file.parent, error))
    of_name = Counter(flow.name for flow in flows)
    twice = [flow for flow in flows if of_name[flow.name] > 1]
    for name, first in {flow.name: flow for flow in reversed(twice)}.items():
        others = [other.folder for other in twice if other.name == name]
        listed = " and in ".join(map(str, others))
        says = f"there are {len(others)} flows `{name}`: in {listed}"
        named = ProgramError.of("config", says, help="give one of them another name")
        broken.append(BrokenFlow(name, first.folder or root, named))
    once = [flow for flow in flows if of_name[flow.name] == 1]
    wrong: dict[str, ProgramError] = {}
    for flow in once:
        try:
            check_alone(flow)
        except ProgramError as error:
            wrong[flow.name] = error
    sound = [flow for flow in once if flow.name not in wrong]
    wrong |= dict(reads_wrong(sound, [*wrong, *(flow.name for flow in broken)]))
    broken += [BrokenFlow(f.name, f.folder or root, wrong[f.name]) for f in once if f.name in wrong]
    right = [flow for flow in once if flow.name not in wrong]
    return DiscoveredFlows(tuple(_fed(flow, right) for flow in right), tuple(broken))


def no_flows(root: Path) -> str:
    return (
        f"there is no flow in {shown_file(root / ASSETS)}: a flow is a folder there with an "
        "`asset.yaml` or an `asset.py`; `hydrotick init DIR` makes a project that has one"
    )


def _fed(flow: FlowAsset, flows: Sequence[FlowAsset]) -> FlowAsset:
    """The flow with the ticks of those that it reads, where they are others."""
    read = {one.flow for one in flow.reads.values()}
    ticks = {one.name: one.ticks for one in flows if one.name in read and one.ticks != flow.ticks}
    return replace(flow, fed_by=ticks) if ticks else flow


def is_module(flow: FlowAsset) -> bool:
    program = str(flow.program)
    return not isinstance(flow.program, Path) and not program.endswith((*PROGRAMS, ".py"))


def place_of(flow: FlowAsset) -> Path | None:
    """The file of a flow's program; None where it is none of the project."""
    program = str(flow.program)
    if not is_module(flow):
        return flow.folder / program if flow.folder else Path(program)
    if flow.folder is None:
        return None
    try:
        module = module_in(flow.folder, program.partition(":")[0])
    except ProgramError:
        return None
    return None if module is None else module.file


def _declarations(root: Path) -> list[Path]:
    return sorted(file for name in DECLARATIONS for file in (root / ASSETS).glob(f"*/{name}"))


def _open_package(root: Path) -> None:
    """Makes the modules of a project importable, in place of those of another one: those of its
    asset folders, and behind all others its own, as a program may be `module:attribute`.
    """
    directory = root / ASSETS
    present = sys.modules.get(PACKAGE)
    if present is not None and list(present.__path__) == [str(directory)]:
        return
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    for path in getattr(present, _ADDED, ()):
        if path in sys.path:
            sys.path.remove(path)
    package = ModuleType(PACKAGE, "The asset folders of a project.")
    package.__path__ = [str(directory)]
    added = [] if str(root) in sys.path else [str(root)]
    sys.path += added
    setattr(package, _ADDED, added)
    sys.modules[PACKAGE] = package
    importlib.invalidate_caches()


def _declared(file: Path) -> Iterator[FlowAsset]:
    if file.suffix == ".yaml":
        yield flow_of_yaml(file)
        return
    try:
        module = importlib.import_module(f"{PACKAGE}.{file.parent.name}.{file.stem}")
    except HydroError:
        raise
    except (Exception, SystemExit) as problem:
        # A script that ends its process would end that of all flows, without a word.
        raise _does_not_load(file, problem) from problem
    flows = {id(v): v for v in vars(module).values() if isinstance(v, FlowAsset)}
    for flow in flows.values():
        yield replace(flow, folder=file.parent)


def _does_not_load(file: Path, problem: BaseException) -> ProgramError:
    """Error of an asset's code, at the line of the asset that raised it."""
    if isinstance(problem, SyntaxError) and problem.filename:
        line, text = problem.lineno or 1, (problem.text or "").rstrip("\n")
        column = problem.offset or 1
        span = Span(problem.filename, line, column, line, column + 1, text)
        return ProgramError.of("config", problem.msg, span, help="it is Python")
    frames = [f for f in traceback.extract_tb(problem.__traceback__) if Path(f.filename) == file]
    where: Span | None = None
    if frames:
        line, text = frames[-1].lineno or 1, frames[-1].line or ""
        where = Span(str(file), line, 1, line, len(text) + 1, text)
    message = f"{file} cannot be loaded: {type(problem).__name__}: {problem}"
    return ProgramError.of("config", message, where, help="mend it: it is Python")


PACKAGE = "hydrotick_project"
"""The package whose modules are those of the asset folders: `hydrotick_project.totals.asset`. So
they hide no module of another package, and are hidden by none."""
_MARK = "a flow is a `Flow` of the module, or a function written in it: `def make() -> Flow:`"


@dataclass(frozen=True, slots=True)
class FlowModule:
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
    """True for a function of that very file whose annotation says that it returns a flow."""
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
    """True if the file is a part of the module, or of the package of that name."""
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
