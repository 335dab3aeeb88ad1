"""Python built from trees: syntax, its text, and callables that need no closure."""

from __future__ import annotations

import ast
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hydro_core.errors import Span
from hydro_core.functions.allowed import attribute
from hydro_core.functions.library import entry
from hydro_core.functions.library.operators import GROWING, SYNTAX, formatted
from hydro_core.functions.library.registry import OPERATIONS, operation
from hydro_core.functions.tree import (
    Algebra,
    Bind,
    Const,
    Expr,
    Fn,
    Fold,
    IfElse,
    Make,
    Op,
    Param,
    Part,
    Spread,
    children,
    nodes,
)
from hydro_core.types.item import ItemType

# The text of a syntax tree, which parses to an equal tree.
#
# Python's own `ast.unparse` gives other trees back for some f-strings, and none for others: an
# escaped brace in a format becomes code, and a literal that needs a backslash is impossible in an
# f-string. A changed text would be another function, so every text is parsed and compared before it
# is used.


def python_text(node: ast.AST) -> str:
    r"""A text that Python reads as `node`, or as an expression that has the same value.

    >>> print(python_text(ast.parse(r"lambda x: f'{x:\x7b0\x7d}'", mode="eval").body))
    lambda x: f'{x:\x7b0\x7d}'
    """
    text = _unparsed(node)
    if text is not None:
        return text
    # Outside of the f-string every literal can be written; braces of formats are escaped.
    moved = ast.fix_missing_locations(_ValueMover().visit(copied(node)))
    text = _unparsed(moved)
    # A tree that has no text even so is named by its dump, which is no function's text.
    return ast.dump(node) if text is None else text


def _unparsed(node: ast.AST) -> str | None:
    """The text of a tree if it parses to an equal tree, else None."""
    stand_ins = _stand_ins(node)
    try:
        text = ast.unparse(_BraceEscaper(stand_ins).visit(copied(node)) if stand_ins else node)
        for brace, private in stand_ins.items():
            for written in (f"\\u{ord(private):04x}", private):  # before Python 3.12, and since
                text = text.replace(written, f"\\x{ord(brace):02x}")
        (read,) = ast.parse(text).body
    except (ValueError, SyntaxError):
        return None
    found = read.value if isinstance(read, ast.Expr) else read
    same = ast.dump(found) == ast.dump(node) or _dumped(found) == _dumped(node)
    return text if same else None


def _dumped(node: ast.AST) -> str:
    """A dump that is equal for equal trees: Python 3.12 splits texts in f-strings at escapes by
    name.
    """
    return ast.dump(_TextJoiner().visit(copied(node)))


class _TextJoiner(ast.NodeTransformer):
    """Joins adjacent texts in an f-string."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        parts: list[ast.expr] = []
        for part in node.values:
            last = parts[-1] if parts else None
            if isinstance(part, ast.Constant) and isinstance(last, ast.Constant):
                parts[-1] = ast.Constant(str(last.value) + str(part.value))
            else:
                parts.append(part)
        return ast.JoinedStr(parts)


def _stand_ins(node: ast.AST) -> dict[str, str]:
    """Private characters that replace the braces of formats while the text is written; empty
    without braces.

    `ast.unparse` writes a brace of a format as the start of an expression.
    """
    texts = [p.value for p in ast.walk(node) if isinstance(p, ast.Constant)]
    used = {c for text in texts if isinstance(text, str) for c in text}
    free = (c for c in map(chr, range(0xE000, 0xF8FF)) if c not in used)
    return dict(zip("{}", free, strict=False)) if used & set("{}") else {}


def copied(node: Any) -> Any:
    """A copy of a syntax tree, which may be changed in place."""
    made: dict[str, Any] = {}
    for name, value in ast.iter_fields(node):
        parts = []
        for part in value if isinstance(value, list) else (value,):
            # One frame for each level, no comprehension: expressions are deeply nested.
            parts.append(copied(part) if isinstance(part, ast.AST) else part)  # noqa: PERF401
        made[name] = parts if isinstance(value, list) else parts[0]
    return ast.copy_location(type(node)(**made), node)


class _BraceEscaper(ast.NodeTransformer):
    """Replaces braces in formats by private characters."""

    def __init__(self, stand_ins: dict[str, str]) -> None:
        self.table = str.maketrans(stand_ins)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        """The value, with its format's own texts escaped."""
        self.generic_visit(node)
        if isinstance(node.format_spec, ast.JoinedStr):
            for value in node.format_spec.values:
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    value.value = value.value.translate(self.table)
        return node


