"""Names inside a function: parameters, local names, constants, builtins and other functions."""

from __future__ import annotations

import ast
import builtins
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count
from types import CodeType, FunctionType, ModuleType
from typing import Any

from hydro_core.functions.allowed import BUILTINS
from hydro_core.functions.kinds import Place
from hydro_core.functions.library.registry import NAMES
from hydro_core.functions.reading.check import Locate, place_of
from hydro_core.functions.tree import MATCHED, UNBOUND, UNPACK, Bind, Const, Expr, Op, Param, Part
from hydro_core.types.values import ValueProblem, to_item

# Uses of the clock, of randomness and of the machine in a Python function.
#
# Functions are deterministic by the language. This cannot be proved of a live Python function, but
# the usual mistakes can be named: they are searched in the function's syntax, and in that of the
# functions that it names.


Unrepeatable = tuple[str, Place]
"""The used name as it is written, with its line and column."""

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
    """The uses of a function that may differ between calls, each name once."""
    found: dict[str, Place] = {}
    for name, place in _uses(node, find, (node,)):
        found.setdefault(name, place)
    return tuple(found.items())


def is_changing(value: Any) -> bool:
    """True if a bound value, or an object that it holds, may differ between calls."""
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
            case ForeignValue(_, value):
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
    """The shortest prefix of `a.b.c` that may differ between calls, extended by one name."""
    names = [a.attr for a in attributes if isinstance(a, ast.Attribute)]
    for length in range(len(names) + 1):
        if _matches(".".join((label, *names[:length]))):
            yield ".".join((written, *names[: max(length, 1)])), place
            return


def _chains(node: ast.AST) -> Iterator[list[ast.AST]]:
    """Every name with the attributes that are read from it, the longest chain of each."""
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
    """The names that imports within the function bind, with their full names."""
    for part in ast.walk(node):
        if isinstance(part, ast.Import):
            for a in part.names:
                yield (a.asname, a.name) if a.asname else (a.name.partition(".")[0],) * 2
        elif isinstance(part, ast.ImportFrom) and part.module:
            for a in part.names:
                yield a.asname or a.name, f"{part.module}.{a.name}"


def _name_of(value: Any) -> str:
    """The full name of a module, a function, a class, or the class of an object."""
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


# The names that are bound inside a function during reading, and their expressions.


class UnreadableError(Exception):
    """The function cannot be read as a tree."""


@dataclass(frozen=True, slots=True)
class LocalFunction:
    """A `def` or lambda bound to a name in the function; it reads the names of its level."""

    node: ast.FunctionDef | ast.Lambda
    level: object


Local = Expr | LocalFunction


@dataclass(slots=True)
class Scope:
    """Local names with their expressions, at one level: the body of one function."""

    names: dict[str, Local] = field(default_factory=dict)
    fresh: count[int] = field(default_factory=lambda: count(1))
    level: object = field(default_factory=object)

    def branch(self, names: Mapping[str, Local] | None = None) -> Scope:
        """A copy; its bindings have no effect here unless it is `joined`."""
        return replace(self, names={**self.names, **(names or {})})

    def function(self, names: Mapping[str, Local], *, sees: bool) -> Scope:
        """The scope of a function's body; a nested one sees the names around it."""
        return Scope({**(self.names if sees else {}), **names}, self.fresh)

    def join(
        self, other: Scope, targets: Iterable[str] = (), parts: tuple[Expr, ...] | None = None
    ) -> None:
        """Merges a branch: names that it may have bound become unknown.

        For a loop, values may name its own `targets`: their known parts are `parts`.
        """
        for name, value in other.names.items():
            before = self.names.get(name)
            if name not in targets and before is not value:
                both = (value, before)
                known = tuple(v for v in both if v is not None and not isinstance(v, LocalFunction))
                self.names[name] = Op(UNBOUND, known if parts is None else parts)

    def forget_changeable(self) -> None:
        """Makes local values that may hold an array unknown, after a call that may change
        arrays.
        """
        for name, value in self.names.items():
            if not isinstance(value, LocalFunction) and not _is_fixed(value):
                self.names[name] = Op(UNBOUND, (value,))

    def new(self, name: str) -> str:
        """A name that no program can write and no other call of `new` gives."""
        return f"{name.partition('.')[0]}.{next(self.fresh)}"

    def held(self, name: str, value: Expr, lets: list[tuple[str, Expr]]) -> Expr:
        """The value, if it may be repeated at every read; else a variable, which is added to
        `lets`.
        """
        if is_small(value):
            return value
        fresh = Param(self.new(name))
        lets.append((fresh.name, value))
        return fresh


