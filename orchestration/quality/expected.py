"""How many rows of an output break what its author expects of it, counted exactly.

Values are compared as the language compares them: NaN is above all numbers and equal to itself,
-0.0 equals 0.0, texts go by code point. A null breaks `not_null` alone. Great Expectations judges
the counts: through its frames a NaN is a null, and a decimal beside a float is not itself.

Rows come in pieces, of which one alone is held. Which values repeat shows in no piece: where there
are several, executors count them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.project.expected import at_least, at_most, digits_of, equal_value, is_exact
from hydro_core.project.flow_asset import Expect
from hydro_core.types.item import BOOLEAN, FLOATS, ItemType, Scalar
from hydro_core.types.values import ValueProblem, canonical

from .suites import MOST_ROWS, TICK, Check, CheckFacts, checks_of_columns

if TYPE_CHECKING:
    from hydro_core.spark.store.delta.write import WrittenRows

Mask = Any
"""Arrow's column of booleans: of each row whether it breaks a check."""


def counted(
    expected: Sequence[Expect], shown: WrittenRows, session: Callable[[], Any]
) -> Mapping[str, CheckFacts]:
    """What breaks each check, by its name; `session` gives the Spark that wrote many rows."""
    types, found = dict(shown.spec.items), dict[str, CheckFacts]()
    asked: dict[str, Callable[[pa.Table], Mask]] = {}
    for check in checks_of_columns(expected):
        column, name = check.expect.column, check.name
        if column not in types:
            found[name] = CheckFacts(problem=f"the output has no column `{column}`")
        elif check.kind == "unique" and shown.table is None:
            found[name] = _repeated(column, shown, session)
        else:
            try:
                asked[name] = _breaking(check, types[column])
            except ValueProblem as problem:
                found[name] = CheckFacts(problem=f"the column is {types[column]}: {problem}")
    columns = dict.fromkeys((TICK, *(e.column for e in expected if e.column in types)))
    for piece in shown.pieces(list(columns)) if asked else ():
        for name, mask in asked.items():
            found[name] = found.get(name, CheckFacts()).and_of(_facts(piece, mask(piece)))
    return found


def _facts(rows: pa.Table, broken: Mask) -> CheckFacts:
    there = pc.indices_nonzero(broken)
    some = rows.drop_columns([TICK]).take(there[:MOST_ROWS]).to_pylist()
    return CheckFacts(rows.num_rows, len(there), tuple(map(_texts, some)))


def _texts(row: Mapping[str, Any]) -> Mapping[str, str]:
    return {name: "null" if value is None else str(value) for name, value in row.items()}


def _breaking(check: Check, of: ItemType) -> Callable[[pa.Table], Mask]:
    expect, column = check.expect, check.expect.column
    match check.kind:
        case "not_null":
            return lambda rows: rows[column].is_null()
        case "unique":
            return lambda rows: _repeats(rows, column)
        case "between":
            return _beyond(expect, of)
        case "one_of":
            values = [equal_value(value, of) for value in expect.one_of]
            return lambda rows: _is_none_of(rows[column], values, of)
        case "matches":
            pattern = re.compile(expect.matches or "")
            return lambda rows: _without_match(rows[column], pattern)


def _repeats(rows: pa.Table, column: str) -> Mask:
    values = zip(rows[TICK].to_pylist(), rows[column].to_pylist(), strict=True)
    keys = [None if value is None else (tick, canonical(value)) for tick, value in values]
    counts = Counter(keys)
    return pa.array([key is not None and counts[key] > 1 for key in keys], pa.bool_())


def _repeated(column: str, shown: WrittenRows, session: Callable[[], Any]) -> CheckFacts:
    from hydro_core.spark.store.outputs.repeated_values import repeated

    told = repeated(shown.frame(session()), TICK, column, MOST_ROWS)
    values = [str(value) for _, value in told.some]
    return CheckFacts(shown.rows, told.rows, tuple({column: v} for v in dict.fromkeys(values)))


def _beyond(expect: Expect, of: ItemType) -> Callable[[pa.Table], Mask]:
    least = None if expect.at_least is None else at_least(expect.at_least, of)
    most = None if expect.at_most is None else at_most(expect.at_most, of)

    def broken(rows: pa.Table) -> Mask:
        column = _comparable(rows[expect.column], of)
        masks = []
        if least is not None:
            # A comparison with NaN is false, which is right here: nothing is above it.
            masks.append(pc.less(column, pa.scalar(_number(least), column.type)))
        if most is not None:
            masks.append(pc.greater(column, pa.scalar(_number(most), column.type)))
            if of in _FLOATS:
                masks.append(pc.is_nan(column))
        return pc.fill_null(_any(masks), False)

    return broken


def _any(masks: Sequence[Mask]) -> Mask:
    first, *others = masks
    for mask in others:
        first = pc.or_(first, mask)
    return first


def _is_none_of(column: Any, values: Sequence[Any], of: ItemType) -> Mask:
    there = _comparable(column, of)
    among = _comparable(pa.array(map(_number, values), there.type), of)
    return pc.and_(pc.invert(pc.is_in(there, among)), column.is_valid())


def _without_match(column: Any, pattern: re.Pattern[str]) -> Mask:
    coded = column.combine_chunks().dictionary_encode()
    wrong = [pattern.search(text) is None for text in coded.dictionary.to_pylist()]
    of_each: Any = pa.array(wrong, pa.bool_()).take(coded.indices)
    return pc.fill_null(of_each, False)


_FLOATS = tuple(map(Scalar, FLOATS))
_NAN = pa.scalar(float("nan"), pa.float64())


def _comparable(column: Any, of: ItemType) -> Any:
    """The column in a type that holds the bounds as well, in which equal values are the same."""
    if is_exact(of):
        precision, scale = digits_of(of)
        # One digit more is room for the first number beyond all of them.
        return column.cast(pa.decimal256(precision + 1, scale))
    if of in _FLOATS:
        # A sum with 0.0 has no -0.0; a NaN may have any of many forms.
        plain = pc.add(column.cast(pa.float64()), 0.0)
        return pc.if_else(pc.is_nan(plain), _NAN, plain)
    return column.cast(pa.int8()) if of == BOOLEAN else column


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value
