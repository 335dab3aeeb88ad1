"""Functions that are made from trees: no text is parsed, and no closure is needed to run them.

What a rule derives from a function, and what is read back from where a plan is stored, is a tree.
Its syntax is built node by node and compiled on the first call. Names are given by the tree alone:
a builtin stands under a name that no program can write, so no parameter can hide it.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hydro_core.errors import Span
from hydro_core.functions.allowed import attribute, formatted
from hydro_core.functions.fn import Algebra, Fn
from hydro_core.functions.library.builtins import FUNCTIONS
from hydro_core.functions.python_text import python_text
from hydro_core.functions.scope import FLATTEN, UNPACK
from hydro_core.functions.tree import (
    Attribute,
    Binary,
    BoolOp,
    Call,
    Compare,
    Comprehension,
    Const,
    Expr,
    FString,
    IfElse,
    Index,
    Inner,
    Let,
    MakeList,
    MakeRow,
    MakeTuple,
    Method,
    Opaque,
    Param,
    Slice,
    Spread,
    Unary,
)
from hydro_core.functions.walk import children
from hydro_core.types.item import ItemType

MAX_DEPTH = 150
"""Python's own compiler goes so deep, and some way further."""
_ATTRIBUTE = " attribute"
_FORMATTED = " formatted"
"""No program can write these names."""
_LITERALS = (bool, int, float, str, bytes, type(None))
_OPERATORS: dict[str, Callable[[], Any]] = {
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "/": ast.Div,
    "//": ast.FloorDiv,
    "%": ast.Mod,
    "**": ast.Pow,
    "&": ast.BitAnd,
    "|": ast.BitOr,
    "^": ast.BitXor,
    "<<": ast.LShift,
    ">>": ast.RShift,
    "==": ast.Eq,
    "!=": ast.NotEq,
    "<": ast.Lt,
    "<=": ast.LtE,
    ">": ast.Gt,
    ">=": ast.GtE,
    "in": ast.In,
    "not in": ast.NotIn,
    "is": ast.Is,
    "is not": ast.IsNot,
    "and": ast.And,
    "or": ast.Or,
    "not": ast.Not,
    "~": ast.Invert,
}
_UNARY: dict[str, Callable[[], Any]] = {"-": ast.USub, "+": ast.UAdd}


def function_of(
    tree: Expr,
    params: tuple[str, ...],
    *,
    like: Fn | None = None,
    returns: ItemType | None = None,
    span: Span | None = None,
) -> Fn:
    """The function of a complete tree; `like` gives the place and what is declared.

    >>> f = function_of(Binary("+", Param("x"), Const(1)), ("x",))
    >>> f.call(2), f.source
    (3, 'lambda x: x + 1')
    """
    source = text_of(tree, params)
    algebra, own = Algebra(), source
    if like is not None:
        algebra, returns, span = like.algebra, like.returns, like.span
    return Fn(own, source, params, TreeCall(tree, params), tree, algebra, returns, span, pure=True)


class TreeCall:
    """A callable that compiles its tree when it is first called; it can be pickled."""

    __slots__ = ("_compiled", "params", "tree")

    def __init__(self, tree: Expr, params: tuple[str, ...]) -> None:
        self.tree, self.params = tree, params
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """The function's result."""
        if self._compiled is None:
            self._compiled = compiled(self.tree, self.params)
        return self._compiled(*arguments)

    def __reduce__(self) -> tuple[type, tuple[Expr, tuple[str, ...]]]:
        return TreeCall, (self.tree, self.params)


def compiled(tree: Expr, params: Sequence[str]) -> Callable[..., Any]:
    """The Python function of a complete tree."""
    builder = _Builder()
    function = ast.Expression(builder.function(params, tree))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `x is 1` means what it means in Python
        code = compile(ast.fix_missing_locations(function), "<tree>", "eval")
    scope = {"__builtins__": {}, **_SCOPE, **builder.constants}
    made: Callable[..., Any] = eval(code, scope)  # noqa: S307 - built of the closed set of nodes
    return made


def text_of(tree: Expr, params: Sequence[str]) -> str:
    """The function as a person reads it; it is never parsed again.

    Two functions of one text are the same but for the names of variables.
    """
    node = _Builder(shown=_shown_names((*params, *_names(tree)))).function(params, tree)
    return python_text(ast.fix_missing_locations(node))


def _shown_names(names: Iterable[str]) -> Mapping[str, str]:
    """The names as they are shown: what the reader made up holds a point."""
    found: dict[str, str] = {name: name for name in names if "." not in name}
    for name in names:
        plain = name.replace(".", "_")
        found.setdefault(name, name if plain in found.values() else plain)
    return found


def _names(tree: Expr) -> Iterator[str]:
    todo = [tree]
    while todo:
        node = todo.pop()
        match node:
            case Param(name) | Let(name):
                yield name
            case Comprehension(targets=names) | Inner(names):
                yield from names
        todo += children(node)


