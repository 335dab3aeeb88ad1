"""Choices on Spark: conditions, `and` and `or`, local names, chains of comparisons."""

from __future__ import annotations

from hydro_core.functions.kinds import ANY, ExprType
from hydro_core.functions.totality import NotNull, where_false, where_true
from hydro_core.functions.tree import Bind, Expr, IfElse, Op, surely_reads
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import compare, integers, lookup, numbers, structs
from hydro_core.spark.functions.columns.value import (
    ColumnScope,
    ColumnValue,
    NotCompilable,
    boolean,
    computed,
    is_item,
)
from hydro_core.types.item import (
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    OPEN,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UNKNOWN,
    ItemType,
)

_ORDERED = (BOOLEAN, LONG, DOUBLE, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)
"""Of these Spark's order is that of the language."""
_NEGATIONS = {"!=": "==", "not in": "in", "is not": "is"}


def test(scope: ColumnScope, node: Expr) -> ColumnValue:
    """`bool(node)`, never null: only the truth of it matters."""
    return scope.sure(_test(scope, node))


def _test(scope: ColumnScope, node: Expr) -> ColumnValue:
    match node:
        case Op("and" | "or" as op, values):
            return _all_tests(scope, op, values)
        case Op("not", (operand,)):
            return compare.negation(_test(scope, operand))
        case IfElse():
            return _chosen_test(scope, node)
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
        final = scope.is_result(node) and following is rest[-1]
        result = choose(scope, condition, pair, node.type, final=final)
    return result


def if_else(scope: ColumnScope, node: IfElse) -> ColumnValue:
    condition = test(scope, node.test)
    then = scope.branch(node.then, where_true(node.test))
    otherwise = scope.branch(node.otherwise, where_false(node.test))
    return choose(scope, condition, (then, otherwise), node.type, final=scope.is_result(node))


def choose(
    scope: ColumnScope,
    condition: ColumnValue,
    pair: tuple[ColumnValue, ColumnValue],
    to: ExprType,
    *,
    final: bool = False,
) -> ColumnValue:
    """The one value where the condition holds, else the other: a value of the type `to`."""
    then, otherwise = pair
    mixed = _is_mixed(then, otherwise)
    to = OPEN if to == ANY else to
    if not isinstance(to, ItemType) or (mixed and not all(map(_is_real_or_whole, pair))):
        raise NotCompilable(f"a choice between {then.type} and {otherwise.type}")
    if mixed:
        then, otherwise = (numbers.as_mixed(scope, v) for v in pair)
    nullable = then.nullable or otherwise.nullable
    if nullable:
        then, otherwise = scope.sure(then), scope.sure(otherwise)
    of, doubtful = (condition, then, otherwise), then.doubtful or otherwise.doubtful
    if to == UNKNOWN:
        scope.use(*of)
        return ColumnValue(F.lit(None), UNKNOWN)
    a, b = then.column, otherwise.column
    if not mixed:
        sure = (v.with_(doubtful=False) for v in (then, otherwise))
        a, b = (structs.cast(scope, v, to, final=final) for v in sure)
    column = F.when(condition.column, a).otherwise(b)
    more = {"nullable": nullable, "doubtful": doubtful, "mixed": mixed}
    return computed(column, DOUBLE if mixed else to, *of, safe=True, **more)


def of_what_is_there(scope: ColumnScope, node: Op) -> ColumnValue:
    """`coalesce`, `greatest` and `least`, of the values that are not null; what follows the first
    of these is computed in Python alone.
    """
    values, to = [structs.whole(scope, scope.compile(a)) for a in node.args], node.type
    if not is_item(to) or to == UNKNOWN or any(v.mixed or not is_item(v.type) for v in values):
        raise NotCompilable(f"`{node.name}` of values of several types")
    final = scope.is_result(node)
    columns = [structs.cast(scope, v, to, final=final) for v in values]
    if node.name != "coalesce" and (len(values) < 2 or to not in _ORDERED):
        raise NotCompilable(f"`{node.name}` of {to}")
    nullable = all(v.nullable for v in values)
    column = getattr(F, node.name)(*columns)
    return computed(column, to, *values, safe=True, nullable=nullable)


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
        result = decided("and", scope.sure(result), compared)
    return result


def one(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a op b`."""
    if op in ("in", "not in", "is", "is not"):
        a, b = scope.sure(a), scope.sure(b)
    if op in _NEGATIONS:
        return compare.negation(one(scope, _NEGATIONS[op], a, b))
    match op:
        case "==":
            return compare.equal(scope, a, b)
        case "in":
            return lookup.contains(scope, b, a)
        case "is":
            return _identical(scope, a, b)
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
        other = scope.branch(following, not_null, _test)
        not_null += _after(op, following)
        result = decided(op, scope.sure(result), other)
    return result


def _after(op: str, test: Expr) -> NotNull:
    """What is not None where an operand of `and`, or of `or`, has not decided."""
    return where_true(test) if op == "and" else where_false(test)


def decided(op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a and b`, `a or b` of truth values; `b` is evaluated only where `a` has not decided."""
    if op == "and":
        lazily = F.when(a.column, b.column).otherwise(F.lit(False))
        column = a.column & b.column if b.safe else lazily
    else:
        lazily = F.when(a.column, F.lit(True)).otherwise(b.column)
        column = a.column | b.column if b.safe else lazily
    return boolean(column, a, b).with_(doubtful=b.doubtful)


def _chosen_test(scope: ColumnScope, node: IfElse) -> ColumnValue:
    chosen = test(scope, node.test)
    a = scope.branch(node.then, where_true(node.test), _test)
    b = scope.branch(node.otherwise, where_false(node.test), _test)
    column = F.when(chosen.column, a.column).otherwise(b.column)
    return boolean(column, chosen, a, b).with_(doubtful=a.doubtful or b.doubtful)


def _is_mixed(a: ColumnValue, b: ColumnValue) -> bool:
    """Whether one is an int and the other a float, or one is either already."""
    numbers_met = _is_real_or_whole(a) and _is_real_or_whole(b)
    return a.mixed or b.mixed or (numbers_met and numbers.is_float(a) != numbers.is_float(b))


def _is_real_or_whole(value: ColumnValue) -> bool:
    return numbers.is_float(value) or integers.is_integer_type(value) or value.mixed
