"""The compiler: one case for each kind of tree.

A sub-expression becomes a `ColumnValue` (see `value`). An expression that Python evaluates only
sometimes becomes a branch of a CASE, which Spark evaluates as lazily; only expressions that
certainly cannot fail are joined by a plain AND and OR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column

from hydro_core.errors import TypeProblem
from hydro_core.functions.bind import bind
from hydro_core.functions.kinds import TIMEDELTA
from hydro_core.functions.tree import (
    Bind,
    Const,
    Expr,
    Fn,
    Fold,
    IfElse,
    Make,
    Op,
    OpFamily,
    Param,
    Part,
    children,
)
from hydro_core.spark.functions.columns import (
    arrays,
    calls,
    choices,
    compare,
    lookup,
    moments,
    numbers,
    strings,
    structs,
)
from hydro_core.spark.functions.columns import calls as library
from hydro_core.spark.functions.columns.structs import constant
from hydro_core.spark.functions.columns.value import (
    ColumnScope,
    ColumnValue,
    FunctionSite,
    NotCompilable,
)
from hydro_core.spark.functions.guards import runs_in_python
from hydro_core.types.item import STRING, Array, ItemType, Row, Tuple

TypedColumn = tuple[Column, ItemType]


def to_column(fn: Fn, args: Sequence[TypedColumn], *, result: ItemType) -> Column:
    """The result of `fn` for these arguments, as a column of items of type `result`.

    One argument is an item, whose fields are spread over several parameters; of two, the first is
    the accumulator.
    """
    scope, tree = _root(fn, args)
    value = scope.compile(tree)
    return scope.behind(structs.cast(scope, value, result, final=True))


def predicate_column(fn: Fn, args: Sequence[TypedColumn]) -> Column:
    """True where the result of `fn` for these arguments is truthy in Python: never null."""
    scope, tree = _root(fn, args)
    return scope.behind(choices.test(scope, tree).column)


def compile_expression(node: Expr, scope: ColumnScope) -> ColumnValue:
    """The value of an expression; where it cannot be exact, the reason names the smallest part."""
    try:
        return _COLUMNS.of(node, scope)
    except NotCompilable as problem:
        if problem.place == (0, 0):
            problem.place = node.place
        raise


def _root(fn: Fn, args: Sequence[TypedColumn]) -> tuple[ColumnScope, Expr]:
    try:
        tree = bind(fn, tuple(item for _, item in args)).tree
    except TypeProblem as problem:
        raise NotCompilable(problem.message, problem.place) from None
    if tree is None:
        raise NotCompilable("its source cannot be read")
    if runs_in_python(fn):
        raise NotCompilable("its guard has failed")
    scope = ColumnScope(FunctionSite(fn, compile_expression, _result_nodes(tree)), {})
    *leading, last = (ColumnValue(column, item) for column, item in args)
    values = [*leading, *_spread(scope, last, len(fn.params) - len(leading))]
    scope.names = {
        name: value.with_(path=(name,)) for name, value in zip(fn.params, values, strict=True)
    }
    return scope, tree


def _result_nodes(tree: Expr) -> frozenset[int]:
    """The ids of the nodes whose values are results, or parts of them, and nothing else."""
    results, others = set[int](), set[int]()
    todo = [(tree, True)]
    while todo:
        node, is_result = todo.pop()
        (results if is_result else others).add(id(node))
        passed_on = frozenset(map(id, _passed_on(node) if is_result else ()))
        todo += [(child, id(child) in passed_on) for child in children(node)]
    return frozenset(results - others)


def _passed_on(node: Expr) -> tuple[Expr, ...]:
    """The direct parts whose values are the value of the node, or parts of it."""
    match node:
        case IfElse(_, then, otherwise):
            return (then, otherwise)
        case Make():
            return tuple(children(node))
        case Bind(body=body):
            return (body,)
        case Op("(flatten)", args):
            return args
        case _:
            return ()


def _spread(scope: ColumnScope, item: ColumnValue, parameters: int) -> list[ColumnValue]:
    if parameters == 1:
        return [item]
    if not isinstance(item.type, Tuple | Row) or structs.arity(item) != parameters:
        raise NotCompilable("the item has not as many fields as the function has parameters")
    scope.guard("(item)", item.column.isNull())
    return structs.fields_of(scope, item)


class _Columns(Fold[ColumnScope, ColumnValue]):
    def _const(self, node: Const, around: ColumnScope) -> ColumnValue:
        if isinstance(node.value, list):
            return arrays.make(around, [constant(v) for v in node.value])
        return constant(node.value)

    def _param(self, node: Param, around: ColumnScope) -> ColumnValue:
        return around.names[node.name]

    def _part(self, node: Part, around: ColumnScope) -> ColumnValue:
        base = around.compile(node.base)
        if node.by_name and not isinstance(base.type, Tuple | Row):
            return library.property_of(around, base, str(node.step))
        return lookup.part(around, base, node)

    def _op(self, node: Op, around: ColumnScope) -> ColumnValue:
        if node.family == "unread":
            raise NotCompilable(f"`{node.name[1:].strip('()')}` runs in Python only")
        return _OPERATIONS[node.family](around, node)

    def _if_else(self, node: IfElse, around: ColumnScope) -> ColumnValue:
        return choices.if_else(around, node)

    def _make(self, node: Make, around: ColumnScope) -> ColumnValue:
        match node.kind:
            case "tuple":
                return structs.make_tuple(lookup.spread(around, node.parts))
            case "row":
                return lookup.row(around, node)
            case "list":
                final = around.is_result(node)
                return arrays.make(around, lookup.spread(around, node.parts), final=final)
            case "set":
                raise NotCompilable("a set that is computed")

    def _bind(self, node: Bind, around: ColumnScope) -> ColumnValue:
        match node.kind:
            case "let":
                return choices.let(around, node)
            case "list" | "generator":
                return choices.comprehension(around, node)
            case "set":
                raise NotCompilable("a set that is computed")
            case "function":
                raise NotCompilable("a function within the function")


_COLUMNS = _Columns()


def _slice(scope: ColumnScope, node: Op) -> ColumnValue:
    bounds = [None if b is None else scope.compile(b) for b in node.bounds]
    return lookup.cut(scope, scope.compile(node.args[0]), bounds)


def _unary(scope: ColumnScope, node: Op) -> ColumnValue:
    (operand,) = node.args
    if node.name == "not":
        return compare.negation(choices.test(scope, operand))
    value = scope.doubtfully(operand)
    if value.type == TIMEDELTA and node.name == "-x":
        return moments.negative(value)
    if node.name == "-x" and numbers.is_number(value) and not value.mixed:
        return numbers.minus(value)
    if node.name == "+x" and numbers.is_float(value):
        return scope.need(value)
    raise NotCompilable(f"`{node.name[0]}` of {value.type}")


def _binary(scope: ColumnScope, node: Op) -> ColumnValue:
    op = node.name
    a, b = map(scope.doubtfully, node.args)
    if numbers.is_number(a) and numbers.is_number(b):
        return numbers.arithmetic(scope, op, a, b)
    a, b = scope.sure(a), scope.sure(b)
    if op in ("+", "*") and STRING in (a.type, b.type):
        return strings.concatenate(scope, op, a, b)
    if op == "+" and isinstance(a.type, Array | Tuple) and isinstance(b.type, Array | Tuple):
        return arrays.concatenate(scope, a, b)
    if op == "*" and (isinstance(a.type, Array) or isinstance(b.type, Array)):
        return arrays.repeated(scope, *((a, b) if isinstance(a.type, Array) else (b, a)))
    return moments.arithmetic(scope, op, a, b)


_OPERATIONS: dict[OpFamily, Callable[[ColumnScope, Op], ColumnValue]] = {
    "unary": _unary,
    "binary": _binary,
    "comparison": choices.compare_chain,
    "and": choices.bool_op,
    "or": choices.bool_op,
    "index": lambda scope, node: lookup.indexed(scope, *map(scope.compile, node.args)),
    "slice": _slice,
    "text": strings.formatted,
    "format": strings.format_of,
    "method": calls.method,
    "call": calls.call,
}
