"""Functions are bound: what each parameter stands for, and the type of every expression.

Whoever asks something of a function asks it of what it is applied to. A function that names a
column that is not there, or mixes types in a way that fails whatever the values are, has a
`TypeProblem` with its place. What cannot be known is `OPEN`, never a wrong type. None is at home in
every type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.failing_constants import check_constants, constant_value
from hydro_core.functions.fn import Fn
from hydro_core.functions.kinds import (
    ANY,
    FUNCTION,
    NULL,
    DictOf,
    ExprType,
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
from hydro_core.functions.library import typing_parts as parts
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
    Make,
    Op,
    Param,
    Part,
    SameTree,
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
)


@dataclass(frozen=True, slots=True)
class BoundParameter:
    """What a parameter stands for: an input, or a field of the last one."""

    input: int
    type: ExprType
    step: int | str | None = None
    """The place or name of the field; None: the whole input."""
    place: int | None = None
    """Which of the fields it is, if it is one."""


@dataclass(frozen=True, slots=True)
class BoundFunction:
    """A function over what it is applied to, with the types of its expressions."""

    tree: Expr | None
    arguments: tuple[BoundParameter, ...]
    """What its parameters stand for, in their order."""
    kinds: Mapping[int, ExprType]
    """By the identities of the expressions in `tree`."""
    raw: ExprType
    """The type of the result as it is computed."""
    result: ItemType
    """The type of the result, as it is declared, or else is known."""

    def of(self, expr: Expr) -> ItemType:
        """The type of an expression of the tree; OPEN where it is not known or no item.

        A difference of two times is `Scalar("timedelta")`, which is no type of any item.
        """
        kind = self.kind(expr)
        return kind if isinstance(kind, ItemType) and kind != ANY else OPEN

    def kind(self, expr: Expr) -> ExprType:
        """The kind of an expression: also sets, dicts and what is not known."""
        return self.kinds.get(id(expr), ANY)


def bind(fn: Fn, inputs: tuple[ItemType, ...], spread: bool = True) -> BoundFunction:
    """The function, applied to inputs of these types.

    With `spread`, the fields of the last input stand for as many parameters as are left.
    """
    return bound_to(fn, tuple(map(known, inputs)), spread=spread)


def bound_to(fn: Fn, inputs: tuple[ExprType, ...], *, spread: bool) -> BoundFunction:
    """The function, applied to what may be no items."""
    _check_count(fn, inputs, spread=spread)
    arguments = arguments_of(fn, inputs) or ()
    if fn.tree is None:
        return BoundFunction(None, arguments, {}, fn.returns or ANY, fn.returns or OPEN)
    kinds, raw = _typed(SameTree(fn.tree), fn.params, tuple(a.type for a in arguments))
    result = fn.returns or as_item(raw, fn.tree.place)
    return BoundFunction(fn.tree, arguments, kinds, raw, result)


@lru_cache(maxsize=4096)
def _typed(
    of: SameTree, params: tuple[str, ...], types: tuple[ExprType, ...]
) -> tuple[Mapping[int, ExprType], ExprType]:
    typer = _Typer()
    raw = typer.kind(of.tree, dict(zip(params, types, strict=True)))
    check_constants(of.tree)
    return typer.kinds, raw


def arguments_of(fn: Fn, inputs: Sequence[ExprType]) -> tuple[BoundParameter, ...] | None:
    """What the parameters of a function stand for; None where they are fewer than the inputs.

    Fields of an item that is not known, or has another number of them, are known by their places.
    """
    given = [BoundParameter(i, kind) for i, kind in enumerate(inputs)]
    missing = len(fn.params) - len(given)
    if missing > 0 and given:
        whole, count = given.pop(), missing + 1
        fields: Sequence[BoundParameter] = ()
        match whole.type:
            case Tuple(types) if len(types) == count:
                fields = [BoundParameter(whole.input, t, i, i) for i, t in enumerate(types)]
            case Row(columns) if len(columns) == count:
                fields = [
                    BoundParameter(whole.input, f.type, f.name, i) for i, f in enumerate(columns)
                ]
        unknown = computed_of(whole.type)
        given += fields or [BoundParameter(whole.input, unknown, place=i) for i in range(count)]
    return tuple(given) if len(given) == len(fn.params) else None


def _check_count(fn: Fn, inputs: tuple[ExprType, ...], *, spread: bool) -> None:
    """Refuses parameters that do not stand for the inputs."""
    missing = len(fn.params) - len(inputs)
    if missing == 0:
        return
    place = fn.tree.place if fn.tree is not None else (0, 0)
    what = f"the function has {len(fn.params)} parameters"
    if not inputs or not spread or missing < 0:
        raise TypeProblem(f"{what}, and is given {len(inputs)}", place=place)
    match inputs[-1]:
        case Tuple(fields) | Row(fields) as last if len(fields) != missing + 1:
            count = len(fields)
            message = f"{what}; {missing + 1} of them stand for the item's {count} fields"
            raise TypeProblem(message, f"the item is {last}", place=place)
        case Tuple() | Row():
            return
        case last if not is_open(last):
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

    def _make(self, expr: Make, names: NamedTypes) -> ExprType:
        match expr.kind:
            case "tuple":
                return self._tuple(expr, names)
            case "row":
                return self._row(expr, names)
            case _:
                return self._list(expr, names)

    def _tuple(self, expr: Make, names: NamedTypes) -> ExprType:
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

    def _row(self, expr: Make, names: NamedTypes) -> ExprType:
        rows: list[Row] = []
        for name, item in zip(expr.names, expr.parts, strict=True):
            if not isinstance(item, Spread):
                rows.append(Row((Field(str(name), part(self.kind(item, names))),)))
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

    def _list(self, expr: Make, names: NamedTypes) -> ExprType:
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
