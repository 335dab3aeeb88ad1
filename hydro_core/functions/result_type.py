"""Types of functions: what comes out, given what goes in, and every type on the way.

A function that names a column that is not there, or mixes types in a way that fails whatever the
values are, has a `TypeProblem` with its place. What cannot be known is `OPEN`, never a wrong type.
None is at home in every type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions import typing_parts as parts
from hydro_core.functions.failing_constants import check_constants, constant_value
from hydro_core.functions.fn import Fn
from hydro_core.functions.kinds import (
    ANY,
    FUNCTION,
    NULL,
    DictOf,
    ExprType,
    Mixed,
    SetOf,
    as_item,
    computed_of,
    elements,
    is_open,
    join,
    joined,
    known,
    of_constant,
    part,
)
from hydro_core.functions.library.entry import CallSite
from hydro_core.functions.library.operators import merged
from hydro_core.functions.scope import FORMAT, RAISE
from hydro_core.functions.tree import (
    Comprehension,
    Const,
    Expr,
    IfElse,
    Inner,
    Let,
    MakeList,
    MakeRow,
    MakeTuple,
    Op,
    Param,
    Part,
    Spread,
)
from hydro_core.functions.typing_calls import call, method
from hydro_core.types.item import (
    OPEN,
    STRING,
    Array,
    Field,
    ItemType,
    Row,
    Tuple,
    is_large,
)

_WIDENINGS = 64


def result_type(fn: Fn, inputs: tuple[ItemType, ...], spread: bool = True) -> ItemType:
    """The type of what a function gives for arguments of these types.

    With `spread`, the fields of the last argument stand for as many parameters as are left.

    >>> import ast
    >>> from hydro_core.functions.read import read_function
    >>> from hydro_core.types.ddl import parse_ddl
    >>> f = read_function(ast.parse("lambda k, v: (v, k / 2)", mode="eval").body, {})
    >>> str(result_type(f, (parse_ddl("(long, string)"),)))
    '(string, double)'
    """
    found = type_tree(fn, inputs, spread).result
    return fn.returns or found


@dataclass(frozen=True, slots=True)
class Typing:
    """The types of a function's expressions, each by its identity in `fn.tree`."""

    result: ItemType
    kinds: Mapping[int, ExprType]
    tree: Expr | None

    def of(self, expr: Expr) -> ItemType:
        """The type of an expression of the tree; OPEN where it is not known or no item.

        A difference of two times is `Scalar("timedelta")`, which is no type of any item.
        """
        kind = self.kinds.get(id(expr), ANY)
        return kind if isinstance(kind, ItemType) and kind != ANY else OPEN

    def kind(self, expr: Expr) -> ExprType:
        """The kind of an expression: also sets, dicts and what is not known."""
        return self.kinds.get(id(expr), ANY)


def type_tree(fn: Fn, inputs: tuple[ItemType, ...], spread: bool = True) -> Typing:
    """The type of every expression of the function."""
    return _typing(fn, tuple(map(known, inputs)), spread=spread)


def accumulator_type(fn: Fn, init: ItemType, item: ItemType, spread: bool = True) -> ItemType:
    """The type of a fold's accumulator: that of `init` and of every result, numbers widened.

    >>> import ast
    >>> from hydro_core.functions.read import read_function
    >>> from hydro_core.types.ddl import parse_ddl
    >>> f = read_function(ast.parse("lambda acc, x: acc + x", mode="eval").body, {})
    >>> str(accumulator_type(f, parse_ddl("long"), parse_ddl("double")))
    'double'
    """
    kind: ExprType = init
    for _ in range(_WIDENINGS):
        if fn.returns is not None:
            result: ExprType = fn.returns
        else:
            result = _typing(fn, (kind, known(item)), spread=spread).raw
        wider = join(kind, result)
        _check_accumulator(fn, wider)
        if wider == kind:
            return as_item(kind)
        if is_large(part(wider)):
            break
        kind = wider
    shown = str(kind) if len(str(kind)) < 60 else f"{str(kind)[:60]}…"
    raise TypeProblem(
        f"the accumulator has no type: it grows with every item, beyond {shown}",
        "give the start the type of the result, or declare `returns=`",
    )


