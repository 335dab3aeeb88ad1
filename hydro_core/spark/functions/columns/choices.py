"""Choices on Spark: conditions, `and` and `or`, local names, chains of comparisons."""

from __future__ import annotations

from pyspark.sql import Column

from hydro_core.functions.fold import surely_reads
from hydro_core.functions.not_null import NotNull, where_false, where_true
from hydro_core.functions.tree import Bind, Expr, IfElse, Op
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import compare, integers, lookup, numbers, structs
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import (
    DURATION,
    ColumnValue,
    NotCompilable,
    boolean,
    computed,
)
from hydro_core.types.common import common_types
from hydro_core.types.item import (
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UNKNOWN,
    ItemType,
)

_ORDERED = (BOOLEAN, LONG, DOUBLE, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)
"""Of these Spark's order is that of the language."""


def test(scope: ColumnScope, node: Expr) -> ColumnValue:
    """`bool(node)`, never null: only the truth of it matters."""
    return scope.sure(_test(scope, node))


def _test(scope: ColumnScope, node: Expr) -> ColumnValue:
    match node:
        case Op("and" | "or" as op, values):
            return _all_tests(scope, op, values)
        case Op("not", (operand,)):
            return compare.negation(_test(scope, operand))
        case IfElse(condition, then, otherwise):
            return _chosen_test(scope, condition, then, otherwise)
        case _:
            return compare.truth(scope, scope.doubtfully(node))


def bool_op(scope: ColumnScope, node: Op) -> ColumnValue:
    """`a and b`, `a or b`: an operand, as Python gives it."""
    first, *rest = node.args
    result, not_null = scope.compile(first), _after(node.name, first)
    for following in rest:
        if result.parts is not None or result.size > 200:
            raise NotCompilable(f"`{node.name}` of long expressions")
        result = scope.sure(result)
        condition = compare.truth(scope, result)
        other = scope.branch(following, not_null)
        not_null += _after(node.name, following)
        pair = (other, result) if node.name == "and" else (result, other)
        result = choose(
            scope, condition, *pair, final=scope.is_result(node) and following is rest[-1]
        )
    return result


def if_else(scope: ColumnScope, node: IfElse) -> ColumnValue:
    """`then if test else otherwise`."""
    condition = test(scope, node.test)
    then = scope.branch(node.then, where_true(node.test))
    otherwise = scope.branch(node.otherwise, where_false(node.test))
    return choose(scope, condition, then, otherwise, final=scope.is_result(node))


def choose(
    scope: ColumnScope,
    condition: ColumnValue,
    then: ColumnValue,
    otherwise: ColumnValue,
    *,
    final: bool = False,
) -> ColumnValue:
    """The one value where the condition holds, else the other."""
    if _is_mixed(then, otherwise):
        return _mixed(scope, condition, then, otherwise)
    nullable = then.nullable or otherwise.nullable
    if nullable:
        then, otherwise = scope.sure(then), scope.sure(otherwise)
    of, doubtful = (condition, then, otherwise), then.doubtful or otherwise.doubtful
    if then.type == otherwise.type == DURATION:
        column = F.when(condition.column, then.column).otherwise(otherwise.column)
        return computed(column, DURATION, *of, safe=True, nullable=nullable, doubtful=doubtful)
    if not isinstance(then.type, ItemType) or not isinstance(otherwise.type, ItemType):
        raise NotCompilable(f"a choice between {then.type} and {otherwise.type}")
    to = common_types((then.type, otherwise.type))
    if to is None:
        raise NotCompilable(f"a choice between {then.type} and {otherwise.type}")
    if to == UNKNOWN:
        scope.use(*of)
        return ColumnValue(F.lit(None), UNKNOWN)
    a, b = (
        structs.cast(scope, v.with_(doubtful=False), to, final=final) for v in (then, otherwise)
    )
    column = F.when(condition.column, a).otherwise(b)
    return computed(column, to, *of, safe=True, nullable=nullable, doubtful=doubtful)


def coalesced(scope: ColumnScope, node: Op) -> ColumnValue:
    """`coalesce(a, b)`: what follows the first that is not null is computed in Python alone."""
    values, to, columns = _alike(scope, node)
    nullable = all(v.nullable for v in values)
    return computed(F.coalesce(*columns), to, *values, safe=True, nullable=nullable)


def extreme(scope: ColumnScope, node: Op) -> ColumnValue:
    """`greatest(a, b)`, `least(a, b)`: of the values that are not null."""
    values, to, columns = _alike(scope, node)
    if len(values) < 2 or to not in _ORDERED:
        raise NotCompilable(f"`{node.name}` of {to}")
    nullable = all(v.nullable for v in values)
    column = getattr(F, node.name)(*columns)
    return computed(column, to, *values, safe=True, nullable=nullable)


def _alike(scope: ColumnScope, node: Op) -> tuple[list[ColumnValue], ItemType, list[Column]]:
    """The arguments, and their columns of one type."""
    values = [structs.whole(scope, scope.compile(a)) for a in node.args]
    kinds = [v.type for v in values if isinstance(v.type, ItemType) and not v.mixed]
    to = common_types(tuple(kinds))
    if len(kinds) < len(values) or to is None or to == UNKNOWN:
        raise NotCompilable(f"`{node.name}` of values of several types")
    final = scope.is_result(node)
    return values, to, [structs.cast(scope, v, to, final=final) for v in values]