class _ValueMover(ast.NodeTransformer):
    """The values of f-strings, moved out of them: `(lambda v1: f"{v1:>5}")(x)`."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """A call of the f-string as a function of its values."""
        values: list[ast.expr] = []
        self._take(node, values)
        names = [ast.arg(f"v{i + 1}") for i in range(len(values))]
        parameters = ast.arguments([], names, None, [], [], None, [])
        return ast.Call(ast.Lambda(parameters, node), values, []) if values else node

    def _take(self, node: ast.JoinedStr, values: list[ast.expr]) -> None:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                values.append(self.visit(part.value))
                part.value = ast.Name(f"v{len(values)}", ast.Load())
                if isinstance(part.format_spec, ast.JoinedStr):
                    self._take(part.format_spec, values)


# Functions that are built from trees: no text is parsed, and running them needs no closure.
#
# A function that a rule derives, or that a stored plan contains, is a tree. Its syntax is built
# node by node and compiled on the first call. The tree alone binds the names: a builtin has a name
# that no program can write, so no parameter can hide it.


MAX_DEPTH = 150
"""Largest depth that is built; Python's own compiler fails some way deeper."""
ATTRIBUTE = " attribute"
FORMATTED = " formatted"
"""Names that no program can write."""
_LITERALS = (bool, int, float, str, bytes, type(None))


def function_of(
    tree: Expr,
    params: tuple[str, ...],
    *,
    like: Fn | None = None,
    returns: ItemType | None = None,
    span: Span | None = None,
) -> Fn:
    """The function of a complete tree; `like` gives its location and declarations.

    >>> f = function_of(Op("+", (Param("x"), Const(1))), ("x",))
    >>> f.call(2), f.source
    (3, 'lambda x: x + 1')
    """
    source = text_of(tree, params)
    algebra, own = Algebra(), source
    if like is not None:
        algebra, returns, span = like.algebra, like.returns, like.span
    return Fn(own, source, params, TreeCall(tree, params), tree, algebra, returns, span, pure=True)


class LateCall(ABC):
    """A callable that is built on its first call; it is pickled as its parts."""

    __slots__ = ("_made",)
    _made: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        return self.made(*arguments)

    @property
    def made(self) -> Callable[..., Any]:
        try:
            return self._made
        except AttributeError:
            self._made = self._make()
            return self._made

    @abstractmethod
    def _make(self) -> Callable[..., Any]: ...


class TreeCall(LateCall):
    """A callable that compiles its tree."""

    __slots__ = ("params", "tree")

    def __init__(self, tree: Expr, params: tuple[str, ...]) -> None:
        self.tree, self.params = tree, params

    def _make(self) -> Callable[..., Any]:
        return compiled(self.tree, self.params)

    def __reduce__(self) -> tuple[type, tuple[Expr, tuple[str, ...]]]:
        return TreeCall, (self.tree, self.params)


def compiled(
    tree: Expr, params: Sequence[str], builder: Syntax | None = None
) -> Callable[..., Any]:
    """The Python function of a complete tree, as the builder writes it."""
    builder = builder or Syntax()
    function = builder.function(params, tree)
    made: Callable[..., Any] = evaluated(function, {**_SCOPE, **builder.constants})
    return made