def within(lets: list[tuple[str, Expr]], body: Expr, place: Place | None = None) -> Expr:
    """The body with variables around it."""
    for name, value in reversed(lets):
        body = Bind("let", (name,), value, body, place=place or value.place)
    return body


def is_small(expr: Expr) -> bool:
    """True if an expression may replace every read of its variable: a scalar constant, or a part of
    a parameter or of another variable.
    """
    root = _root(expr)
    return isinstance(root, Param) or (
        isinstance(root, Const) and root is expr and not isinstance(root.value, list | dict | tuple)
    )


def _root(expr: Expr) -> Expr:
    while True:
        match expr:
            case Part(base) | Op("[]", (base, Const())):
                expr = base
            case Op(name, (base, *_)) if name in (UNPACK, MATCHED):
                expr = base
            case _:
                return expr


def _is_fixed(expr: Expr) -> bool:
    # The field map tracks the arrays in a parameter; a local value may be an array itself.
    root = _root(expr)
    known = isinstance(expr, Op) and expr.name == UNBOUND
    return known or (is_small(expr) and not (isinstance(root, Param) and "." in root.name))


def names_in(node: ast.AST) -> Iterable[str]:
    """The names that are read or bound in the node, each once, in order."""
    return dict.fromkeys(part.id for part in ast.walk(node) if isinstance(part, ast.Name))


# Bindings of names that are no parameters: a constant, a builtin, or another function.
#
# A text program sees its caller's bindings and the pure builtins. A Python function sees the values
# that it closes over; these are constant by the language, so each is looked up once, when the
# function is read. The syntax of a live function is used only if it compiles to exactly the
# function's code.


FunctionNode = ast.Lambda | ast.FunctionDef


@dataclass(frozen=True, slots=True)
class Constant:
    """An item."""

    value: Any


@dataclass(frozen=True, slots=True)
class Builtin:
    """One of the visible builtins, or a function of `math`."""

    name: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A function with known syntax, and the bindings of its free names."""

    name: str
    node: FunctionNode
    find: Find
    locate: Locate


@dataclass(frozen=True, slots=True)
class ForeignValue:
    """Anything else: a function that cannot be read, a module, an object."""

    name: str
    value: Any = None


Binding = Constant | Builtin | Definition | ForeignValue
Find = Callable[[str], Binding | None]
"""The binding of a name; None if it has none."""


def binding_of(name: str, value: Any) -> Binding:
    """The binding of a value that a function closes over."""
    if id(value) in NAMES:
        return Builtin(NAMES[id(value)])
    if isinstance(value, FunctionType):
        return define(name, value) or ForeignValue(name, value)
    if callable(value):
        return ForeignValue(name, value)
    try:
        return Constant(plain(to_item(value)))
    except ValueProblem:
        return ForeignValue(name, value)


def finder(values: Mapping[str, Any], rest: Find) -> Find:
    """Looks names up in `values`, then in `rest`; each is looked up once."""
    found: dict[str, Binding | None] = {}

    def find(name: str) -> Binding | None:
        if name not in found:
            found[name] = binding_of(name, values[name]) if name in values else rest(name)
        return found[name]

    return find


def python_builtin(name: str) -> Binding | None:
    """The binding of a builtin in a Python function; an impure one is foreign and cannot be
    read.
    """
    if not hasattr(builtins, name):
        return ForeignValue(
            name
        )  # The name may be bound later, or never: a call of the function then fails.
    value = getattr(builtins, name)
    return Builtin(name) if BUILTINS.get(name) is value else ForeignValue(name, value)


def visible_builtin(name: str) -> Binding | None:
    """The binding of a builtin in a function of a text program."""
    return Builtin(name) if name in BUILTINS else None


def member(module: ForeignValue, name: str) -> Binding | None:
    """`module.name`, where it is a module and has it."""
    if not isinstance(module.value, ModuleType) or not hasattr(module.value, name):
        return None
    return binding_of(f"{module.name}.{name}", getattr(module.value, name))


def plain(item: Any) -> Any:
    """An item with Python's own tuples and dicts, as a constant of a tree holds it."""
    match item:
        case tuple():
            return tuple(map(plain, item))
        case dict():
            return {name: plain(value) for name, value in dict.items(item)}
        case list():
            return [plain(element) for element in item]
        case _:
            return item


