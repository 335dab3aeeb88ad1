"""What a Python function reads that is not the same each time: the clock, chance, the machine.

Functions are deterministic by the language. Of a live Python function this cannot be proved, but
what is usually meant by mistake can be named: it is looked for in the function's syntax, and in
that of the functions that it names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from hydro_core.functions.kinds import Place
from hydro_core.functions.reading.names import Builtin, Definition, Find, Foreign

Unrepeatable = tuple[str, Place]
"""What is used, as it is written, and the line and column of it."""

_CLOCK = (
    *("time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.perf_counter"),
    *("time.perf_counter_ns", "time.process_time", "time.localtime", "time.gmtime", "time.ctime"),
    *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today"),
    *("datetime.date.today", "pandas.Timestamp.now", "pandas.Timestamp.today"),
)
_CHANCE = ("random", "_random", "secrets", "numpy.random", "uuid.uuid1", "uuid.uuid4", "os.urandom")
_MACHINE = (
    *("os.environ", "os._Environ", "os.getenv", "os.getpid", "os.getcwd", "os.listdir", "posix"),
    *("os.path.exists", "genericpath", "pathlib.Path", "pathlib.PosixPath", "glob.glob"),
    *("builtins.open", "_io.open", "io.open", "builtins.input", "builtins.id", "builtins.hash"),
    *("socket", "subprocess", "urllib.request", "requests", "http.client", "platform"),
    *("threading.get_ident", "getpass.getuser"),
)
_CHANGING = (*_CLOCK, *_CHANCE, *_MACHINE)


def uses_of(node: ast.Lambda | ast.FunctionDef, find: Find) -> tuple[Unrepeatable, ...]:
    """What the function uses that may be another at each call, each name once."""
    found: dict[str, Place] = {}
    for name, place in _uses(node, find, (node,)):
        found.setdefault(name, place)
    return tuple(found.items())


def is_changing(value: Any) -> bool:
    """Whether what a program is given to call, or an object that it holds, is of that kind."""
    return _matches(_name_of(value))


def _uses(
    node: ast.Lambda | ast.FunctionDef, find: Find, within: tuple[ast.AST, ...]
) -> Iterator[Unrepeatable]:
    imported = dict(_imports(node))
    own = {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)}
    own |= {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    for chain in _chains(node):
        root, *attributes = chain
        if not isinstance(root, ast.Name) or root.id in own:
            continue
        place = (root.lineno, root.col_offset + 1)
        if root.id in imported:
            yield from _of_chain(imported[root.id], root.id, attributes, place)
            continue
        match find(root.id):
            case Foreign(_, value):
                yield from _of_chain(_name_of(value), root.id, attributes, place)
            case Builtin(name):
                module = "datetime." if name in ("date", "datetime") else "builtins."
                yield from _of_chain(module + name, root.id, attributes, place)
            case Definition(name, inner, find_inner) if inner not in within:
                for used, _ in _uses(inner, find_inner, (*within, inner)):
                    yield f"{used}` in `{name}", place
            case _:
                continue


def _of_chain(
    label: str, written: str, attributes: list[ast.AST], place: Place
) -> Iterator[Unrepeatable]:
    """The shortest beginning of `a.b.c` that is of that kind, written out one name further."""
    names = [a.attr for a in attributes if isinstance(a, ast.Attribute)]
    for count in range(len(names) + 1):
        if _matches(".".join((label, *names[:count]))):
            yield ".".join((written, *names[: max(count, 1)])), place
            return


def _chains(node: ast.AST) -> Iterator[list[ast.AST]]:
    """Every name with the attributes that are read of it, the longest chain of each."""
    inner: set[ast.AST] = set()
    for part in ast.walk(node):
        if part in inner or not isinstance(part, ast.Attribute | ast.Name):
            continue
        chain: list[ast.AST] = [part]
        while isinstance(chain[-1], ast.Attribute):
            chain.append(chain[-1].value)
        inner.update(chain)
        yield chain[::-1]


def _imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that imports within the function bind, and what they stand for."""
    for part in ast.walk(node):
        if isinstance(part, ast.Import):
            for a in part.names:
                yield (a.asname, a.name) if a.asname else (a.name.partition(".")[0],) * 2
        elif isinstance(part, ast.ImportFrom) and part.module:
            for a in part.names:
                yield a.asname or a.name, f"{part.module}.{a.name}"


def _name_of(value: Any) -> str:
    """What a module, a function, a class or the class of an object is called."""
    if isinstance(value, ModuleType):
        return value.__name__
    owner, name = getattr(value, "__self__", None), getattr(value, "__name__", "")
    if isinstance(owner, ModuleType):
        return f"{owner.__name__}.{name}"
    if owner is not None and isinstance(name, str):
        kind = owner if isinstance(owner, type) else type(owner)
        return f"{kind.__module__}.{kind.__qualname__}.{name}"
    kind = value if hasattr(value, "__qualname__") else type(value)
    return f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', '')}"


def _matches(label: str) -> bool:
    return any(label == name or label.startswith(f"{name}.") for name in _CHANGING)
