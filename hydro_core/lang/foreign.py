"""Operators of DFIR, Spark and SQL as users know them, and their names here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from hydro_core.catalog.combine import JOIN
from hydro_core.catalog.group import UNIQUE
from hydro_core.catalog.ordered import SORT
from hydro_core.catalog.registry import NAMES
from hydro_core.lang.source import did_you_mean

_USE: Mapping[str, str] = MappingProxyType(
    {
        "cross_join": "`cross()`",
        "cross_join_multiset": "`cross()`, which works on bags",
        "join_multiset": "`join()`, which works on bags",
        "join_multiset_half": "`join()`",
        "join_fused": "`fold_keyed(…)` before `join()`",
        "anti_join_multiset": "`anti_join()`, which works on bags",
        "difference_multiset": "`difference()`, which works on bags",
        "multiset_delta": "`delta()`",
        "defer_tick_lazy": "`prev()`",
        "defer_signal": "`cross_singleton(single=…)`",
        "for_each": "`sink(…)` for a result, `inspect(…)` to look at items",
        "dest_sink": "`sink(…)`",
        "dest_file": "`sink(…)`",
        "source_stream": "`name = source(…)`",
        "source_file": "`name = source(…)`, and `hydrotick run --input name=PATH`",
        "source_json": "`name = source(…)`, and `hydrotick run --input name=PATH`",
        "source_interval": "`tick()`",
        "initialize": "`source_iter([None])`",
        "lattice_fold": "`fold(init, f, commutative=True, associative=True, idempotent=True)`",
        "lattice_reduce": "`reduce(f, commutative=True, associative=True, idempotent=True)`",
        "assert_eq": "`sink(…)`, and a test of its output",
        "unzip": "`tee()`, then `map` on each copy",
        "handoff": "`next_stratum()`",
        "cast": "`map(…)`",
        "resolve_futures": "`map(…)`",
        "distinct": "`unique()`",
        "dedup": "`unique()`",
        "deduplicate": "`unique()`",
        "drop_duplicates": "`unique()`, or `unique_keyed(by=…)`",
        "where": "`filter(…)`",
        "group_by": "`aggregate(by=…, …)`",
        "groupBy": "`aggregate(by=…, …)`",
        "agg": "`aggregate(…)`",
        "count": "`aggregate(n=count())`",
        "sum": "`aggregate(total=sum(…))`",
        "withColumn": "`with_columns(name=…)`",
        "withColumnRenamed": '`rename(new="old")`',
        "order_by": "`sort_by_key(…)`",
        "orderBy": "`sort_by_key(…)`",
        "sort_by": "`sort_by_key(…)`",
        "head": "`limit(n)`",
        "take": "`limit(n)`",
        "explode": "`flatten()` or `flat_map(…)`",
        "union_all": "`union()`",
        "merge": "`union()`",
        "concat": "`chain()`",
        "subtract": "`difference()`",
        "except_all": "`difference()`",
        **dict.fromkeys(
            ("lag", "lead", "row_number", "rank", "window_function", "partition_by"), "`over(…)`"
        ),
        "delay": "`prev()`",
        "history": "`persist()` or `old()`",
        "apply": "`map(…)`",
        "print": "`sink(…)`",
        "output": "`sink(…)`",
        "input": "`name = source(…)`",
    }
)


_CHOICES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("left_anti", "leftanti"), "anti"),
        **dict.fromkeys(("left_semi", "leftsemi"), "semi"),
        **dict.fromkeys(("left_outer", "leftouter"), "left"),
        **dict.fromkeys(("right_outer", "rightouter"), "right"),
        **dict.fromkeys(("full", "full_outer", "fullouter"), "outer"),
    }
)
_ARGUMENTS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        **dict.fromkeys(
            ((SORT.name, "by"), (SORT.name, "key"), (SORT.name, "descending")),
            "`sort_by_key(lambda r: r.v, descending=True)` sorts by what a function gives",
        ),
        **dict.fromkeys(
            ((JOIN.name, name) for name in ("by", "keys", "key", "using")),
            'the columns of a join are `on="k"`',
        ),
        **dict.fromkeys(
            ((JOIN.name, name) for name in ("left_on", "right_on", "left_by", "right_by")),
            'columns of other names are joined by `on={"left": "right"}`',
        ),
        (UNIQUE.name, "by"): '`unique_keyed(by="k")` keeps the first row of each key',
    }
)


def cure_of_choice(value: str, choices: Iterable[str]) -> str | None:
    """The help for a value that is not one of the choices."""
    if value in _CHOICES:
        return f'it is called `"{_CHOICES[value]}"` here'
    return did_you_mean(value, choices)


def cure_of_argument(op: str, name: str) -> str | None:
    """The help for an argument that an operator lacks and others have; None if there is no
    replacement.
    """
    return _ARGUMENTS.get((op, name))


def cure_of_unknown(name: str) -> str:
    """The help for an unknown operator."""
    if name in _USE:
        return f"use {_USE[name]}"
    return did_you_mean(name, NAMES) or f"the operators are {', '.join(NAMES)}"
