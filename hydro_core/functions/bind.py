"""Binding of functions: the argument of each parameter, and a tree in which every node has a type.

Every question about a function depends on the types of its arguments. A function that names an
unknown column, or mixes types in a way that fails for all values, has a `TypeProblem` with its
location. An unknown type is `OPEN`, never a wrong type. Every type has None as a value.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from hydro_core.errors import TypeProblem
from hydro_core.functions.constant import check_constants, constant_value
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
from hydro_core.functions.library.entry import CallSite
from hydro_core.functions.library.operators import merged, unpack
from hydro_core.functions.library.registry import (
    is_method,
    members_of,
    no_value,
    operation,
    part_of,
)
from hydro_core.functions.totality import certainty
from hydro_core.functions.tree import (
    FORMAT,
    RAISE,
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
    SameTree,
    Spread,
    is_function,
)
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
    """The argument of a parameter: a whole input, or a field of the last input."""

    input: int
    type: ExprType
    step: int | str | None = None
    """The position or name of the field; None: the whole input."""
    place: int | None = None
    """The position of the field among the fields, if the parameter is one."""


@dataclass(frozen=True, slots=True)
class BoundFunction:
    """A function with the types of its arguments."""

    params: tuple[str, ...]
    tree: Expr | None
    """The tree with the types of all expressions."""
    raw: ExprType
    """The type of the result before its conversion to a declared type."""
    result: ItemType
    """The declared type of the result, or else the inferred one."""

    def may_fail(self, *, there: bool = False) -> bool:
        """True if the function may fail; with `there`, only for arguments that are not null."""
        known = tuple(map(Param, self.params)) if there else ()
        return self.tree is None or not certainty(SameTree(self.tree), known).has_value


def bind(fn: Fn, inputs: tuple[ItemType, ...], spread: bool = True) -> BoundFunction:
    """The function, applied to inputs of these types.

    With `spread`, the fields of the last input are the arguments of all parameters that are left.
    """
    return bound_to(fn, tuple(map(known, inputs)), spread=spread)


def bound_to(fn: Fn, inputs: tuple[ExprType, ...], *, spread: bool) -> BoundFunction:
    """The function with arguments of any types, which need not be item types."""
    _check_count(fn, inputs, spread=spread)
    if fn.tree is None:
        return BoundFunction(fn.params, None, fn.returns or ANY, fn.returns or OPEN)
    types = tuple(argument.type for argument in arguments_of(fn, inputs) or ())
    tree = typed_tree(SameTree(fn.tree), fn.params, types)
    result = fn.returns or as_item(tree.type, fn.tree.place)
    return BoundFunction(fn.params, tree, tree.type, result)


@lru_cache(maxsize=4096)
def typed_tree(of: SameTree, params: tuple[str, ...], types: tuple[ExprType, ...]) -> Expr:
    tree = _TYPER.of(of.tree, dict(zip(params, types, strict=True)))
    check_constants(of.tree)
    return tree


def arguments_of(fn: Fn, inputs: Sequence[ExprType]) -> tuple[BoundParameter, ...] | None:
    """The arguments of the parameters of a function; None if it has fewer parameters than inputs.

    Fields of an item of unknown type, or with another number of fields, are identified by their
    index.
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


class _Typer(Fold[NamedTypes, Expr]):
    """The node with its type, and with those of its parts."""

    def _const(self, node: Const, around: NamedTypes) -> Expr:
        return replace(node, type=of_constant(node.value))

    def _param(self, node: Param, around: NamedTypes) -> Expr:
        return replace(node, type=around[node.name])

    def _part(self, node: Part, around: NamedTypes) -> Expr:
        base = self.of(node.base, around)
        return replace(node, base=base, type=part_of(base.type, node))

    def _op(self, node: Op, around: NamedTypes) -> Expr:
        call = _Call(self, node, around)
        found: ExprType
        match node.family:
            case "unread":
                found = STRING if node.name == FORMAT else NULL if node.name == RAISE else ANY
            case "method":
                found = _method_type(call.args[0].type, call.site())
            case _:
                site, entry, found = call.site(), operation(node.name), ANY
                if entry is not None:
                    _refuse_functions(site, entry.functions)
                    found = entry.result(site)
        return replace(node, args=call.args, keywords=call.keywords, type=found)

    def _if_else(self, node: IfElse, around: NamedTypes) -> Expr:
        test, then, otherwise = (
            self.of(part, around) for part in (node.test, node.then, node.otherwise)
        )
        found = join(then.type, otherwise.type, node.place)
        return replace(node, test=test, then=then, otherwise=otherwise, type=found)

    def _make(self, node: Make, around: NamedTypes) -> Expr:
        made = tuple(
            Spread(self.of(p.value, around)) if isinstance(p, Spread) else self.of(p, around)
            for p in node.parts
        )
        node = replace(node, parts=made)
        match node.kind:
            case "tuple":
                return replace(node, type=_tuple_of(made))
            case "row":
                return replace(node, type=_row_of(node))
            case "list" | "set":
                kinds = [_elements(p.value) if isinstance(p, Spread) else p.type for p in made]
                element = joined(kinds, node.place)
                found = SetOf(element) if node.kind == "set" else Array(part(element))
                return replace(node, type=found)

    def _bind(self, node: Bind, around: NamedTypes) -> Expr:
        if node.kind == "function":
            raise no_value(node)
        value = self.of(node.value, around)
        inner = {**around, **dict(zip(node.names, _variables(node, value), strict=True))}
        conditions = tuple(self.of(condition, inner) for condition in node.conditions)
        body = self.of(node.body, inner)
        found: ExprType = body.type
        if node.is_loop:
            found = SetOf(found) if node.kind == "set" else Array(part(found))
        return replace(node, value=value, conditions=conditions, body=body, type=found)


