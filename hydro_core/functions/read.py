"""Reading of functions: from the text of a program, or from live Python.

Reading executes nothing of a text program: a lambda is checked, becomes a tree, and is compiled on
its first call. The values that a function closes over are constant; they are part of its tree, and
of its `closed`, which is part of its identity.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date
from itertools import count
from types import FunctionType, ModuleType
from typing import Any

from hydro_core.errors import Span, TypeProblem
from hydro_core.functions.allowed import BUILTINS
from hydro_core.functions.call import TextCall
from hydro_core.functions.constant import value_of
from hydro_core.functions.from_tree import TreeCall, is_complete, python_text
from hydro_core.functions.reading.check import Locate, check_expression, place_of
from hydro_core.functions.reading.scope import (
    Builtin,
    Constant,
    Definition,
    Find,
    ForeignValue,
    Scope,
    UnreadableError,
    Unrepeatable,
    binding_of,
    finder,
    is_changing,
    uses_of,
    visible_builtin,
)
from hydro_core.functions.reading.statements import FunctionReader
from hydro_core.functions.tree import Algebra, Expr, Fn, Op, Param, nodes
from hydro_core.types.item import BINARY, BOOLEAN, DATE, DOUBLE, LONG, STRING, ItemType

_NUMBERS = count(1)
_LABELS: dict[int, tuple[str, Any]] = {}
"""Numbers of objects without a name of their own; the object is stored too, so that no other one
gets its id.
"""
_ANNOTATIONS: Mapping[Any, ItemType] = {
    name: item
    for kind, item in (
        *((bool, BOOLEAN), (int, LONG), (float, DOUBLE)),
        *((str, STRING), (bytes, BINARY), (date, DATE)),
    )
    for name in (kind, kind.__name__)
}
"""Annotations of a result that name a type, as they are or as text."""


def read_function(
    tree: ast.expr,
    bindings: Mapping[str, Any],
    *,
    locate: Locate = place_of,
    span: Span | None = None,
    algebra: Algebra | None = None,
    returns: ItemType | None = None,
) -> Fn:
    """The function of an argument of a text program: a lambda, a bound name, or a builtin.

    `locate` gives the line and column in the program of a node of `tree`.

    >>> read_function(ast.parse("lambda k, v: (v, k)", mode="eval").body, {}).params
    ('k', 'v')
    """
    check_expression(tree, bindings, locate)
    algebra = algebra or Algebra()
    match tree:
        case ast.Lambda():
            definition = Definition("<lambda>", tree, finder(bindings, visible_builtin), locate)
            params = tuple(a.arg for a in tree.args.args)
            called = {n: b.call if isinstance(b, Fn) else b for n, b in bindings.items()}
            call = TextCall(tree, called)
            fn = _defined(definition, params, call, returns, algebra, span)
            whole = fn.tree if is_complete(fn.tree) else None
            return fn if whole is None else replace(fn, call=TreeCall(whole, params))
        case ast.Name(id=name) if isinstance(bindings.get(name), Fn):
            known: Fn = bindings[name]
            return known
        case ast.Name(id=name) if name in bindings and not callable(bindings[name]):
            problem = f"`{name}` is bound to a value, not to a function"
            raise TypeProblem(problem, place=locate(tree))
        case ast.Name(id=name):
            f = bindings[name] if name in bindings else BUILTINS[name]
            return read_callable(f, name=name, returns=returns, algebra=algebra, span=span)
        case _:
            cure = "write `lambda x: …`, or a name that the caller binds"
            raise TypeProblem("this is not a function", cure, place=locate(tree))


def read_callable(
    f: Callable[..., Any],
    *,
    name: str | None = None,
    returns: ItemType | None = None,
    algebra: Algebra | None = None,
    span: Span | None = None,
) -> Fn:
    """A live Python function: with a tree if its source can be read, else called as it is."""
    algebra = algebra or Algebra()
    own = name or str(getattr(f, "__name__", type(f).__name__))
    match binding_of(own, f):
        case Builtin(builtin):
            tree: Expr = Op(builtin, (Param("x"),))
            return Fn(own, builtin, ("x",), f, tree, algebra, returns, span, pure=True)
        case Definition() as definition:
            if returns is None and isinstance(f, FunctionType):
                annotation = f.__annotations__.get("return")
                is_told = isinstance(annotation, str | type)
                returns = _ANNOTATIONS.get(annotation) if is_told else None
            fn = _defined(definition, _parameters(f, own), f, returns, algebra, span)
            used = _places(f, uses_of(definition.node, definition.find))
            return replace(fn, unrepeatable=used)
        case _:
            params = _parameters(f, own)
            source = f"{own} = {_label(f)}"
            fn = Fn(own, source, params, f, None, algebra, returns, span)
            return replace(fn, unrepeatable=((own, span),)) if is_changing(f) else fn


def _defined(
    definition: Definition,
    params: tuple[str, ...],
    call: Callable[..., Any],
    returns: ItemType | None,
    algebra: Algebra,
    span: Span | None,
) -> Fn:
    tree, text = _tree(definition), python_text(definition.node)
    name = text if definition.name == "<lambda>" else definition.name
    pure = tree is not None and not has_effects(tree)
    closed = _closed(definition.node, definition.find)
    return Fn(name, text, params, call, tree, algebra, returns, span, pure, closed)


def _places(
    f: Callable[..., Any], uses: Iterable[Unrepeatable]
) -> tuple[tuple[str, Span | None], ...]:
    """The locations of the given uses in the function's file."""
    file = f.__code__.co_filename if isinstance(f, FunctionType) else "<unknown>"
    return tuple(
        (name, Span(file, line, column, line, column + 1, linecache.getline(file, line).rstrip()))
        for name, (line, column) in uses
    )


