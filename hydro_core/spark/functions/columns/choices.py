"""Control flow on Spark: conditions, `and` and `or`, local names, comprehensions, sums."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import Column

from hydro_core.functions.kinds import ANY, ExprType
from hydro_core.functions.totality import NotNull, where_false, where_true
from hydro_core.functions.tree import Bind, Expr, IfElse, Make, Op, is_function, surely_reads
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import (
    arrays,
    compare,
    integers,
    lookup,
    numbers,
    strings,
    structs,
)
from hydro_core.spark.functions.columns.value import (
    ColumnScope,
    ColumnValue,
    NotCompilable,
    boolean,
    computed,
    is_item,
    strict,
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
    Array,
    ItemType,
    Scalar,
    Tuple,
)

# Choices on Spark: conditions, `and` and `or`, local names, chains of comparisons.


_ORDERED = (BOOLEAN, LONG, DOUBLE, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)
"""Types whose order in Spark is that of the language."""
_NEGATIONS = {"!=": "==", "not in": "in", "is not": "is"}


def test(scope: ColumnScope, node: Expr) -> ColumnValue:
    """`bool(node)`, never null: only the truth value matters."""
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
    """`a and b`, `a or b`: one of the operands, as in Python."""
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
    """One value where the condition holds, else the other: a value of the type `to`."""
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
    """`coalesce`, `greatest` and `least`, of the values that are not null; arguments after the
    first such value are computed only in Python.
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
    # The body is evaluated whenever the value is: its guards may be checked before.
    inner.guards, inner.outer = scope.guards, scope.outer
    return inner.doubtfully(node.body)


def compare_chain(scope: ColumnScope, node: Op) -> ColumnValue:
    """`a < b < c`: each operand once, up to the first False."""
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
    """Expressions that are not None where an operand of `and`, or of `or`, has not decided."""
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
    """True if one is an int and the other a float, or one is either already."""
    numbers_met = _is_real_or_whole(a) and _is_real_or_whole(b)
    return a.mixed or b.mixed or (numbers_met and numbers.is_float(a) != numbers.is_float(b))


def _is_real_or_whole(value: ColumnValue) -> bool:
    return numbers.is_float(value) or integers.is_integer_type(value) or value.mixed


# Loops over Python's lists on Spark: comprehensions, sums, and arguments of builtins.
#
# A tuple whose fields have one type can be looped over as an array. A loop's body fails where
# Python's would, and only for the elements that Python reaches.


NamedColumns = dict[str, ColumnValue]
INTEGER = Scalar("integer")
_LARGEST_START = 2**40


def _recorded(
    scope: ColumnScope,
    names: Callable[[Column], NamedColumns],
    compiled: Callable[[ColumnScope], ColumnValue],
    not_null: NotNull = (),
) -> tuple[Callable[[Column], Column], list[ColumnValue]]:
    """The computed value of each element, as a function of it, and the values that were
    compiled.
    """
    made: list[ColumnValue] = []

    def of_element(element: Column) -> Column:
        inner = scope.inner(names(element), not_null)
        value = compiled(inner)
        made.append(value)
        return inner.behind(value.column)

    return of_element, made


def comprehension(scope: ColumnScope, node: Bind) -> ColumnValue:
    loop, final = ComprehensionLoop(scope, node), scope.is_result(node)
    body, made = _recorded(
        *(scope, loop.names),
        lambda inner: structs.whole(inner, inner.compile(node.body), final=final),
        loop.not_null,
    )
    kept = F.filter(loop.array.column, loop.condition) if node.conditions else loop.array.column
    column, element = F.transform(kept, body), made[0].type
    if not is_item(element) or made[0].mixed:
        raise NotCompilable("a list of what are no items")
    return computed(column, Array(element), loop.array, *made, *loop.tests)


