"""Arguments of a text program: Python expressions, parsed as Python; none of them is executed."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

from hydro_core.catalog.aggregates import AGGREGATES, NAMES
from hydro_core.catalog.over_functions import FUNCTIONS, OverFunctionSpec
from hydro_core.catalog.registry import TYPED
from hydro_core.catalog.spec import Aggregate, Arg, Args, OpSpec, OverFunction, TypeProblem
from hydro_core.errors import Diagnostic, ProgramError, Span
from hydro_core.functions.allowed import BUILTINS
from hydro_core.functions.read import constant, read_function
from hydro_core.functions.tree import Fn
from hydro_core.lang.parser import ArgumentText, Element
from hydro_core.lang.signature import (
    ArgumentProblem,
    ArgumentReader,
    as_written,
    bind,
    constant_argument,
    missing_argument,
    neither,
    no_argument,
    read_schema,
)
from hydro_core.lang.source import Source, did_you_mean
from hydro_core.types.item import ItemType
from hydro_core.types.values import ValueProblem

_BEFORE = "_("
_FUNCTION = "a function is one expression of its parameters, the pure builtins and what is bound"


@dataclass(frozen=True, slots=True)
class StreamArgument:
    """A stream as an argument, with an output port if it has several."""

    position: int | None
    name: str
    label: str | None
    span: Span


def read_arguments(
    source: Source, element: Element, op: OpSpec, bindings: Mapping[str, Any]
) -> tuple[Args, tuple[StreamArgument, ...]]:
    """The arguments of an operator call, and the streams that are named among them.

    Raises:
        ProgramError: they are wrong.
    """
    text = element.arguments
    assert text is not None
    reader = TextReader(source, text, bindings)
    try:
        call = _parse(source, text)
        positional, keywords = _split(call)
        args, named = bind(op, positional, keywords, reader)
        streams = tuple(_stream(reader, position, tree) for position, tree in named)
    except ArgumentProblem as wrong:
        at = wrong.written
        span = reader.span(at) if isinstance(at, ast.AST) else element.span
        cure = wrong.help or as_written(op)
        raise ProgramError.of(wrong.code, wrong.message, span, op.name, help=cure) from None
    except TypeProblem as wrong:
        span = element.span if wrong.place == (0, 0) else element.span.at(*wrong.place)
        cure = wrong.help or _FUNCTION
        raise ProgramError.of(wrong.code, wrong.message, span, op.name, help=cure) from None
    except SyntaxError as wrong:
        raise ProgramError(_of_syntax(source, text, op, wrong)) from None
    except (RecursionError, MemoryError):
        message = f"the arguments of `{op.name}` are nested too deeply"
        raise ProgramError.of(
            "syntax", message, element.span, op.name, help="split the expression up"
        ) from None
    return args, streams


def _parse(source: Source, text: ArgumentText) -> ast.Call:
    """The arguments as a call. Positions in it are those of the text after `_(`."""
    try:
        tree = ast.parse(f"{_BEFORE}{text.text}\n)", mode="eval").body
    except ValueError as wrong:
        raise SyntaxError(str(wrong)) from None
    match tree:
        case ast.Call(func=ast.Name()):
            return tree
        case _:
            raise SyntaxError("these are no arguments")


def _split(call: ast.Call) -> tuple[list[ast.expr], list[tuple[str, ast.expr]]]:
    for part in call.args:
        if isinstance(part, ast.Starred):
            raise ArgumentProblem(
                "syntax", "`*` cannot be used here", "write the arguments out", part
            )
    keywords: list[tuple[str, ast.expr]] = []
    for keyword in call.keywords:
        if keyword.arg is None:
            help_ = "write the arguments out"
            raise ArgumentProblem("syntax", "`**` cannot be used here", help_, keyword.value)
        keywords.append((keyword.arg, keyword.value))
    return call.args, keywords


def _stream(reader: TextReader, position: int | None, tree: ast.expr) -> StreamArgument:
    match tree:
        case ast.Name(id=name):
            return StreamArgument(position, name, None, reader.span(tree))
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id=label)):
            return StreamArgument(position, name, label, reader.span(tree))
        case ast.Subscript(
            value=ast.Name(id=name), slice=ast.Constant(value=str() | int() as label)
        ):
            return StreamArgument(position, name, str(label), reader.span(tree))
    raise ArgumentProblem(
        "syntax",
        "a stream must be named here",
        "give the pipeline a name in a statement of its own, and write the name here",
        tree,
    )


def _of_syntax(source: Source, text: ArgumentText, op: OpSpec, wrong: SyntaxError) -> Diagnostic:
    """Python's own error, at its location in the program."""
    line, column = wrong.lineno or 1, max(0, (wrong.offset or 1) - 1)
    before = sum(len(part) + 1 for part in text.text.split("\n")[: line - 1])
    inside = max(0, before + column - (len(_BEFORE) if line == 1 else 0))
    at = text.start + min(inside, len(text.text))
    message = f"the arguments of `{op.name}` are not Python: {wrong.msg}"
    cure = "arguments are Python expressions: `map(lambda x: x + 1)`"
    if text.text.lstrip().startswith("|"):
        cure = "a function is written `lambda x: …`"
    elif "->" in text.text:
        cure = "an argument names a stream: give the pipeline a name in a statement of its own"
    return Diagnostic("syntax", message, source.span(at, at + 1), op.name, help=cure)


