"""The library by the types of values: what may be read of a value, and called on it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal as DecimalValue

from hydro_core.functions.kinds import TIMEDELTA, DictOf, ExprType, MatchOf, SetOf
from hydro_core.functions.library.collections import (
    LIST_MEMBERS,
    RANGE_MEMBERS,
    ROW_MEMBERS,
    SET_MEMBERS,
    TUPLE_MEMBERS,
)
from hydro_core.functions.library.entry import Member
from hydro_core.functions.library.numbers import DECIMAL_MEMBERS, FLOAT_MEMBERS, INT_MEMBERS
from hydro_core.functions.library.regex import TextMatch
from hydro_core.functions.library.regex_types import MATCH_MEMBERS
from hydro_core.functions.library.texts import BYTES_MEMBERS, TEXT_MEMBERS
from hydro_core.functions.library.times import (
    DATE_MEMBERS,
    NTZ_MEMBERS,
    TIMEDELTA_MEMBERS,
    TIMESTAMP_MEMBERS,
)
from hydro_core.types.item import INTEGERS, Array, Decimal, Row, Scalar, Tuple
from hydro_core.types.values import RowItem, Struct

Members = Mapping[str, Member]

OF_TYPES: Mapping[type, Members] = {
    bool: {},
    int: INT_MEMBERS,
    float: FLOAT_MEMBERS,
    str: TEXT_MEMBERS,
    bytes: BYTES_MEMBERS,
    DecimalValue: DECIMAL_MEMBERS,
    datetime: TIMESTAMP_MEMBERS,
    date: DATE_MEMBERS,
    timedelta: TIMEDELTA_MEMBERS,
    Struct: TUPLE_MEMBERS,
    tuple: TUPLE_MEMBERS,
    list: LIST_MEMBERS,
    range: RANGE_MEMBERS,
    RowItem: ROW_MEMBERS,
    dict: ROW_MEMBERS,
    set: SET_MEMBERS,
    TextMatch: MATCH_MEMBERS,
}
"""By the types of Python."""
_SCALARS: Mapping[str, Members] = {
    "boolean": {},
    **dict.fromkeys(INTEGERS, INT_MEMBERS),
    **dict.fromkeys(("float", "double"), FLOAT_MEMBERS),
    "string": TEXT_MEMBERS,
    "binary": BYTES_MEMBERS,
    "date": DATE_MEMBERS,
    "timestamp": TIMESTAMP_MEMBERS,
    "timestamp_ntz": NTZ_MEMBERS,
    TIMEDELTA.name: TIMEDELTA_MEMBERS,
}
ALL_METHODS = frozenset(
    name for entries in OF_TYPES.values() for name, m in entries.items() if m.takes is not None
)


def members_of(kind: ExprType) -> Members:
    """What may be read of values of an item type, or of another kind."""
    match kind:
        case Row() | DictOf():
            return ROW_MEMBERS
        case Tuple():
            return TUPLE_MEMBERS
        case Array():
            return LIST_MEMBERS
        case SetOf():
            return SET_MEMBERS
        case MatchOf():
            return MATCH_MEMBERS
        case Decimal():
            return DECIMAL_MEMBERS
        case Scalar(name):
            return _SCALARS.get(name, {})
        case _:
            return {}