class ComprehensionLoop:
    """The array and the condition of a comprehension."""

    def __init__(self, scope: ColumnScope, node: Bind) -> None:
        self.scope, self.node = scope, node
        self.array = array_of(scope, node.value)
        condition = Op("and", node.conditions)
        self.condition, self.tests = _recorded(
            scope, self.names, lambda inner: test(inner, condition)
        )
        self.not_null = where_true(condition)
        """Expressions that are not None for an element that passes the condition."""

    def names(self, column: Column) -> NamedColumns:
        targets, value = self.node.names, arrays.item(self.array, column)
        made_by = self.node.value.name if isinstance(self.node.value, Op) else ""
        if made_by in ("enumerate", "zip"):
            value = value.with_(nullable=False)
        if len(targets) == 1:
            return {targets[0]: value}
        if not isinstance(value.type, Tuple) or structs.arity(value) != len(targets):
            raise NotCompilable("a loop unpacks what are no tuples of that many fields")
        fields = structs.fields_of(self.scope, self.scope.need(value))
        if made_by == "enumerate":
            fields[0] = fields[0].with_(nullable=False)
        return dict(zip(targets, fields, strict=True))


def exists(scope: ColumnScope, node: Bind, *, every: bool) -> ColumnValue:
    """`any(…)` or `all(…)` of a generator: up to the first element that decides."""
    loop = ComprehensionLoop(scope, node)
    body, tests = _recorded(scope, loop.names, lambda inner: test(inner, node.body), loop.not_null)

    def decides(element: Column) -> Column:
        result = body(element)
        if not node.conditions:
            return result
        return F.when(loop.condition(element), result).otherwise(F.lit(every))

    column = (F.forall if every else F.exists)(loop.array.column, decides)
    return boolean(column, loop.array, *tests, *loop.tests, safe=False)


def array_of(scope: ColumnScope, node: Expr) -> ColumnValue:
    """The iterated value, as an array that is not None."""
    match node:
        case Bind("list" | "generator"):
            return comprehension(scope, node)
        case Op("range"):
            return scope.sure(arrays.sequence(scope, node))
        case Op("enumerate", (source, *start), keywords):
            return _numbered(scope, source, [*start, *(value for _, value in keywords)])
        case Op("zip", (_, *_) as sources, ()):
            return _zipped([array_of(scope, source) for source in sources])
        case Op("reversed", (source,), ()):
            array = array_of(scope, source)
            return computed(F.reverse(array.column), array.type, array, safe=True)
    value = scope.compile(node)
    if isinstance(value.type, Tuple):
        return arrays.of_tuple(scope, value)
    if value.type == STRING:
        return strings.characters(scope, value)
    if not isinstance(value.type, Array):
        raise NotCompilable(f"a loop over {value.type}")
    return scope.need(value)


def set_of(scope: ColumnScope, node: Expr) -> ColumnValue | None:
    """The elements of a set, each once; None for another expression."""
    match node:
        case Op("set", (source,), ()):
            return arrays.distinct(scope, array_of(scope, source))
        case Bind("set"):
            return arrays.distinct(scope, comprehension(scope, replace(node, kind="list")))
        case Make("set"):
            return arrays.distinct(scope, array_of(scope, replace(node, kind="list")))
    return None


def by_key(scope: ColumnScope, array: ColumnValue, key: Expr, *, descending: bool) -> ColumnValue:
    """The elements as tuples that Spark orders as Python does by a key: key, place, element.

    The earlier element of the array comes first among equal ones.
    """
    if not is_function(key) or len(key.names) != 1:
        raise NotCompilable("a key that is no function of an element")
    key_of, found = _recorded(
        scope,
        lambda e: {key.names[0]: arrays.item(array, e)},
        lambda inner: structs.whole(inner, inner.compile(key.body)),
    )
    column = F.transform(array.column, key_of)
    of, element = found[0].type, arrays.element_type(array)
    if not is_item(of) or found[0].mixed:
        raise NotCompilable(f"elements in the order of {of}")
    keys = arrays.ordered(scope, computed(column, Array(of), array, *found))
    sign = -1 if descending else 1

    entries = F.transform(
        keys.column, lambda k, i: structs.tuple_of(k, i * sign, F.get(array.column, i))
    )
    return computed(entries, Array(Tuple((of, INTEGER, element))), keys, array, safe=True)