def evaluated(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of a checked or built expression, with the given meaning of names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `x is 1` has Python's meaning: no warning is due.
        code = compile(ast.fix_missing_locations(ast.Expression(node)), "<program>", "eval")
    return eval(code, {"__builtins__": {}, **GUARDS, **names})  # noqa: S307 - see above


def text_of(tree: Expr, params: Sequence[str]) -> str:
    """The text of a function for people; it is never parsed.

    Functions with one text are equal up to the names of variables.
    """
    names = list(params)
    for node in nodes(tree):
        names += node.names if isinstance(node, Bind) else ()
        names += [node.name] if isinstance(node, Param) else []
    # Names that the reader invented contain a point.
    shown = {name: name for name in names if "." not in name}
    for name in names:
        plain = name.replace(".", "_")
        shown.setdefault(name, name if plain in shown.values() else plain)
    made = Syntax(shown).function(params, tree)
    return python_text(ast.fix_missing_locations(made))


def is_complete(tree: Expr | None) -> bool:
    """True if the function can be built from the tree alone."""
    if tree is None:
        return False
    todo: list[tuple[Expr, int]] = [(tree, 1)]
    while todo:
        node, depth = todo.pop()
        if depth > MAX_DEPTH or (isinstance(node, Op) and node.family == "unread"):
            return False
        if isinstance(node, Op) and node.family == "call":
            entry = operation(node.name)
            if entry is None or entry.function is None:
                return False
        todo += [(child, depth + 1) for child in children(node)]
    return True


class Syntax(Fold[None, ast.expr]):
    """Syntax of trees: as it runs, or as it is shown."""

    def __init__(self, shown: Mapping[str, str] | None = None) -> None:
        self.shown = shown
        self.constants: dict[str, Any] = {}

    def function(self, params: Sequence[str], body: Expr) -> ast.Lambda:
        given = [ast.arg(arg=self.name(p)) for p in params]
        return ast.Lambda(ast.arguments([], given, None, [], [], None, []), self.expr(body))

    def name(self, name: str) -> str:
        return name if self.shown is None else self.shown[name]

    def read(self, name: str) -> ast.expr:
        return ast.Name(id=name, ctx=ast.Load())

    def expr(self, node: Expr) -> ast.expr:
        return self.of(node, None)

    def _const(self, node: Const, around: None) -> ast.expr:
        return self._value(node.value)

    def _value(self, value: Any) -> ast.expr:
        """A constant; a list or dict is a new object each time, as a display is."""
        match value:
            case dict():
                keys: list[ast.expr | None] = [self._value(k) for k in value]
                return ast.Dict(keys=keys, values=[self._value(value[k]) for k in value])
            case tuple():
                return ast.Tuple(elts=[self._value(v) for v in value], ctx=ast.Load())
            case list():
                return ast.List(elts=[self._value(v) for v in value], ctx=ast.Load())
            case _ if self.shown is not None:
                return ast.parse(repr(value), mode="eval").body  # `-1` parses as an operation on 1.
            case _ if type(value) in _LITERALS:
                return ast.Constant(value=value)
            case _:
                return self.held(value)

    def held(self, value: Any) -> ast.expr:
        """A value that has no syntax."""
        name = f" constant {len(self.constants)}"
        self.constants[name] = value
        return self.read(name)

    def _param(self, node: Param, around: None) -> ast.expr:
        return self.read(self.name(node.name))

    def _part(self, node: Part, around: None) -> ast.expr:
        base = self.expr(node.base)
        if node.by_name:
            return self._attribute(base, str(node.step))
        return ast.Subscript(value=base, slice=ast.Constant(value=node.step), ctx=ast.Load())

    def _attribute(self, base: ast.expr, name: str) -> ast.expr:
        if self.shown is not None:
            return ast.Attribute(value=base, attr=name, ctx=ast.Load())
        return called(self.read(ATTRIBUTE), base, ast.Constant(value=name))

    def _op(self, node: Op, around: None) -> ast.expr:
        if node.family == "method":
            method = self._attribute(self.expr(node.args[0]), node.name[1:])
            return self._call(method, node, node.args[1:])
        if node.family == "call":
            return self._call(self._function(node.name), node, node.args)
        if node.family == "unread":
            if self.shown is None:
                raise ValueError(f"{node.name} is known by its name only")
            return called(self.read(node.name[1:].strip("()")), *map(self.expr, node.args))
        return self.operator(node, [self.expr(arg) for arg in node.args])

    def operator(self, node: Op, parts: list[ast.expr]) -> ast.expr:
        syntax: Any = SYNTAX[node.name]() if node.name in SYNTAX else None
        match node.family:
            case "unary":
                return ast.UnaryOp(op=syntax, operand=parts[0])
            case "binary":
                found = ast.BinOp(left=parts[0], op=syntax, right=parts[1])
                return bounded(found) if self.shown is None else found
            case "comparison":
                ops: list[Any] = [SYNTAX[op]() for op in node.name.split(",")]
                return ast.Compare(left=parts[0], ops=ops, comparators=parts[1:])
            case "and" | "or":
                return ast.BoolOp(op=syntax, values=parts)
            case "index":
                return ast.Subscript(value=parts[0], slice=parts[1], ctx=ast.Load())
            case "slice":
                cut = ast.Slice(*(None if b is None else self.expr(b) for b in node.bounds))
                return ast.Subscript(value=parts[0], slice=cut, ctx=ast.Load())
            case "text":
                return ast.JoinedStr(values=parts)
            case _:
                return self._formatted(*parts)

    def _formatted(self, value: ast.expr, conversion: ast.expr, spec: ast.expr) -> ast.expr:
        if self.shown is None:
            text = called(self.read(FORMATTED), value, conversion, spec)
            return ast.FormattedValue(value=text, conversion=-1, format_spec=None)
        shown, form = (part.value for part in (conversion, spec) if isinstance(part, ast.Constant))
        return ast.FormattedValue(
            value=value,
            conversion=ord(str(shown)) if shown else -1,
            format_spec=ast.JoinedStr(values=[spec]) if form else None,
        )

    def _if_else(self, node: IfElse, around: None) -> ast.expr:
        test, then, otherwise = map(self.expr, (node.test, node.then, node.otherwise))
        return ast.IfExp(test=test, body=then, orelse=otherwise)

    def _call(self, function: ast.expr, node: Op, args: Sequence[Expr]) -> ast.expr:
        found = called(function, *map(self.expr, args))
        found.keywords = [ast.keyword(arg=n, value=self.expr(value)) for n, value in node.keywords]
        return found

    def _function(self, name: str) -> ast.expr:
        """The function of a dotted name: `math.sqrt`."""
        if self.shown is None:
            return self.read(f" {name}")
        first, *rest = name.strip("()").split(".")
        found = self.read(first)
        for part in rest:
            found = self._attribute(found, part)
        return found

    def _parts(self, parts: Sequence[Expr | Spread]) -> Iterator[ast.expr]:
        for part in parts:
            if isinstance(part, Spread):
                yield ast.Starred(value=self.expr(part.value), ctx=ast.Load())
            else:
                yield self.expr(part)

    def _make(self, node: Make, around: None) -> ast.expr:
        match node.kind:
            case "tuple":
                return ast.Tuple(elts=list(self._parts(node.parts)), ctx=ast.Load())
            case "list":
                return ast.List(elts=list(self._parts(node.parts)), ctx=ast.Load())
            case "set":
                return ast.Set(elts=list(self._parts(node.parts)))
            case "row":
                keys = (None if name is None else ast.Constant(value=name) for name in node.names)
                return ast.Dict(keys=[*keys], values=[*map(self.expr, children(node))])

    def _bind(self, node: Bind, around: None) -> ast.expr:
        match node.kind:
            case "function":
                return self.function(node.names, node.body)
            case "let":
                return called(self.function(node.names, node.body), self.expr(node.value))
            case kind:
                return self.loop(node, kind)

    def loop(self, node: Bind, kind: str) -> ast.expr:
        names: list[ast.expr] = [ast.Name(id=self.name(n), ctx=ast.Store()) for n in node.names]
        target = names[0] if len(names) == 1 else ast.Tuple(elts=names, ctx=ast.Store())
        loop = ast.comprehension(
            target=target,
            iter=self.expr(node.value),
            ifs=list(map(self.expr, node.conditions)),
            is_async=0,
        )
        made = {"list": ast.ListComp, "set": ast.SetComp, "generator": ast.GeneratorExp}
        found: ast.expr = made[kind](elt=self.expr(node.body), generators=[loop])
        return found


def called(function: ast.expr, *arguments: ast.expr) -> ast.Call:
    return ast.Call(func=function, args=list(arguments), keywords=[])


_SCOPE = {f" {n}": entry.bounded(n, one.function, one.cost) for n, one in OPERATIONS.items()}
_GROWING = {SYNTAX[name]: f" bounded {name}" for name in GROWING}


def bounded(node: ast.BinOp) -> ast.expr:
    """An operation of two operands, as a call that bounds the size of its result."""
    name = _GROWING.get(type(node.op))
    return node if name is None else called(ast.Name(name, ast.Load()), node.left, node.right)


GUARDS: Mapping[str, Any] = {
    ATTRIBUTE: attribute,
    FORMATTED: formatted,
    **{f" bounded {name}": guard for name, guard in GROWING.items()},
}
"""Functions that read attributes, format values of f-strings, and bound large results."""
