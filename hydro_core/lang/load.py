"""FILE of the command line: a program's text, or a flow that a Python module holds."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType

from hydro_core.errors import ProgramError, Span, shown_file
from hydro_core.ir.graph import Graph
from hydro_core.lang.params import NO_PARAMS, Params, called_with, check_named
from hydro_core.lang.resolve import parse
from hydro_core.lang.rules.translate import graph_of_rules, read_rules
from hydro_core.lang.source import PROGRAMS, RULES, did_you_mean
from hydro_core.machine.faults import why_not

_FORMS = (
    "FILE is a program `*.hydro`, rules `*.dl`, or `module:attribute` for a flow built in Python"
)


def load(spec: str, params: Params = NO_PARAMS) -> Graph:
    """The graph of `*.hydro`, of rules `*.dl`, or of `module:attribute`: of a `Flow`, or of a
    function that gives one.

    Args:
        spec: the file, or the module and its attribute.
        params: constants that the text names, or arguments of a Python function.

    Raises:
        ProgramError: there is no such program, it is wrong, or it has other parameters.
    """
    module, colon, attribute = spec.rpartition(":")
    if spec.endswith(".py"):
        raise _which_flow(Path(spec))
    if spec.endswith(PROGRAMS) or not colon or Path(spec).exists():
        path = Path(spec)
        return load_text(read_program(path), str(path), params, path.stem)
    return _load_flow(module, attribute, spec, params)


def _which_flow(path: Path) -> ProgramError:
    """The help for a flow of a Python file, which is read and not executed."""
    if not path.exists():
        return _no_file(path)
    module = path.with_suffix("").as_posix().replace("/", ".")
    flows = _flows_in(path)
    says = " or ".join(f"`{module}:{name}`" for name in flows)
    cure = f"write {says}" if flows else f"write `{module}:NAME`, the name of the flow in it"
    return _unusable(f"{str(path)!r} is Python: say which flow of it is meant", cure)


def _no_file(path: Path) -> ProgramError:
    beside = path.parent.glob(f"*{path.suffix}") if path.parent.is_dir() else ()
    near = did_you_mean(path.name, [p.name for p in beside])
    return _unusable(f"there is no file `{shown_file(path)}`", near or _FORMS)


def _flows_in(path: Path) -> list[str]:
    """The names to which a module assigns the result of `Flow(…)`."""
    try:
        body = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return []
    found: list[ast.expr] = []
    for node in body:
        if not (isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call)):
            continue
        # It is `Flow(…)`, `Flow.parse(…)` or `hydro_core.Flow(…)`.
        named = (getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(node.value.func))
        if "Flow" in named:
            found += node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in found if isinstance(target, ast.Name)]


def read_program(path: Path) -> str:
    """The text of a program's file.

    Raises:
        ProgramError: it cannot be read (code `config`).
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise _no_file(path) from None
    except OSError as problem:
        raise _unusable(f"`{path}` cannot be read: {why_not(path, problem)}", _FORMS) from None
    except UnicodeDecodeError as problem:
        raise _unusable(
            f"{str(path)!r} is not UTF-8: byte {problem.start} is none of it", "save it as UTF-8"
        ) from None


def load_text(text: str, file: str, params: Params = NO_PARAMS, name: str = "flow") -> Graph:
    """The graph of a text from a file, of rules by its suffix; the text must name each
    parameter.
    """
    if file.endswith(RULES):
        graph = graph_of_rules(read_rules(text, file=file, constants=params.values), name)
    else:
        graph = parse(text, file=file, name=name, bindings=params.values)
    check_named(params, text, graph)
    return graph


def _load_flow(module: str, attribute: str, spec: str, params: Params) -> Graph:
    # As with `python -m`, modules of the working directory are found.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    value = attribute_of(imported(module), attribute)
    graph = _graph_of(value)
    if graph is not None and params.values:
        raise takes_none(spec)
    if graph is None and callable(value):
        graph = _graph_of(called_with(value, params, spec))
    if graph is None:
        raise _unusable(f"`{spec}` is no flow, but a {type(value).__name__}", _FORMS)
    return graph


def takes_none(spec: str) -> ProgramError:
    """The error for parameters of a flow that is no function."""
    message = f"`{spec}` is a flow that is made already, so it takes no parameters"
    return _unusable(message, "name a function that takes them, and gives the flow")


def imported(module: str) -> ModuleType:
    """The module of a name.

    Raises:
        ProgramError: the module is unknown, no Python, or ends the process (code `config`).
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as problem:
        if problem.name is None or not f"{module}.".startswith(f"{problem.name}."):
            raise
        raise _unusable(f"there is no module `{problem.name}`", _FORMS) from None
    except SyntaxError as problem:
        line, column = problem.lineno or 1, problem.offset or 1
        span = Span(problem.filename or module, line, column, line, column + 1, problem.text or "")
        encoded = "utf-8" in problem.msg.lower()
        cure = "save it as UTF-8" if encoded else "mend the module: this is what Python says of it"
        raise ProgramError.of("syntax", problem.msg, span, help=cure) from None
    except SystemExit as end:
        message = f"`{module}` ends the process that imports it: SystemExit: {end}"
        cure = 'put what a script does below `if __name__ == "__main__":`'
        raise _unusable(message, cure) from end


def attribute_of(module: ModuleType, attribute: str) -> object:
    """The attribute of a module, by a dotted name."""
    value: object = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            help_ = did_you_mean(part, [n for n in dir(value) if not n.startswith("_")])
            raise _unusable(f"`{module.__name__}` has no `{attribute}`", help_ or _FORMS)
        value = getattr(value, part)
    return value


def _graph_of(value: object) -> Graph | None:
    if isinstance(value, Graph):
        return value
    graph = getattr(value, "graph", None)
    if callable(graph) and not isinstance(value, type):
        graph = graph()
    return graph if isinstance(graph, Graph) else None


def _unusable(message: str, help_: str) -> ProgramError:
    return ProgramError.of("config", message, help=help_)