def let(scope: ColumnScope, node: Bind) -> ColumnValue:
    """`name = value` and then `body`: the value is computed, needed or not."""
    value = scope.doubtfully(node.value)
    if not surely_reads(node.body, *node.names):
        scope.use(value)
    inner = scope.inner({node.names[0]: value})
    # The body is evaluated whenever this is: what it checks may be checked before.
    inner.guards, inner.outer = scope.guards, scope.outer
    return inner.doubtfully(node.body)


def compare_chain(scope: ColumnScope, node: Op) -> ColumnValue:
    """`a < b < c`: each operand once, up to the first that is False."""
    first, *others = node.args
    left = scope.doubtfully(first)
    (op, right_node), *rest = zip(node.name.split(","), others, strict=True)
    right = _operand(scope, op, right_node)
    result = one(scope, op, left, right)
    for following, next_node in rest:
        left = right
        branch = scope.inner()
        right = _operand(branch, following, next_node)
        compared = branch.guarded(one(branch, following, left, right))
        if left.may_fail and left.size > 50:
            raise NotCompilable("a chain of long comparisons")
        result = both(scope.sure(result), compared)
    return result


def one(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a op b`."""
    if op in ("in", "not in", "is", "is not"):
        a, b = scope.sure(a), scope.sure(b)
    match op:
        case "==":
            return compare.equal(scope, a, b)
        case "!=":
            return compare.negation(compare.equal(scope, a, b))
        case "in":
            return lookup.contains(scope, b, a)
        case "not in":
            return compare.negation(lookup.contains(scope, b, a))
        case "is" | "is not":
            same = _identical(scope, a, b)
            return same if op == "is" else compare.negation(same)
        case _:
            return compare.order(scope, op, a, b)


def _operand(scope: ColumnScope, op: str, node: Expr) -> ColumnValue:
    if op in ("in", "not in"):
        return lookup.container(scope, node)
    return scope.doubtfully(node)


def _identical(scope: ColumnScope, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    for this, other in ((a, b), (b, a)):
        if this.constant == (None,):
            return compare.is_none(scope, other)
        if this.constant is not None and isinstance(this.constant[0], bool):
            if other.type == BOOLEAN:
                return compare.equal(scope, this, other)
            raise NotCompilable("`is` between values of different kinds")
    raise NotCompilable("`is` of anything but None, True and False")


def _all_tests(scope: ColumnScope, op: str, values: tuple[Expr, ...]) -> ColumnValue:
    first, *rest = values
    result, not_null = _test(scope, first), _after(op, first)
    for following in rest:
        branch = scope.inner(not_null=not_null)
        not_null += _after(op, following)
        other = branch.guarded(_test(branch, following))
        result = (both if op == "and" else _any)(scope.sure(result), other)
    return result


def _after(op: str, test: Expr) -> NotNull:
    """What is not None where an operand of `and`, or of `or`, has not decided."""
    return where_true(test) if op == "and" else where_false(test)


def both(a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a and b` of two truth values, `b`, maybe doubtful, evaluated only where `a` holds."""
    lazily = F.when(a.column, b.column).otherwise(F.lit(False))
    column = a.column & b.column if b.safe else lazily
    return boolean(column, a, b).with_(doubtful=b.doubtful)


def _any(a: ColumnValue, b: ColumnValue) -> ColumnValue:
    lazily = F.when(a.column, F.lit(True)).otherwise(b.column)
    column = a.column | b.column if b.safe else lazily
    return boolean(column, a, b).with_(doubtful=b.doubtful)


def _chosen_test(scope: ColumnScope, condition: Expr, then: Expr, otherwise: Expr) -> ColumnValue:
    chosen = test(scope, condition)
    branches = []
    for node, not_null in ((then, where_true(condition)), (otherwise, where_false(condition))):
        inner = scope.inner(not_null=not_null)
        branches.append(inner.guarded(_test(inner, node)))
    a, b = branches
    column = F.when(chosen.column, a.column).otherwise(b.column)
    return boolean(column, chosen, a, b).with_(doubtful=a.doubtful or b.doubtful)


def _is_mixed(a: ColumnValue, b: ColumnValue) -> bool:
    def real(value: ColumnValue) -> bool:
        return numbers.is_float(value) or value.mixed

    def whole(value: ColumnValue) -> bool:
        return integers.is_integer_type(value) and not value.mixed

    return (real(a) and whole(b)) or (whole(a) and real(b)) or a.mixed or b.mixed


def _mixed(
    scope: ColumnScope, condition: ColumnValue, then: ColumnValue, otherwise: ColumnValue
) -> ColumnValue:
    for value in (then, otherwise):
        if not (numbers.is_float(value) or integers.is_integer_type(value) or value.mixed):
            raise NotCompilable(f"a choice between {then.type} and {otherwise.type}")
    a, b = (numbers.as_mixed(scope, v) for v in (then, otherwise))
    nullable = a.nullable or b.nullable
    if nullable:
        a, b = scope.sure(a), scope.sure(b)
    column = F.when(condition.column, a.column).otherwise(b.column)
    doubtful = a.doubtful or b.doubtful
    more = {"nullable": nullable, "doubtful": doubtful, "mixed": True}
    return computed(column, DOUBLE, condition, a, b, safe=True, **more)
