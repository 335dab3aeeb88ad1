"""Choices among values, of which some may be null: they say themselves what they make of one."""

from __future__ import annotations

from typing import Any

from hydro_core.functions.kinds import ExprType, Mixed, joined
from hydro_core.functions.library.collections import of_extreme
from hydro_core.functions.library.entry import CallSite, Library
from hydro_core.types.values import canonical, sort_key

DATA = Library()


# the types of calls


def _common(site: CallSite) -> ExprType:
    site.some()
    return joined(site.args, site.place)


def _extreme(site: CallSite) -> ExprType:
    site.count(2, 1000)
    return of_extreme(site)


def _first(site: CallSite) -> ExprType:
    site.count(2, 2)
    value, other = site.args
    if isinstance(joined(site.args, site.place), Mixed):
        raise site.problem(f"{value} and {other} are never equal")
    return value


# what programs call


@DATA.own(_common)
def coalesce(*values: Any) -> Any:
    """The first value that is not null."""
    return next((value for value in values if value is not None), None)


@DATA.own(_extreme)
def greatest(*values: Any) -> Any:
    """The greatest of the values that are not null, NaN above all numbers."""
    return max((v for v in values if v is not None), key=sort_key, default=None)


@DATA.own(_extreme)
def least(*values: Any) -> Any:
    """The least of the values that are not null."""
    return min((v for v in values if v is not None), key=sort_key, default=None)


@DATA.own(_first)
def nullif(value: Any, other: Any) -> Any:
    """The value; null if it is equal to another, NaN to NaN."""
    return None if canonical(value) == canonical(other) else value