def _check_accumulator(fn: Fn, after: ExprType) -> None:
    mixed = _mixed(after)
    if mixed is not None:
        place = fn.tree.place if fn.tree is not None else (0, 0)
        raise TypeProblem(
            f"the accumulator starts as {mixed.one} and becomes {mixed.other}",
            "give the start the type of the result",
            place=mixed.place if mixed.place[0] else place,
        )


def _mixed(kind: Any) -> Mixed | None:
    match kind:
        case Mixed():
            return kind
        case Tuple(fields):
            found = [_mixed(f) for f in fields]
        case Row(fields):
            found = [_mixed(f.type) for f in fields]
        case Array(element):
            found = [_mixed(element)]
        case _:
            return None
    return next((f for f in found if f is not None), None)


@dataclass(frozen=True, slots=True)
class _Typed(Typing):
    raw: ExprType


def _typing(fn: Fn, inputs: tuple[ExprType, ...], *, spread: bool) -> _Typed:
    arguments = _arguments(fn, inputs, spread=spread)
    if fn.tree is None:
        result = fn.returns or OPEN
        return _Typed(result, {}, None, fn.returns or ANY)
    typer = _Typer()
    raw = typer.kind(fn.tree, dict(zip(fn.params, arguments, strict=True)))
    check_constants(fn.tree)
    result = fn.returns or as_item(raw, fn.tree.place)
    return _Typed(result, typer.kinds, fn.tree, raw)


def _arguments(fn: Fn, inputs: tuple[ExprType, ...], *, spread: bool) -> tuple[ExprType, ...]:
    missing = len(fn.params) - len(inputs)
    if missing == 0:
        return inputs
    place = fn.tree.place if fn.tree is not None else (0, 0)
    what = f"the function has {len(fn.params)} parameters"
    if not inputs or not spread or missing < 0:
        raise TypeProblem(f"{what}, and is given {len(inputs)}", place=place)
    *first, last = inputs
    wanted = missing + 1
    match last:
        case Tuple(fields) if len(fields) == wanted:
            return (*first, *fields)
        case Row(fields) if len(fields) == wanted:
            return (*first, *(f.type for f in fields))
        case Tuple(fields) | Row(fields):
            message = f"{what}; {wanted} of them stand for the item's {len(fields)} fields"
            raise TypeProblem(message, f"the item is {last}", place=place)
        case _ if is_open(last):
            return (*first, *(computed_of(last),) * wanted)
        case _:
            raise TypeProblem(f"{what}, but the item has no fields: it is {last}", place=place)


NamedTypes = Mapping[str, ExprType]


