"""The check of Python expressions in a text program: a list of allowed forms, nothing else.

The check reads the syntax tree only. The type of a value whose attribute is read is known at run
time only; it is guarded there (`allowed.attribute`).
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable
from typing import NoReturn

from hydro_core.errors import Code, TypeProblem
from hydro_core.functions.allowed import (
    BUILTINS,
    CLASS_ATTRIBUTES,
    IMPURE,
    METHODS,
    MODULES,
    visible,
)
from hydro_core.functions.kinds import Place
from hydro_core.functions.library.entry import MOST_BITS
from hydro_core.functions.library.registry import ALL_METHODS

Locate = Callable[[ast.AST], Place]
"""From a node of the syntax tree to its line and column in the program, both from 1."""

_FORMS = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.UnaryOp, ast.BinOp),
    *(ast.Compare, ast.BoolOp, ast.IfExp, ast.Call, ast.keyword, ast.Tuple, ast.List, ast.Set),
    *(ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.comprehension),
    *(ast.JoinedStr, ast.FormattedValue, ast.Lambda, ast.NamedExpr, ast.Starred, ast.arguments),
    *(ast.arg, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop),
)
_CONSTANTS = (bool, int, float, str, bytes, type(None))
_WORDS = {
    ast.Await: "`await`",
    ast.Yield: "`yield`",
    ast.YieldFrom: "`yield from`",
}
_DEPTH = 200
"""Largest depth of expressions; Python's own compiler gives up a little later."""


