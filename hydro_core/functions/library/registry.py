"""The library: operations by their names, and methods and properties by the types of values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal as DecimalValue
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.kinds import (
    ANY,
    TIMEDELTA,
    DictOf,
    ExprType,
    MatchOf,
    Place,
    SetOf,
    computed_of,
    is_open,
    of_constant,
)
from hydro_core.functions.library import collections, numbers, regex, texts, times
from hydro_core.functions.library.calendars import CALENDAR, WINDOWS
from hydro_core.functions.library.collections import DATA
from hydro_core.functions.library.entry import MODULES, Members, Operation
from hydro_core.functions.library.operators import CHAIN, OPERATORS, column, field, index, near
from hydro_core.functions.library.parsing import HASHES, JSON, PARSING
from hydro_core.functions.library.regex import TextMatch
from hydro_core.functions.library.wording import WORDING
from hydro_core.functions.tree import Bind, Expr, Op, Param, Part, field_in, position
from hydro_core.types.item import INTEGERS, Array, Decimal, Row, Scalar, Tuple
from hydro_core.types.values import RowItem, Struct

DATA_FUNCTIONS: Members = {
    **DATA,
    **PARSING,
    **HASHES,
    **WORDING,
    **regex.REGEXP,
    **JSON,
    **CALENDAR,
    **WINDOWS,
}
"""Functions for work with data that Python's builtins lack."""
BUILTINS: Members = {
    **dict(sorted({**collections.OF_PARTS, **numbers.OF_NUMBERS, **texts.OF_TEXTS}.items())),
    **times.OF_TIMES,
    "Decimal": numbers.DECIMAL,
    "math": numbers.MATH_ITSELF,
    "re": regex.RE_ITSELF,
    **DATA_FUNCTIONS,
}
"""The names that every function sees."""
OF_CLASSES: Members = {
    **times.OF_TIME_TYPES,
    **numbers.OF_NUMBER_TYPES,
    **collections.OF_DICTS,
    **numbers.OF_MATH,
    **regex.RE,
}
"""The methods of classes, and the functions of `math` and `re`."""
CONSTANTS: Mapping[str, Any] = {**times.TIME_CONSTANTS, **numbers.MATH_CONSTANTS}
"""The attributes of classes that are values."""
FUNCTIONS: Members = {**BUILTINS, **OF_CLASSES}
"""All operations that are called by a name."""
NAMES: Mapping[int, str] = {id(entry.function): name for name, entry in FUNCTIONS.items()}
"""The names of functions by their identities."""
OPERATIONS: Members = {**FUNCTIONS, **OPERATORS}
"""All operations that a tree may name, without methods: these have entries by types."""
OF_TYPES: Mapping[type, Members] = {
    bool: {},
    int: numbers.INT_MEMBERS,
    float: numbers.FLOAT_MEMBERS,
    str: texts.TEXT_MEMBERS,
    bytes: texts.BYTES_MEMBERS,
    DecimalValue: numbers.DECIMAL_MEMBERS,
    datetime: times.TIMESTAMP_MEMBERS,
    date: times.DATE_MEMBERS,
    timedelta: times.TIMEDELTA_MEMBERS,
    Struct: collections.TUPLE_MEMBERS,
    tuple: collections.TUPLE_MEMBERS,
    list: collections.LIST_MEMBERS,
    range: collections.RANGE_MEMBERS,
    RowItem: collections.ROW_MEMBERS,
    dict: collections.ROW_MEMBERS,
    set: collections.SET_MEMBERS,
    TextMatch: regex.MATCH_MEMBERS,
}
"""Members by the types of Python."""
_OF_KINDS: Mapping[type, type] = {
    Row: dict,
    DictOf: dict,
    Tuple: tuple,
    Array: list,
    SetOf: set,
    MatchOf: TextMatch,
    Decimal: DecimalValue,
}
_OF_SCALARS: Mapping[str, Members] = {
    **dict.fromkeys(INTEGERS, OF_TYPES[int]),
    **dict.fromkeys(("float", "double"), OF_TYPES[float]),
    "string": OF_TYPES[str],
    "binary": OF_TYPES[bytes],
    "date": OF_TYPES[date],
    "timestamp": OF_TYPES[datetime],
    "timestamp_ntz": times.NTZ_MEMBERS,
    TIMEDELTA.name: OF_TYPES[timedelta],
}
ALL_METHODS = frozenset(
    name for entries in OF_TYPES.values() for name, m in entries.items() if m.takes is not None
)


def operation(name: str) -> Operation | None:
    """The entry of an operation that is no method; None if there is none."""
    return OPERATIONS.get(name) or (CHAIN if "," in name else None)


def members_of(kind: ExprType) -> Members:
    """The methods and properties of values of a type."""
    if isinstance(kind, Scalar):
        return _OF_SCALARS.get(kind.name, {})
    return OF_TYPES[_OF_KINDS[type(kind)]] if type(kind) in _OF_KINDS else {}


def part_of(base: ExprType, part: Part) -> ExprType:
    """The type of `base.step` or `base[step]`."""
    if is_open(base):
        return computed_of(base)
    found = field_in(base, part)
    if found is not None:
        return found.type
    if not part.by_name:
        return index(base, of_constant(part.step), part.step, part.place)
    if isinstance(base, Row):
        return column(base, str(part.step), part.place)
    place = position(part)
    if isinstance(base, Tuple) and place is not None:
        return field(base.fields, place, part.place)
    return _property(base, str(part.step), part.place)


def _property(base: ExprType, name: str, place: Place) -> ExprType:
    known = members_of(base)
    entry = known.get(name)
    if entry is not None and entry.takes is None:
        # The result of a property does not depend on its value.
        assert not callable(entry.gives)
        return entry.gives
    if entry is not None:
        cure = f"call it: `.{name}()`"
        raise TypeProblem(f"`{name}` is a method, where a value is meant", cure, place=place)
    if isinstance(base, DictOf):
        return ANY
    properties = [name for name, entry in known.items() if entry.takes is None]
    raise TypeProblem(f"{base} has no `{name}`", near(name, properties), place=place)


def is_method(base: ExprType, name: str) -> bool:
    """True if `base.name` is a method."""
    entry = None if isinstance(base, Row) else members_of(base).get(name)
    return entry is not None and entry.takes is not None


def no_value(function: Bind) -> TypeProblem:
    """The problem of a function in the position of a value."""
    shown, cure = "there is a function", "call it with its arguments, or write its result"
    given: tuple[Expr, ...] = tuple(map(Param, function.names))
    match function.body:
        # The name of a function is read as a function that calls it.
        case Op(name, args) if args == given or (name[:1] == "." and args[:1] == given):
            shown, cure = f"`{name}` is a function", MODULES.get(name, f"call it: `{name}(…)`")
    return TypeProblem(f"{shown}, where a value is meant", cure, place=function.place)