def _numbered(scope: ColumnScope, source: Expr, start: list[Expr]) -> ColumnValue:
    """`enumerate(source, start)`."""
    known = scope.compile(start[0]).constant if start else (0,)
    if known is None or type(known[0]) is not int or abs(known[0]) > _LARGEST_START:
        raise NotCompilable("`enumerate` from a computed number")
    array, first = array_of(scope, source), known[0]
    column = F.transform(array.column, lambda e, i: structs.tuple_of(i.cast("long") + first, e))
    item = Tuple((LONG, arrays.element_type(array)))
    return computed(column, Array(item), array, array, safe=True)


def _zipped(sources: list[ColumnValue]) -> ColumnValue:
    """`zip(a, b)`: as many tuples as the shortest has elements."""
    first, *others = (source.column for source in sources)
    sizes = [F.size(source.column) for source in sources]
    count = F.least(*sizes) if others else sizes[0]

    column = F.transform(
        F.slice(first, 1, count), lambda e, i: structs.tuple_of(e, *(F.get(o, i) for o in others))
    )
    item = Tuple(tuple(map(arrays.element_type, sources)))
    return computed(column, Array(item), *sources, *sources, safe=True)


_ADDS_PLAINLY = sys.version_info < (3, 12)
"""From 3.12 on Python compensates the rounding of each partial sum of floats."""


def total(scope: ColumnScope, node: Op) -> ColumnValue:
    """`sum(…)`: of an array, a tuple or a loop."""
    written = dict(node.keywords).get("start") or (node.args[1] if len(node.args) == 2 else None)
    start = None if written is None else scope.need(scope.compile(written))
    argument = node.args[0]
    if not isinstance(argument, Bind) or not argument.is_loop:
        array = array_of(scope, argument)
        return _total(array, lambda e: arrays.item(array, e), lambda _: None, start)
    loop = ComprehensionLoop(scope, argument)

    def element(e: Column) -> ColumnValue:
        body = scope.inner(loop.names(e), loop.not_null)
        return body.guarded(body.doubtfully(argument.body))

    kept = loop.condition if argument.conditions else lambda _: None
    return _total(loop.array, element, kept, start)


def _total(
    array: ColumnValue,
    element: Callable[[Column], ColumnValue],
    kept: Callable[[Column], Column | None],
    start: ColumnValue | None,
) -> ColumnValue:
    first = element(F.get(array.column, F.lit(0)))
    if numbers.is_float(first) and _ADDS_PLAINLY:
        zero, combine = F.lit(0.0), operator.add
    elif integers.is_int(first):
        first, zero, combine = integers.as_long(first), integers.literal(0), F.try_add
    else:
        raise NotCompilable(f"`sum` of {first.type}")
    of, parts = first.type, list[ColumnValue]()
    if start is not None:
        if not (integers.is_int(start) if of == LONG else numbers.is_float(start)):
            raise NotCompilable(f"`sum` of {of} from {start.type}")
        start = integers.as_long(start) if of == LONG else numbers.as_double(start)
        zero = start.column
        parts.append(start)

    def step(total: Column, e: Column) -> Column:
        value = element(e)
        parts.append(value)
        value = integers.as_long(value) if of == LONG else numbers.as_double(value)
        added, test = combine(total, value.column), kept(e)
        return added if test is None else F.when(test, added).otherwise(total)

    column = F.aggregate(array.column, zero, step)
    if of == LONG:
        return strict(column, LONG, array, *parts, doubtful=True)
    # The sum of no floats is the int 0.
    return strict(column, DOUBLE, array, *parts, doubtful=True).with_(mixed=start is None)
