"""Base of all parts of the reader; tuples, rows, lists, sets, comprehensions and f-strings."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from hydro_core.functions.allowed import CLASS_ATTRIBUTES
from hydro_core.functions.library.registry import ALL_METHODS
from hydro_core.functions.reading.check import Locate
from hydro_core.functions.reading.scope import (
    Builtin,
    Constant,
    Find,
    ForeignValue,
    Local,
    LocalFunction,
    Scope,
    UnreadableError,
    member,
    names_in,
)
from hydro_core.functions.tree import (
    FLATTEN,
    FORMAT,
    UNPACK,
    Bind,
    BindKind,
    Const,
    Expr,
    Make,
    Op,
    Param,
    Part,
    Spread,
)

LIMIT = 20_000
"""Most nodes of one tree, inlined functions included; a larger function is called as it is."""

_EFFECTS = (
    *(ast.AugAssign, ast.Delete, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal),
    *(ast.With, ast.AsyncWith, ast.AsyncFor, ast.Import, ast.ImportFrom, ast.ClassDef),
)
_DISPLAYS: Mapping[type[ast.AST], Literal["tuple", "list", "set"]] = {
    ast.Tuple: "tuple",
    ast.List: "list",
    ast.Set: "set",
}


class FunctionReading:
    """The state of reading one function; `expr` reads any expression."""

    def __init__(self, find: Find, place: Locate) -> None:
        self.find, self.place = find, place
        self.inlining: list[ast.AST] = []
        self.read = 0

    def expr(self, node: ast.expr, scope: Scope) -> Expr:
        self.read += 1
        if self.read > LIMIT:
            raise UnreadableError
        reader = getattr(self, f"read_{type(node).__name__}", None)
        if reader is None:
            return self.opaque(f"({type(node).__name__})", node, scope)
        found: Expr = reader(node, scope)
        return found

    def maybe(self, node: ast.expr, scope: Scope) -> Expr:
        """The tree of an expression that may not be evaluated: names that it binds become
        uncertain.
        """
        branch = scope.branch()
        found = self.expr(node, branch)
        scope.join(branch)
        return found

    def opaque(self, label: str, node: ast.AST, scope: Scope) -> Expr:
        """An opaque operation on the names in `node`; if it may have effects, the label loses its
        parentheses.
        """
        parts = self.parts(node, scope)
        pure = self.is_pure(node, scope)
        if not pure:
            scope.forget_changeable()
        return Op(f"?{label if pure else label.strip('()')}", parts, place=self.place(node))

    def parts(self, node: ast.AST, scope: Scope) -> tuple[Expr, ...]:
        """The expressions of the local names in `node`."""
        found: list[Expr] = []
        for name in names_in(node):
            match scope.names.get(name):
                case None | Const():
                    continue
                case LocalFunction(inner):
                    others = {n: v for n, v in scope.names.items() if n != name}
                    found += self.parts(inner, replace(scope, names=others))
                case local:
                    found.append(local)
        return tuple(found)

    def is_pure(self, node: ast.AST, scope: Scope) -> bool:
        """True if the node certainly changes no existing object."""
        for part in ast.walk(node):
            if isinstance(part, _EFFECTS):
                return False
            if isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(
                part.ctx, ast.Load
            ):
                return False
            if isinstance(part, ast.Call) and not self._is_pure_call(part.func, scope):
                return False
        return True

    def _is_pure_call(self, func: ast.expr, scope: Scope) -> bool:
        match func:
            case ast.Name(id=name):
                return name not in scope.names and isinstance(self.find(name), Builtin)
            case ast.Attribute(value=ast.Name(id=base), attr=attr) if base not in scope.names:
                binding = self.find(base)
                if isinstance(binding, Builtin):
                    return f"{base}.{attr}" in CLASS_ATTRIBUTES or attr in ALL_METHODS
                if isinstance(binding, ForeignValue):
                    return isinstance(member(binding, attr), Builtin)
                return isinstance(binding, Constant) and attr in ALL_METHODS
            case ast.Attribute(attr=attr):
                return attr in ALL_METHODS
            case _:
                return False

    def _made(self, node: ast.Tuple | ast.List | ast.Set, scope: Scope) -> Make:
        """`(a, *b)`, `[a, *b]`, `{a, *b}`."""
        parts = (
            Spread(self.expr(n.value, scope)) if isinstance(n, ast.Starred) else self.expr(n, scope)
            for n in node.elts
        )
        return Make(_DISPLAYS[type(node)], tuple(parts), place=self.place(node))

    read_Tuple = read_List = read_Set = _made  # noqa: N815

    def read_Dict(self, node: ast.Dict, scope: Scope) -> Expr:  # noqa: N802
        """A row where the keys are names; a constant where all is constant."""
        names: list[Any] = []
        parts: list[Expr | Spread] = []
        for key, value in zip(node.keys, node.values, strict=True):
            name = None if key is None else self.expr(key, scope)
            if name is not None and not isinstance(name, Const):
                return self.opaque("(dict)", node, scope)
            found = self.expr(value, scope)
            names.append(None if name is None else name.value)
            parts.append(Spread(found) if name is None else found)
        if all(
            isinstance(p, Spread) or isinstance(n, str) for n, p in zip(names, parts, strict=True)
        ):
            return Make("row", tuple(parts), tuple(names), self.place(node))
        if not all(isinstance(part, Const) for part in parts):
            return self.opaque("(dict)", node, scope)
        entries = {n: p.value for n, p in zip(names, parts, strict=True) if isinstance(p, Const)}
        return Const(entries, self.place(node))

    def _loop(self, node: ast.ListComp | ast.GeneratorExp, scope: Scope) -> Expr:
        """`[e for x in xs if c]`, `(e for x in xs if c)`."""
        kind: BindKind = "list" if isinstance(node, ast.ListComp) else "generator"
        return self._comprehension(kind, node, node.generators, scope)

    read_ListComp = read_GeneratorExp = _loop  # noqa: N815

    def read_SetComp(self, node: ast.SetComp, scope: Scope) -> Expr:  # noqa: N802
        """`{e for x in xs if c}`."""
        found = self._comprehension("set", node, node.generators, scope)
        return Op("set", (found,), place=self.place(node)) if isinstance(found, Op) else found

    def _comprehension(
        self,
        kind: BindKind,
        node: ast.ListComp | ast.GeneratorExp | ast.SetComp,
        generators: list[ast.comprehension],
        scope: Scope,
    ) -> Expr:
        first, *others = generators
        if first.is_async or not is_pattern(first.target):
            return self.opaque("(comprehension)", node, scope)
        source = self.expr(first.iter, scope)
        targets, names = self._targets(first.target, scope)
        inner = scope.branch(names)
        conditions = tuple(self.expr(c, inner) for c in first.ifs)
        place = self.place(node)
        if others:
            nested = self._comprehension("list", node, others, inner)
            lists = Bind("list", targets, source, nested, conditions, place)
            found: Expr = Op(FLATTEN, (lists,), place=place)
        else:
            element = self.expr(node.elt, inner)
            found = Bind(kind, targets, source, element, conditions, place)
        scope.join(inner, names, self.parts(node, scope))
        return found

    def _targets(self, target: ast.expr, scope: Scope) -> tuple[tuple[str, ...], dict[str, Local]]:
        match target:
            case ast.Name(id=name):
                fresh = scope.new(name)
                return (fresh,), {name: Param(fresh)}
            case ast.Tuple(elts) | ast.List(elts) if len(elts) > 1 and all(
                isinstance(e, ast.Name) for e in elts
            ):
                plain = [e.id for e in elts if isinstance(e, ast.Name)]
                fresh_names = tuple(map(scope.new, plain))
                return fresh_names, dict(zip(plain, map(Param, fresh_names), strict=True))
            case _:
                fresh = scope.new("item")
                return (fresh,), dict(unpacked(target, Param(fresh)))

    def read_JoinedStr(self, node: ast.JoinedStr, scope: Scope) -> Expr:  # noqa: N802
        """An f-string; one with a computed format is an opaque text of its parts."""
        parts: list[Expr] = []
        for value in node.values:
            match value:
                case ast.Constant(value=str(text)):
                    parts.append(Const(text))
                case ast.FormattedValue(inner, conversion, written):
                    spec = _constant_format(getattr(written, "values", []))
                    if spec is None:
                        return self.opaque(FORMAT[1:], node, scope)
                    shown = "" if conversion < 0 else chr(conversion)
                    parts.append(Op("{}", (self.expr(inner, scope), Const(shown), Const(spec))))
        return Op("f-string", tuple(parts), place=self.place(node))


def unpacked(target: ast.expr, value: Expr) -> list[tuple[str, Expr]]:
    """Each name of an assignment's left side, with its expression."""
    match target:
        case ast.Name(id=name):
            return [(name, value)]
        case ast.Starred(value=inner):
            return unpacked(inner, value)
        case ast.Tuple(elts) | ast.List(elts):
            star = next((i for i, e in enumerate(elts) if isinstance(e, ast.Starred)), None)
            parts = _parts_of(value, elts, star)
            return [pair for e, part in zip(elts, parts, strict=True) for pair in unpacked(e, part)]
        case _:
            return []


def _parts_of(value: Expr, targets: list[ast.expr], star: int | None) -> list[Expr]:
    fields = value.fields if isinstance(value, Make) and value.kind != "row" else None
    if fields is not None and star is None and len(fields) == len(targets):
        return list(fields.values())
    whole = Op(UNPACK, (value, Const(len(targets)), Const(star)))
    return [Part(whole, i) for i in range(len(targets))]


def is_pattern(target: ast.expr) -> bool:
    """True if the target binds names only."""
    allowed = (ast.Name, ast.Tuple, ast.List, ast.Starred, ast.expr_context)
    return all(isinstance(part, allowed) for part in ast.walk(target))


def _constant_format(parts: list[ast.expr]) -> str | None:
    """A format of texts and of literals in braces; None if a part of it is computed."""
    texts = []
    for part in parts:
        match part:
            case ast.Constant(str(text)) | ast.FormattedValue(ast.Constant(str(text)), -1, None):
                texts.append(text)
            case ast.FormattedValue(ast.Constant(int(number)), -1, None):
                texts.append(str(number))
            case _:
                return None
    return "".join(texts)
