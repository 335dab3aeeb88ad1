"""Finds the project that a folder is in, and the flows that its asset folders declare.

A project is a folder with `assets/`. Each folder in there that has an `asset.yaml` or an `asset.py`
declares flows; one whose declaration is wrong is told beside the others, which it does not touch.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from hydro_core.errors import HydroError, ProgramError, Span, shown_file
from hydro_core.lang.source import PROGRAMS
from hydro_core.machine.environment import wrong_variable
from hydro_core.project.asset_yaml import flow_of_yaml
from hydro_core.project.check import check_alone
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.modules import PACKAGE, module_in
from hydro_core.project.reads import reads_wrong

ASSETS = "assets"
SETTINGS = "hydrotick.toml"
DECLARATIONS = ("asset.yaml", "asset.py")
PROJECT = "HYDROTICK_PROJECT"
"""The variable that names a project from elsewhere."""
_ADDED = "__added__"
"""Where the package has what it has added to the places of modules."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A flow that is none: what declares it, and what is wrong with that."""

    name: str
    folder: Path
    error: HydroError


@dataclass(frozen=True, slots=True)
class DiscoveredFlows:
    """The flows of a project, each with its folder, and the declarations that are wrong."""

    flows: tuple[FlowAsset, ...] = ()
    broken: tuple[Broken, ...] = ()


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
    """The flows of a project, in the order of their folders."""
    _open_package(root)
    flows: list[FlowAsset] = []
    broken: list[Broken] = []
    for file in _declarations(root):
        try:
            flows += _declared(file)
        except HydroError as error:
            broken.append(Broken(file.parent.name, file.parent, error))
    of_name = Counter(flow.name for flow in flows)
    twice = [flow for flow in flows if of_name[flow.name] > 1]
    for name, first in {flow.name: flow for flow in reversed(twice)}.items():
        others = [other.folder for other in twice if other.name == name]
        listed = " and in ".join(map(str, others))
        says = f"there are {len(others)} flows `{name}`: in {listed}"
        named = ProgramError.of("config", says, help="give one of them another name")
        broken.append(Broken(name, first.folder or root, named))
    once = [flow for flow in flows if of_name[flow.name] == 1]
    wrong: dict[str, ProgramError] = {}
    for flow in once:
        try:
            check_alone(flow)
        except ProgramError as error:
            wrong[flow.name] = error
    sound = [flow for flow in once if flow.name not in wrong]
    wrong |= dict(reads_wrong(sound, [*wrong, *(flow.name for flow in broken)]))
    broken += [Broken(f.name, f.folder or root, wrong[f.name]) for f in once if f.name in wrong]
    right = [flow for flow in once if flow.name not in wrong]
    return DiscoveredFlows(tuple(_fed(flow, right) for flow in right), tuple(broken))


def no_flows(root: Path) -> str:
    """What is said of a project without any flow, and what to do."""
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
    """Whether the program is `module:attribute`, and no file."""
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
    """What the code of an asset raised, at the line of the asset that led there."""
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