@dataclass(frozen=True)
class TextReader:
    """Reads trees; locations are those of the program's file."""

    source: Source
    text: ArgumentText
    bindings: Mapping[str, Any]
    _lines: list[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lines", f"{_BEFORE}{self.text.text}".split("\n"))

    def constant(self, tree: ast.expr) -> Any:
        """The value; a function without parameters is called."""
        match tree:
            case ast.Lambda(args=ast.arguments(args=[], posonlyargs=[], kwonlyargs=[]), body=body):
                return constant(body, self.bindings, locate=self.locate)
            case ast.Name(id=name) if name in self.bindings:
                value = self.bindings[name]
                return value() if callable(value) else value
            case ast.Name(id=name) if name in BUILTINS:
                tree = ast.copy_location(ast.Call(tree, [], []), tree)
            case ast.Lambda():
                cure = 'name columns, as in `by="k"`; `with_columns(k=lambda r: …)` makes new ones'
                raise ArgumentProblem("type", "a function of items cannot stand here", cure, tree)
        try:
            return constant(tree, self.bindings, locate=self.locate)
        except ValueProblem as problem:
            raise ArgumentProblem("type", str(problem), None, tree) from None

    def is_function(self, tree: ast.expr) -> bool:
        """True for a lambda, or the name of a callable."""
        if isinstance(tree, ast.Name):
            bound = self.bindings.get(tree.id, BUILTINS.get(tree.id))
            return (bound is None and tree.id not in self.bindings) or callable(bound)
        return isinstance(tree, ast.Lambda) or _is_typed(tree)

    def function(self, tree: ast.expr, returns: ItemType | None) -> Fn:
        """The function, perhaps in `typed(…)`; a name must be bound by the caller."""
        if _is_typed(tree):
            said, inner = self._typed(tree)
            return with_returns(self.function(inner, said), returns, tree)
        fn = read_function(tree, self.bindings, locate=self.locate)
        return replace(fn, span=self.span(tree), returns=returns or fn.returns)

    def _typed(self, tree: ast.Call) -> tuple[ItemType, ast.expr]:
        """The type in `typed("long", lambda …)`, and the function."""
        if len(tree.args) != 2 or tree.keywords or not self.is_function(tree.args[1]):
            help_ = 'it is written `typed("long", lambda r: …)`'
            message = "`typed` takes the type of a function's result, and the function"
            raise ArgumentProblem("arity", message, help_, tree)
        return read_schema("typed", self.constant(tree.args[0]), tree.args[0]), tree.args[1]

    def aggregate(self, tree: ast.expr) -> Aggregate:
        """An aggregate with its columns and functions of the row."""
        match tree:
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                pass
            case _:
                help_ = 'one of them is written `count()`, `sum("v")` or `sum(lambda r: r.v * 2)`'
                raise ArgumentProblem("type", "an aggregate must stand here", help_, tree)
        if name not in NAMES:
            help_ = (
                did_you_mean(name, NAMES)
                or f"the aggregates are {', '.join(dict.fromkeys(NAMES.values()))}"
            )
            raise ArgumentProblem("type", f"there is no aggregate `{name}`", help_, tree)
        return check_count(Aggregate(NAMES[name], tuple(map(self.column_or_function, args))), tree)

    def over_function(self, tree: ast.expr) -> OverFunction:
        """A function of `over` with its arguments."""
        match tree:
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                given = {k.arg: k.value for k in keywords if k.arg is not None}
                if len(given) == len(keywords):
                    return bound_function(name, args, given, self, tree)
        raise no_function(tree.id if isinstance(tree, ast.Name) else None, tree)

    def column_or_function(self, tree: ast.expr) -> str | Fn:
        """A column, or a function of the row."""
        if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
            return tree.value
        if self.is_function(tree):
            return self.function(tree, None)
        help_ = (
            'name a column, as in `sum("v")`, or give a function, as in `sum(lambda r: r.v * 2)`'
        )
        raise neither(help_, tree)

    def locate(self, tree: ast.AST) -> tuple[int, int]:
        """Line and column of a part of the arguments, in the program's file."""
        line, column = getattr(tree, "lineno", 1), getattr(tree, "col_offset", len(_BEFORE))
        return self.source.position(self._offset(line, column))

    def span(self, tree: ast.AST) -> Span:
        """The location of a part of the arguments."""
        start = self._offset(getattr(tree, "lineno", 1), getattr(tree, "col_offset", 0))
        end = self._offset(getattr(tree, "end_lineno", 1), getattr(tree, "end_col_offset", 0))
        return self.source.span(start, end)

    def _offset(self, line: int, column: int) -> int:
        return self.source.offset_within(self.text.start, self._lines, line, column)


def _is_typed(tree: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == TYPED


def with_returns(fn: Fn, returns: ItemType | None, written: object) -> Fn:
    """The function with the result type that is declared for it."""
    if returns is not None and fn.returns not in (None, returns):
        message = f"the function's result is declared twice: as {fn.returns} and as {returns}"
        raise ArgumentProblem("type", message, "declare it once", written)
    return replace(fn, returns=returns or fn.returns)


def check_count(aggregate: Aggregate, written: object) -> Aggregate:
    """The aggregate, if it has as many arguments as it needs."""
    spec = AGGREGATES[aggregate.function]
    count = len(aggregate.arguments)
    if spec.takes(count):
        return aggregate
    wanted = str(spec.least) if spec.most == spec.least else f"{spec.least} or more"
    if spec.most is not None and spec.most > spec.least:
        wanted = f"{spec.least} to {spec.most}"
    arguments = "argument" if wanted == "1" else "arguments"
    message = f"`{spec.name}` takes {wanted} {arguments}, not {count}"
    raise ArgumentProblem("arity", message, f"`{spec.name}` is {spec.summary}", written)


# The functions of `over` as programs write them: `lag("price", 1)`, `running(sum("v"))`.
#
# Text and Python share this part; a reader interprets a written argument.


def no_function(name: str | None, written: object) -> ArgumentProblem:
    """The problem of an argument that is no function of `over`."""
    if name in NAMES:
        return ArgumentProblem(
            "arity",
            f"the aggregate `{name}` cannot stand here by itself: of which rows is it?",
            f"all of the key's are `whole({name}(…))`, those up to this one `running({name}(…))`,"
            f" the last n `rolling({name}(…), rows=n)`",
            written,
        )
    known = f"the functions are {', '.join(FUNCTIONS)}"
    if name is None:
        return ArgumentProblem("type", "a function of `over` must stand here", known, written)
    help_ = did_you_mean(name, FUNCTIONS) or known
    return ArgumentProblem("arity", f"there is no function `{name}` of `over`", help_, written)


def bound_function(
    name: str,
    positional: Sequence[Any],
    keywords: Mapping[str, Any],
    reader: ArgumentReader[Any],
    written: object,
) -> OverFunction:
    """The function with all its arguments; raises an `ArgumentProblem` for the first wrong one."""
    if name not in FUNCTIONS:
        raise no_function(name, written)
    spec = FUNCTIONS[name]
    given = _by_name(spec, positional, keywords, written)
    read = tuple(
        _read(spec, p, given[p.name], reader) if p.name in given else p.default
        for p in spec.parameters
    )
    for parameter, value in zip(spec.parameters, read, strict=True):
        if parameter.required and value is None:
            raise missing_argument(name, parameter.name, _written(spec), written)
    _check_frame(spec, read, written)
    return OverFunction(name, read)


def _written(spec: OverFunctionSpec) -> str:
    return f"it is written `{spec.usage}`"


def _by_name(
    spec: OverFunctionSpec, positional: Sequence[Any], keywords: Mapping[str, Any], written: object
) -> Mapping[str, Any]:
    places = [p.name for p in spec.parameters if p.positional]
    if len(positional) > len(places):
        count = f"at most {len(places)}" if places else "no"
        message = f"`{spec.name}` takes {count} arguments by place, not {len(positional)}"
        raise ArgumentProblem("arity", message, _written(spec), written)
    given = dict(zip(places, positional, strict=False))
    known = {p.name for p in spec.parameters}
    for name, value in keywords.items():
        if name not in known:
            raise no_argument(spec.name, name, _written(spec), value)
        if name in given:
            message = f"`{name}` of `{spec.name}` is given twice"
            raise ArgumentProblem("arity", message, "give it once", value)
        given[name] = value
    return given


def _read(spec: OverFunctionSpec, arg: Arg, written: Any, reader: ArgumentReader[Any]) -> Any:
    match arg.kind:
        case "aggregate":
            return reader.aggregate(written)
        case "operand":
            return reader.column_or_function(written)
    value = reader.constant(written)
    try:
        return constant_argument(replace(arg, name=f"{arg.name}` of `{spec.name}"), value, written)
    except ArgumentProblem as problem:
        problem.help = _written(spec)
        raise


def _check_frame(spec: OverFunctionSpec, read: Sequence[Any], written: object) -> None:
    """Checks that one of the arguments for the extent of a function is given, where it has
    several.
    """
    frames = [
        value
        for arg, value in zip(spec.parameters, read, strict=True)
        if arg.name in ("rows", "within")
    ]
    if frames and frames.count(None) != 1:
        how = "neither" if None in frames else "both"
        message = f"`{spec.name}` takes `rows` or `within`, and {how} is given"
        help_ = '`rolling(sum("v"), rows=7)`, or `rolling(sum("v"), within=timedelta(days=7))`'
        raise ArgumentProblem("arity", message, help_, written)