def constant(tree: ast.expr, bindings: Mapping[str, Any], *, locate: Locate = place_of) -> Any:
    """The value of a constant expression, computed within limits and without calling anything.

    A lambda without parameters has the value of its body.

    >>> constant(ast.parse("[(1, 'a' * 3), (2, max(4, 5))]", mode="eval").body, {})
    [(1, 'aaa'), (2, 5)]
    """
    check_expression(tree, bindings, locate)
    if isinstance(tree, ast.Lambda) and not tree.args.args:
        tree = tree.body
    reader = FunctionReader(finder(bindings, visible_builtin), locate)
    try:
        return value_of(reader.expr(tree, Scope()))
    except UnreadableError:
        raise TypeProblem("the constant is too large", place=locate(tree)) from None


def has_effects(tree: Expr) -> bool:
    """True if some part of the tree may change its arguments."""
    return any(
        isinstance(part, Op) and part.name[:1] == "?" and part.name[:2] != "?("
        for part in nodes(tree)
    )


def _tree(definition: Definition) -> Expr | None:
    reader = FunctionReader(definition.find, definition.locate)
    scope = Scope({a.arg: Param(a.arg) for a in definition.node.args.args})
    reader.inlining.append(definition.node)
    try:
        return reader.body(definition.node, scope)
    except (UnreadableError, RecursionError):
        return None


def _parameters(f: Callable[..., Any], name: str) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return ("x",)
    if inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f):
        raise TypeProblem(
            f"`{name}` is asynchronous: a function of a program gives its result at once"
        )
    for parameter in parameters:
        if parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
            parameter.KEYWORD_ONLY,
        ):
            if isinstance(f, FunctionType):
                raise TypeProblem(
                    f"`{name}` takes `{parameter}`: a function has a fixed number of parameters"
                )
            return ("x",)
        if parameter.default is not parameter.empty and isinstance(f, FunctionType):
            cure = "what a function closes over is constant, so no default is needed to hold it"
            raise TypeProblem(f"`{name}` has a default for `{parameter.name}`", cure)
    return tuple(p.name for p in parameters if p.default is p.empty)


def _closed(node: ast.Lambda | ast.FunctionDef, find: Find) -> tuple[tuple[str, str], ...]:
    """Names and texts of the values that a function, and the functions that it names, close
    over.
    """
    seen: dict[tuple[str, str], None] = {}
    todo = [(node, find)]
    while todo:
        function, lookup = todo.pop()
        bound = {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
        for name in sorted({n.id for n in ast.walk(function) if isinstance(n, ast.Name)} - bound):
            match lookup(name):
                case Constant(value):
                    pair = name, repr(value)
                case Definition(_, inner, find_inner):
                    pair = name, python_text(inner)
                    if pair not in seen:
                        todo.append((inner, find_inner))
                case ForeignValue(_, value):
                    pair = name, _label(value)
                case _:
                    continue
            seen[pair] = None
    return tuple(seen)


def _label(value: Any) -> str:
    """A unique label of an unreadable object: its name, if it has one of its own."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(value, ModuleType):
        return f"<module {value.__name__}>"
    if isinstance(name, str) and "<" not in name and module is not None:
        return f"<{module}.{name}>"
    if id(value) not in _LABELS:
        _LABELS[id(value)] = (f"<{type(value).__name__} {next(_NUMBERS)}>", value)
    return _LABELS[id(value)][0]