def define(name: str, function: FunctionType) -> Definition | None:
    """The definition of a function; None if its source cannot be read."""
    node = _syntax(function)
    if node is None:
        return None
    values = {**function.__globals__, **_closed(function)}
    return Definition(name, node, finder(values, python_builtin), place_of)


def _closed(function: FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found = {}
    for name, cell in cells:
        try:
            found[name] = cell.cell_contents
        except ValueError:  # A variable that is bound later is not constant yet.
            continue
    return found


def _syntax(function: FunctionType) -> FunctionNode | None:
    code = function.__code__
    if inspect.iscoroutinefunction(function) or function.__defaults__ or function.__kwdefaults__:
        return None
    try:
        lines = tuple(inspect.findsource(code)[0])
    except (OSError, TypeError, IndexError, SyntaxError):
        return None
    functions, codes = _source(lines)
    if not any(_is_same(c, code) for c in codes):
        return None
    nodes = [n for n in functions if _name(n) == code.co_name and _holds(n, code)]
    return min(nodes, key=_length, default=None)


@lru_cache(maxsize=64)
def _source(lines: tuple[str, ...]) -> tuple[tuple[FunctionNode, ...], tuple[CodeType, ...]]:
    """The functions in a module's text, and the codes that it compiles to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python has warned when it compiled the source
        try:
            module = ast.parse("".join(lines))
            code = compile(module, "<source>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            return (), ()
    functions = (n for n in ast.walk(module) if isinstance(n, ast.Lambda | ast.FunctionDef))
    return tuple(functions), tuple(_codes(code))


def _codes(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from _codes(const)


def _is_same(a: CodeType, b: CodeType) -> bool:
    """True if two codes are equal and have the same location."""
    if a.co_firstlineno != b.co_firstlineno or a.co_code != b.co_code:
        return False
    if list(a.co_positions()) != list(b.co_positions()) or len(a.co_consts) != len(b.co_consts):
        return False
    names = ("co_name", "co_names", "co_varnames", "co_freevars", "co_cellvars")
    if any(getattr(a, name) != getattr(b, name) for name in names):
        return False
    return all(_is_same_constant(x, y) for x, y in zip(a.co_consts, b.co_consts, strict=True))


def _is_same_constant(a: Any, b: Any) -> bool:
    if isinstance(a, CodeType) and isinstance(b, CodeType):
        return _is_same(a, b)
    return type(a) is type(b) and repr(a) == repr(b)


def _name(node: FunctionNode) -> str:
    return "<lambda>" if isinstance(node, ast.Lambda) else node.name


def _body(node: FunctionNode) -> tuple[tuple[int, int], tuple[int, int]]:
    first = node.body if isinstance(node, ast.Lambda) else node.body[0]
    last = node.body if isinstance(node, ast.Lambda) else node.body[-1]
    end = (last.end_lineno or last.lineno, last.end_col_offset or 0)
    return (first.lineno, first.col_offset), end


def _holds(node: FunctionNode, code: CodeType) -> bool:
    """True if all instructions of the code are within the body of the node."""
    start, end = _body(node)
    spots = [
        (line, column)
        for line, _, column, end_column in code.co_positions()
        if line is not None and column is not None and end_column
    ]
    return bool(spots) and all(start <= spot <= end for spot in spots)


def _length(node: FunctionNode) -> tuple[int, int]:
    (line, column), (end_line, end_column) = _body(node)
    return end_line - line, end_column - column
