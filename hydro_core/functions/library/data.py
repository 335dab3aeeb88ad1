"""What people who work with data look for, and Python's builtins lack.

An entry here has a null rule of its own: of a *strict* function a null gives null, as in SQL, while
Python's builtins fail on it. `coalesce`, `greatest`, `least` and `concat_ws` skip nulls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hydro_core.functions.kinds import ExprType, Mixed, joined
from hydro_core.functions.library import builtin_types as types
from hydro_core.functions.library.calendars import CALENDAR_FUNCTIONS
from hydro_core.functions.library.entry import CallSite, LibraryFunction
from hydro_core.functions.library.hashes import HASH_FUNCTIONS
from hydro_core.functions.library.json_texts import JSON_FUNCTIONS
from hydro_core.functions.library.parsing import PARSING_FUNCTIONS
from hydro_core.functions.library.regex_types import REGEXP_FUNCTIONS
from hydro_core.functions.library.windows import WINDOW_FUNCTIONS
from hydro_core.functions.library.wording import WORDING_FUNCTIONS
from hydro_core.types.values import canonical, sort_key


def coalesce(*values: Any) -> Any:
    """The first value that is not null."""
    return next((value for value in values if value is not None), None)


def greatest(*values: Any) -> Any:
    """The greatest of the values that are not null, NaN above all numbers."""
    return max((v for v in values if v is not None), key=sort_key, default=None)


def least(*values: Any) -> Any:
    """The least of the values that are not null."""
    return min((v for v in values if v is not None), key=sort_key, default=None)


def nullif(value: Any, other: Any) -> Any:
    """The value; null if it is equal to another, NaN to NaN."""
    return None if canonical(value) == canonical(other) else value


# the types of calls


def _common(site: CallSite) -> ExprType:
    if not site.args:
        raise site.problem(f"`{site.name}` takes at least one argument")
    return joined(site.args, site.place)


def _extreme(site: CallSite) -> ExprType:
    site.count(2, 1000)
    return types.of_extreme(site)


def _first(site: CallSite) -> ExprType:
    site.count(2, 2)
    value, other = site.args
    if isinstance(joined(site.args, site.place), Mixed):
        raise site.problem(f"{value} and {other} are never equal")
    return value


DATA_FUNCTIONS: Mapping[str, LibraryFunction] = {
    "coalesce": LibraryFunction(coalesce, _common, nulls="own"),
    "greatest": LibraryFunction(greatest, _extreme, nulls="own"),
    "least": LibraryFunction(least, _extreme, nulls="own"),
    "nullif": LibraryFunction(nullif, _first, nulls="own"),
    **PARSING_FUNCTIONS,
    **HASH_FUNCTIONS,
    **WORDING_FUNCTIONS,
    **REGEXP_FUNCTIONS,
    **JSON_FUNCTIONS,
    **CALENDAR_FUNCTIONS,
    **WINDOW_FUNCTIONS,
}
"""By name."""


class MathModule:
    """What a text program sees as `math`: a name with functions."""


MathModule.__name__ = "math"


def _no_call(site: CallSite) -> ExprType:
    raise site.problem("`math` is no function", "such as `math.sqrt(x)`")


MATH = LibraryFunction(MathModule, _no_call)
MATH_CONSTANTS: Mapping[str, float] = {
    f"math.{name}": getattr(math, name) for name in ("pi", "e", "tau", "inf", "nan")
}