@dataclass(slots=True)
class _Typer:
    """Types trees; remembers the kind of every node."""

    kinds: dict[int, ExprType] = field(default_factory=dict)

    def kind(self, expr: Expr, names: NamedTypes) -> ExprType:
        found: ExprType = getattr(self, f"_{type(expr).__name__.lower()}")(expr, names)
        self.kinds[id(expr)] = found
        return found

    def _const(self, expr: Const, _: NamedTypes) -> ExprType:
        return of_constant(expr.value)

    def _param(self, expr: Param, names: NamedTypes) -> ExprType:
        return names[expr.name]

    def _part(self, expr: Part, names: NamedTypes) -> ExprType:
        return parts.part_of(self.kind(expr.base, names), expr)

    def _op(self, expr: Op, names: NamedTypes) -> ExprType:
        match expr.family:
            case "unread":
                return self._unread(expr, names)
            case "method":
                return method(self.kind(expr.args[0], names), self._site(expr, names))
            case _:
                return call(self._site(expr, names))

    def _ifelse(self, expr: IfElse, names: NamedTypes) -> ExprType:
        self.kind(expr.test, names)
        then, otherwise = self.kind(expr.then, names), self.kind(expr.otherwise, names)
        return join(then, otherwise, expr.place)

    def _site(self, expr: Op, names: NamedTypes) -> CallSite:
        functions: dict[str | int, Inner] = {}
        is_operator = expr.family not in ("method", "call")
        is_method = expr.family == "method"
        given = expr.args[is_method:]
        args: list[ExprType] = []
        for i, arg in enumerate(given):
            value = is_operator or not self._is_function(arg, names)
            args.append(self.kind(arg, names) if value else FUNCTION)
            if isinstance(arg, Inner):
                functions[i] = arg
        keywords: dict[str, ExprType] = {}
        for k, arg in expr.keywords:
            keywords[k] = FUNCTION if self._is_function(arg, names) else self.kind(arg, names)
            if isinstance(arg, Inner):
                functions[k] = arg

        def apply(which: str | int, given: tuple[ExprType, ...]) -> ExprType:
            function = functions.get(which)
            if function is None or len(function.params) != len(given):
                return ANY
            return self.kind(
                function.body, {**names, **dict(zip(function.params, given, strict=True))}
            )

        return CallSite(
            *(expr.name[is_method:], tuple(args), given, keywords, apply, expr.place, self.kinds),
            value_of=constant_value,
        )

    def _is_function(self, expr: Expr, names: NamedTypes) -> bool:
        """Whether it stands for a function: of a method that is not called, too."""
        if isinstance(expr, Part) and expr.by_name:
            return parts.is_method(self.kind(expr.base, names), str(expr.step))
        return isinstance(expr, Inner)

    def _unread(self, expr: Op, names: NamedTypes) -> ExprType:
        for arg in expr.operands:
            # Nothing is known of what is called: it may take functions.
            if not isinstance(arg, Inner):
                self.kind(arg, names)
        if expr.name == FORMAT:
            return STRING
        return NULL if expr.name == RAISE else ANY

    def _inner(self, expr: Inner, _: NamedTypes) -> ExprType:
        raise parts.no_value(expr)

    def _maketuple(self, expr: MakeTuple, names: NamedTypes) -> ExprType:
        fields: list[ItemType] = []
        for item in expr.parts:
            if not isinstance(item, Spread):
                fields.append(part(self.kind(item, names)))
                continue
            spread = self.kind(item.value, names)
            if not isinstance(spread, Tuple):
                self._elements(spread, item.value)
                return computed_of(spread)
            fields.extend(spread.fields)
        return Tuple(tuple(fields))

    def _makerow(self, expr: MakeRow, names: NamedTypes) -> ExprType:
        rows: list[Row] = []
        for item in expr.parts:
            if not isinstance(item, Spread):
                rows.append(Row((Field(item[0], part(self.kind(item[1], names))),)))
                continue
            spread = self.kind(item.value, names)
            if spread == NULL:
                return NULL
            if isinstance(spread, Row):
                rows.append(spread)
            elif not is_open(spread) and not isinstance(spread, DictOf):
                place = item.value.place
                raise TypeProblem(f"`**` spreads a row, not {spread}", place=place)
        # Of a spread that is no row it is not known which columns it has.
        return merged(*rows) if len(rows) == len(expr.parts) else ANY

    def _makelist(self, expr: MakeList, names: NamedTypes) -> ExprType:
        kinds = [
            self._elements(self.kind(p.value, names), p.value)
            if isinstance(p, Spread)
            else self.kind(p, names)
            for p in expr.parts
        ]
        element = joined(kinds, expr.place)
        return SetOf(element) if expr.kind == "set" else Array(part(element))

    def _elements(self, kind: ExprType, expr: Expr) -> ExprType:
        found = elements(kind)
        if found is None:
            raise TypeProblem(f"there is nothing to go through in {kind}", place=expr.place)
        return found

    def _comprehension(self, expr: Comprehension, names: NamedTypes) -> ExprType:
        element = self._elements(self.kind(expr.source, names), expr.source)
        if len(expr.targets) == 1:
            targets: tuple[Any, ...] = (element,)
        else:
            unpacked = parts.unpack(element, len(expr.targets), None, expr.place, sure=True)
            targets = unpacked.fields if isinstance(unpacked, Tuple) else ()
        inner = {**names, **dict(zip(expr.targets, targets, strict=True))}
        for condition in expr.conditions:
            self.kind(condition, inner)
        found = self.kind(expr.element, inner)
        return SetOf(found) if expr.kind == "set" else Array(part(found))

    def _let(self, expr: Let, names: NamedTypes) -> ExprType:
        return self.kind(expr.body, {**names, expr.name: self.kind(expr.value, names)})