_TYPER = _Typer()


class _Call:
    """The typed operands of an operation; functions among them are typed for their arguments."""

    def __init__(self, typer: _Typer, node: Op, around: NamedTypes) -> None:
        self._typer, self._node, self._around = typer, node, around
        self._first = int(node.family == "method")
        self.args = tuple(self._operand(i, arg) for i, arg in enumerate(node.args))
        self.keywords = tuple((k, self._operand(None, arg)) for k, arg in node.keywords)

    def _operand(self, number: int | None, arg: Expr) -> Expr:
        """An operand; where a function may be given, a name that is a function, also a method
        without call.
        """
        family = self._node.family
        if is_function(arg) and family in ("method", "call", "unread"):
            return replace(arg, type=FUNCTION)
        if family in ("method", "call") and isinstance(arg, Part) and arg.by_name:
            base = self._typer.of(arg.base, self._around)
            if (number is None or number >= self._first) and is_method(base.type, str(arg.step)):
                return replace(arg, base=base, type=FUNCTION)
            return replace(arg, base=base, type=part_of(base.type, arg))
        return self._typer.of(arg, self._around)

    def site(self) -> CallSite:
        """The call as an entry sees it."""
        given = self.args[self._first :]
        return CallSite(
            *(self._node.name[self._first :], tuple(a.type for a in given), given),
            *({k: a.type for k, a in self.keywords}, self._apply, self._node.place),
            value_of=constant_value,
            base=self.args[0].type if self._first else ANY,
        )

    def _apply(self, which: str | int, given: tuple[ExprType, ...]) -> ExprType:
        """The type of the result of a function argument for values of the given types."""
        given_by: dict[str | int, Expr] = dict(self.keywords)
        given_by.update(enumerate(self.args[self._first :]))
        function = given_by.get(which)
        if not is_function(function) or len(function.names) != len(given):
            return ANY
        inner = {**self._around, **dict(zip(function.names, given, strict=True))}
        body = self._typer.of(function.body, inner)
        applied = replace(function, body=body)
        self.args = tuple(applied if a is function else a for a in self.args)
        self.keywords = tuple((k, applied if a is function else a) for k, a in self.keywords)
        return body.type


def _method_type(base: ExprType, site: CallSite) -> ExprType:
    if is_open(base):
        return computed_of(base)
    if isinstance(base, Row) and base.column(site.name) is not None:
        raise site.problem(
            f"the column `{site.name}` is not a method", "read it without parentheses"
        )
    known = {name: entry for name, entry in members_of(base).items() if entry.takes is not None}
    if site.name in known:
        _refuse_functions(site)
        return known[site.name].result(site)
    near = difflib.get_close_matches(site.name, known, 1)
    raise site.problem(
        f"{base} has no method `{site.name}`", f"did you mean `.{near[0]}`?" if near else None
    )


def _refuse_functions(site: CallSite, but: Collection[str | int] = ()) -> None:
    for which, kind in (*enumerate(site.args), *site.keywords.items()):
        if kind == FUNCTION and which not in but:
            shown = f"argument {which + 1}" if isinstance(which, int) else f"`{which}`"
            cure = "call it: `f(…)` is a value, `f` a function"
            raise site.problem(f"{shown} of `{site.name}` is a function, not a value", cure)


def _variables(node: Bind, value: Expr) -> tuple[ExprType, ...]:
    if not node.is_loop:
        return (value.type,)
    item = _elements(value)
    if len(node.names) == 1:
        return (item,)
    unpacked = unpack(item, len(node.names), None, node.place, sure=True)
    return unpacked.fields if isinstance(unpacked, Tuple) else ()


def _tuple_of(made: tuple[Expr | Spread, ...]) -> ExprType:
    fields: list[ItemType] = []
    for item in made:
        if not isinstance(item, Spread):
            fields.append(part(item.type))
            continue
        spread = item.value.type
        if not isinstance(spread, Tuple):
            _elements(item.value)
            return computed_of(spread)
        fields.extend(spread.fields)
    return Tuple(tuple(fields))


def _row_of(node: Make) -> ExprType:
    rows: list[Row] = []
    for name, item in zip(node.names, node.parts, strict=True):
        if not isinstance(item, Spread):
            rows.append(Row((Field(str(name), part(item.type)),)))
            continue
        spread, place = item.value.type, item.value.place
        if spread == NULL:
            return NULL
        if isinstance(spread, Row):
            rows.append(spread)
        elif not is_open(spread) and not isinstance(spread, DictOf):
            raise TypeProblem(f"`**` spreads a row, not {spread}", place=place)
    # A spread of an open type has unknown columns.
    return merged(*rows) if len(rows) == len(node.parts) else ANY


def _elements(expr: Expr) -> ExprType:
    found = elements(expr.type)
    if found is None:
        raise TypeProblem(f"there is nothing to go through in {expr.type}", place=expr.place)
    return found