def is_complete(tree: Expr | None) -> bool:
    """Whether the tree alone says what the function does, so that it can be made from it."""
    if tree is None:
        return False
    todo: list[tuple[Expr, int]] = [(tree, 1)]
    while todo:
        node, depth = todo.pop()
        if depth > MAX_DEPTH or isinstance(node, Opaque) or not _is_known(node):
            return False
        todo += [(child, depth + 1) for child in children(node)]
    return True


def _is_known(node: Expr) -> bool:
    match node:
        case Call(name):
            return name in FUNCTIONS or name in (FLATTEN, UNPACK)
        case _:
            return True


class _Builder:
    """Syntax of trees: as it runs, or as it is shown."""

    def __init__(self, shown: Mapping[str, str] | None = None) -> None:
        self.shown = shown
        self.constants: dict[str, Any] = {}

    def function(self, params: Sequence[str], body: Expr) -> ast.Lambda:
        """A lambda."""
        given = [ast.arg(arg=self.name(p)) for p in params]
        arguments = ast.arguments(
            posonlyargs=[], args=given, kwonlyargs=[], kw_defaults=[], defaults=[]
        )
        return ast.Lambda(args=arguments, body=self.expr(body))

    def name(self, name: str) -> str:
        """A name as the syntax has it."""
        return name if self.shown is None else self.shown[name]

    def read(self, name: str) -> ast.expr:
        """A name that is read."""
        return ast.Name(id=name, ctx=ast.Load())

    def expr(self, node: Expr) -> ast.expr:
        """The syntax of an expression."""
        builder: Callable[[Any], ast.expr] = getattr(self, f"_{type(node).__name__}")
        return builder(node)

    def _Const(self, node: Const) -> ast.expr:  # noqa: N802
        return self._value(node.value)

    def _value(self, value: Any) -> ast.expr:
        """A constant: a list or dict is another one each time, as a display is."""
        match value:
            case dict():
                keys: list[ast.expr | None] = [self._value(k) for k in value]
                return ast.Dict(keys=keys, values=[self._value(value[k]) for k in value])
            case tuple():
                return ast.Tuple(elts=[self._value(v) for v in value], ctx=ast.Load())
            case list():
                return ast.List(elts=[self._value(v) for v in value], ctx=ast.Load())
            case _ if type(value) in _LITERALS:
                return ast.Constant(value=value)
        if self.shown is not None:
            return ast.parse(repr(value), mode="eval").body
        name = f" constant {len(self.constants)}"
        self.constants[name] = value
        return self.read(name)

    def _Param(self, node: Param) -> ast.expr:  # noqa: N802
        return self.read(self.name(node.name))

    def _Attribute(self, node: Attribute) -> ast.expr:  # noqa: N802
        return self._attribute(self.expr(node.base), node.name)

    def _attribute(self, base: ast.expr, name: str) -> ast.expr:
        if self.shown is not None:
            return ast.Attribute(value=base, attr=name, ctx=ast.Load())
        return _called(self.read(_ATTRIBUTE), base, ast.Constant(value=name))

    def _Index(self, node: Index) -> ast.expr:  # noqa: N802
        base, index = self.expr(node.base), self.expr(node.index)
        return ast.Subscript(value=base, slice=index, ctx=ast.Load())

    def _Slice(self, node: Slice) -> ast.expr:  # noqa: N802
        parts = [None if p is None else self.expr(p) for p in (node.low, node.high, node.step)]
        return ast.Subscript(value=self.expr(node.base), slice=ast.Slice(*parts), ctx=ast.Load())

    def _Unary(self, node: Unary) -> ast.expr:  # noqa: N802
        operator = (_UNARY.get(node.op) or _OPERATORS[node.op])()
        return ast.UnaryOp(op=operator, operand=self.expr(node.operand))

    def _Binary(self, node: Binary) -> ast.expr:  # noqa: N802
        left, right = self.expr(node.left), self.expr(node.right)
        return ast.BinOp(left=left, op=_OPERATORS[node.op](), right=right)

    def _Compare(self, node: Compare) -> ast.expr:  # noqa: N802
        ops = [_OPERATORS[op]() for op, _ in node.rest]
        others = [self.expr(right) for _, right in node.rest]
        return ast.Compare(left=self.expr(node.first), ops=ops, comparators=others)

    def _BoolOp(self, node: BoolOp) -> ast.expr:  # noqa: N802
        return ast.BoolOp(op=_OPERATORS[node.op](), values=list(map(self.expr, node.values)))

    def _IfElse(self, node: IfElse) -> ast.expr:  # noqa: N802
        test, then, otherwise = map(self.expr, (node.test, node.then, node.otherwise))
        return ast.IfExp(test=test, body=then, orelse=otherwise)

    def _Call(self, node: Call) -> ast.expr:  # noqa: N802
        called = _called(self._function(node.name), *map(self.expr, node.args))
        called.keywords = self._keywords(node)
        return called

    def _function(self, name: str) -> ast.expr:
        """What is called by its name: `math.sqrt`."""
        if self.shown is None:
            return self.read(f" {name}")
        first, *rest = name.strip("()").split(".")
        found = self.read(first)
        for part in rest:
            found = self._attribute(found, part)
        return found

    def _Method(self, node: Method) -> ast.expr:  # noqa: N802
        method = self._attribute(self.expr(node.base), node.name)
        called = _called(method, *map(self.expr, node.args))
        called.keywords = self._keywords(node)
        return called

    def _Opaque(self, node: Opaque) -> ast.expr:  # noqa: N802
        if self.shown is None:
            raise ValueError(f"{node.name} is known by its name only")
        return _called(self.read(node.name.strip("()")), *map(self.expr, node.args))

    def _keywords(self, node: Call | Method) -> list[ast.keyword]:
        return [ast.keyword(arg=name, value=self.expr(value)) for name, value in node.keywords]

    def _parts(self, parts: Sequence[Expr | Spread]) -> Iterator[ast.expr]:
        for part in parts:
            if isinstance(part, Spread):
                yield ast.Starred(value=self.expr(part.value), ctx=ast.Load())
            else:
                yield self.expr(part)

    def _MakeTuple(self, node: MakeTuple) -> ast.expr:  # noqa: N802
        return ast.Tuple(elts=list(self._parts(node.parts)), ctx=ast.Load())

    def _MakeList(self, node: MakeList) -> ast.expr:  # noqa: N802
        parts = list(self._parts(node.parts))
        if node.kind == "set":
            return ast.Set(elts=parts)
        return ast.List(elts=parts, ctx=ast.Load())

    def _MakeRow(self, node: MakeRow) -> ast.expr:  # noqa: N802
        keys: list[ast.expr | None] = []
        values: list[ast.expr] = []
        for part in node.parts:
            spread = isinstance(part, Spread)
            keys.append(None if isinstance(part, Spread) else ast.Constant(value=part[0]))
            values.append(self.expr(part.value if spread else part[1]))  # type: ignore[index,union-attr]
        return ast.Dict(keys=keys, values=values)

    def _Comprehension(self, node: Comprehension) -> ast.expr:  # noqa: N802
        names: list[ast.expr] = [ast.Name(id=self.name(n), ctx=ast.Store()) for n in node.targets]
        target = names[0] if len(names) == 1 else ast.Tuple(elts=names, ctx=ast.Store())
        loop = ast.comprehension(
            target=target,
            iter=self.expr(node.source),
            ifs=list(map(self.expr, node.conditions)),
            is_async=0,
        )
        made = {"list": ast.ListComp, "set": ast.SetComp, "generator": ast.GeneratorExp}
        found: ast.expr = made[node.kind](elt=self.expr(node.element), generators=[loop])
        return found

    def _FString(self, node: FString) -> ast.expr:  # noqa: N802
        values: list[ast.expr] = []
        for part in node.parts:
            if isinstance(part, str):
                values.append(ast.Constant(value=part))
                continue
            value, conversion, spec = part
            code = ord(conversion) if conversion else -1
            values.append(self._formatted(self.expr(value), code, spec))
        return ast.JoinedStr(values=values)

    def _formatted(self, value: ast.expr, conversion: int, spec: str) -> ast.expr:
        if self.shown is not None:
            form = ast.JoinedStr(values=[ast.Constant(value=spec)]) if spec else None
            return ast.FormattedValue(value=value, conversion=conversion, format_spec=form)
        given = (value, ast.Constant(value=conversion), ast.Constant(value=spec))
        text = _called(self.read(_FORMATTED), *given)
        return ast.FormattedValue(value=text, conversion=-1, format_spec=None)

    def _Inner(self, node: Inner) -> ast.expr:  # noqa: N802
        return self.function(node.params, node.body)

    def _Let(self, node: Let) -> ast.expr:  # noqa: N802
        return _called(self.function((node.name,), node.body), self.expr(node.value))


def _called(function: ast.expr, *arguments: ast.expr) -> ast.Call:
    return ast.Call(func=function, args=list(arguments), keywords=[])


def _unpacked(value: Any, count: int, star: int | None) -> tuple[Any, ...]:
    """`a, b, *c = value`, as a tuple of the targets."""
    parts = list(value)
    if star is None:
        if len(parts) != count:
            raise ValueError(f"{len(parts)} values to unpack, where {count} are expected")
        return tuple(parts)
    if len(parts) < count - 1:
        raise ValueError(f"{len(parts)} values to unpack, where at least {count - 1} are expected")
    end = len(parts) - (count - star - 1)
    return (*parts[:star], parts[star:end], *parts[end:])


def _flat(lists: Any) -> list[Any]:
    return [element for inner in lists for element in inner]


_SCOPE: dict[str, Any] = {
    **{f" {name}": entry.function for name, entry in FUNCTIONS.items()},
    f" {UNPACK}": _unpacked,
    f" {FLATTEN}": _flat,
    _ATTRIBUTE: attribute,
    _FORMATTED: formatted,
}