def place_of(node: ast.AST) -> Place:
    """The location of a node in the text that was parsed."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", -1) + 1


def check_expression(node: ast.expr, names: Iterable[str], locate: Locate = place_of) -> None:
    """Refuses expressions that a text program may not hold; `names` are bound by the caller."""
    _Check(frozenset(names), locate).visit(node, frozenset(_walrus(node)), 0)


class _Check:
    def __init__(self, names: frozenset[str], locate: Locate) -> None:
        self.names = names
        self.locate = locate
        self.last: ast.AST = ast.Pass()

    def refuse(
        self, node: ast.AST, message: str, cure: str | None = None, code: Code = "type"
    ) -> NoReturn:
        placed = node if hasattr(node, "lineno") else self.last
        raise TypeProblem(message, cure, place=self.locate(placed), code=code)

    def visit(self, node: ast.AST, local: frozenset[str], depth: int) -> None:
        if hasattr(node, "lineno"):
            self.last = node
        if depth > _DEPTH:
            self.refuse(node, "the expression nests too deep")
        self.form(node)
        match node:
            case ast.Name(id=name):
                self.name(node, name, local)
            case ast.Attribute(value=base, attr=attr):
                self.attribute(node, base, attr, local)
            case ast.Call():
                self.call(node, local)
            case ast.Lambda(args=args):
                self.parameters(node, args)
                local |= {a.arg for a in args.args} | set(_walrus(node))
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                local |= set(_targets(node))
            case _:
                pass
        for child in ast.iter_child_nodes(node):
            self.visit(child, local, depth + 1)

    def form(self, node: ast.AST) -> None:
        match node:
            case _ if not isinstance(node, _FORMS):
                what = _WORDS.get(type(node), f"`{type(node).__name__}`")
                self.refuse(node, f"{what} cannot be used in a function", code="syntax")
            case ast.Constant(value=value) if not isinstance(value, _CONSTANTS):
                self.refuse(node, f"{value!r} is not a value of any item", code="syntax")
            case ast.Constant(value=int(number)) if number.bit_length() > MOST_BITS:
                self.refuse(node, f"an integer of more than {MOST_BITS:,} bits cannot be used")
            case ast.Constant(value=str(text)) if any("\ud800" <= c <= "\udfff" for c in text):
                cure = "a character beyond U+FFFF is written `\\U0001f600`"
                self.refuse(node, "a text holds half of a surrogate pair", cure, "syntax")
            case ast.Attribute(ctx=ctx) | ast.Subscript(ctx=ctx) if not isinstance(ctx, ast.Load):
                self.refuse(node, "items are never changed: only names are bound", code="syntax")
            case ast.comprehension(is_async=1):
                self.refuse(node, "`async` cannot be used in a function", code="syntax")
            case ast.Name(id=name) | ast.arg(arg=name) if name.startswith("__"):
                self.refuse(node, f"the name `{name}` cannot be used", code="name")
            case _:
                pass

    def parameters(self, node: ast.AST, args: ast.arguments) -> None:
        if args.vararg or args.kwarg:
            message = "a function has a fixed number of parameters: `*` and `**` cannot be used"
            self.refuse(node, message)
        if args.defaults or args.kw_defaults or args.kwonlyargs or args.posonlyargs:
            self.refuse(node, "parameters are plain names: defaults, `*` and `/` cannot be used")

    def is_known(self, name: str, local: frozenset[str]) -> bool:
        return name in local or name in self.names or name in BUILTINS

    def name(self, node: ast.AST, name: str, local: frozenset[str]) -> None:
        if self.is_known(name, local):
            return
        cure = self.cure_of_name(name, sorted(local | self.names | set(BUILTINS)))
        self.refuse(node, f"there is no name `{name}`", cure, "name")

    @staticmethod
    def cure_of_name(name: str, known: list[str]) -> str:
        if name in ALL_METHODS:
            return f"it is a method: `x.{name}()`"
        if name in MODULES:
            return f"functions see no modules: {MODULES[name]}"
        near = difflib.get_close_matches(name, known, 1)
        if near:
            return f"did you mean `{near[0]}`?"
        return "functions see their parameters, Python's pure builtins and what the caller binds"

    def attribute(self, node: ast.AST, base: ast.expr, attr: str, local: frozenset[str]) -> None:
        if not visible(attr):
            self.refuse(
                node,
                f"the attribute `{attr}` cannot be read",
                f'a column of that name is `["{attr}"]`' if not attr.startswith("__") else None,
                "name",
            )
        if not isinstance(base, ast.Name) or base.id in local:
            return
        if base.id in self.names:
            self.refuse(
                node, f"`{base.id}.{attr}` cannot be read: bind the value itself", code="name"
            )
        kind = BUILTINS.get(base.id)
        whole = f"{base.id}.{attr}"
        if kind is not None and whole not in CLASS_ATTRIBUTES and attr not in METHODS.get(kind, ()):
            self.refuse(node, f"there is no `{whole}` here", IMPURE.get(attr), "name")

    def call(self, node: ast.Call, local: frozenset[str]) -> None:
        match node.func:
            case ast.Attribute(value=base, attr=attr) if visible(attr):
                of_class = (
                    isinstance(base, ast.Name) and base.id in BUILTINS and base.id not in local
                )
                unknown = isinstance(base, ast.Name) and not self.is_known(base.id, local)
                if not of_class and not unknown and attr not in ALL_METHODS:
                    near = difflib.get_close_matches(attr, ALL_METHODS, 1)
                    cure = IMPURE.get(attr) or (f"did you mean `.{near[0]}`?" if near else None)
                    self.refuse(node.func, f"no item has a method `{attr}`", cure, "name")
                self.zone(node, attr)
            case _:
                pass

    def zone(self, node: ast.Call, attr: str) -> None:
        given = len(node.args) + len(node.keywords)
        if attr == "astimezone" and not given:
            self.refuse(node, "`astimezone()` reads the machine's zone", "name one: `timezone.utc`")
        if attr == "fromtimestamp" and given < 2:
            cure = "name one: `datetime.fromtimestamp(x, timezone.utc)`"
            self.refuse(node, "`fromtimestamp(x)` reads the machine's zone", cure)


def _targets(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> Iterable[str]:
    for generator in node.generators:
        for part in ast.walk(generator.target):
            if isinstance(part, ast.Name):
                yield part.id


def _walrus(node: ast.AST) -> Iterable[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.NamedExpr):
            yield part.target.id
