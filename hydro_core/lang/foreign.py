"""Operators of DFIR, Spark and SQL as users know them, and what they are called here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hydro_core.catalog.registry import NAMES
from hydro_core.lang.similar import did_you_mean

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
        "top": "`sort_by_key(…) -> limit(n)`",
        "head": "`limit(n)`",
        "take": "`limit(n)`",
        "explode": "`flatten()` or `flat_map(…)`",
        "union_all": "`union()`",
        "merge": "`union()`",
        "concat": "`chain()`",
        "subtract": "`difference()`",
        "except_all": "`difference()`",
        "lag": "`prev()`",
        "delay": "`prev()`",
        "history": "`persist()` or `old()`",
        "apply": "`map(…)`",
        "print": "`sink(…)`",
        "output": "`sink(…)`",
        "input": "`name = source(…)`",
    }
)


def cure_of_unknown(name: str) -> str:
    """What to write instead of an operator that does not exist."""
    if name in _USE:
        return f"use {_USE[name]}"
    return did_you_mean(name, NAMES) or f"the operators are {', '.join(NAMES)}"
