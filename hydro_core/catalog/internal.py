"""Operators that only the optimizer introduces: a program cannot name them, plans can.

Each goes on from a state, the result of the tick before: `x = fold_from(prev(x), a)` is `fold(persist(a))` at the price
of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hydro_core.catalog import type_rules
from hydro_core.catalog.group import FOLD, FOLD_KEYED, REDUCE, REDUCE_KEYED
from hydro_core.catalog.registry import lookup
from hydro_core.catalog.spec import Args, Barrier, Example, Never, OnKey, OpSpec, OrderRule, Port
from hydro_core.types.item import ItemType

_STATE = Port("state", barrier=Barrier.STRATUM, aliases=("0",))
_NEW = Port("new", barrier=Barrier.STRATUM, aliases=("1",))
_PAIRS = {"a": "(string, long)"}


def _of_new(rule: type_rules.TypeRule) -> type_rules.TypeRule:
    """The type that the operator has without a state."""

    def result(args: Args, types: tuple[ItemType, ...]) -> ItemType:
        return rule(args, types[1:])

    return result


FOLD_FROM = OpSpec(
    name="fold_from",
    family="group",
    meaning="`f(acc, x)` over the new items, from the state's item; from `init` where there is none",
    inputs=(_STATE, _NEW),
    args=FOLD.args,
    result=_of_new(FOLD.result),
    zero=False,
    monotone=False,
    single=True,
    order=OrderRule.LOSES,
    partition=Never("one result is made of all items"),
    internal=True,
    example=Example(
        "a -> persist() -> fold(0, lambda acc, x: acc + x, commutative=True) -> out",
        ({"a": [1, 2]}, {"a": []}, {"a": [4]}),
        ({"out": [3]}, {"out": [3]}, {"out": [7]}),
        {"a": "long"},
    ),
)

REDUCE_FROM = OpSpec(
    name="reduce_from",
    family="group",
    meaning="`f` over the state's item and then the new ones; none where there is nothing",
    inputs=(_STATE, _NEW),
    args=REDUCE.args,
    result=_of_new(REDUCE.result),
    monotone=False,
    single=True,
    order=OrderRule.LOSES,
    partition=Never("one result is made of all items"),
    internal=True,
    example=Example(
        "a -> persist() -> reduce(lambda x, y: max(x, y), commutative=True) -> out",
        ({"a": []}, {"a": [1, 2]}, {"a": [1]}),
        ({"out": []}, {"out": [2]}, {"out": [2]}),
        {"a": "long"},
    ),
)

FOLD_KEYED_FROM = OpSpec(
    name="fold_keyed_from",
    family="group",
    meaning="`fold_from` of each key; keys without new values stay as they are",
    inputs=(_STATE, _NEW),
    args=FOLD_KEYED.args,
    result=_of_new(FOLD_KEYED.result),
    monotone=False,
    order=OrderRule.LOSES,
    partition=OnKey(),
    internal=True,
    example=Example(
        "a -> persist() -> fold_keyed(0, lambda acc, v: acc + v, commutative=True) -> out",
        ({"a": [["x", 1], ["y", 2]]}, {"a": [["x", 3]]}),
        ({"out": [["x", 1], ["y", 2]]}, {"out": [["x", 4], ["y", 2]]}),
        _PAIRS,
    ),
)

REDUCE_KEYED_FROM = OpSpec(
    name="reduce_keyed_from",
    family="group",
    meaning="`reduce_from` of each key; keys without new values stay as they are",
    inputs=(_STATE, _NEW),
    args=REDUCE_KEYED.args,
    result=_of_new(REDUCE_KEYED.result),
    monotone=False,
    order=OrderRule.LOSES,
    partition=OnKey(),
    internal=True,
    example=Example(
        "a -> persist() -> reduce_keyed(lambda x, y: max(x, y), commutative=True) -> out",
        ({"a": [["x", 1], ["y", 2]]}, {"a": [["x", 3]]}),
        ({"out": [["x", 1], ["y", 2]]}, {"out": [["x", 3], ["y", 2]]}),
        _PAIRS,
    ),
)

INTERNAL: Mapping[str, OpSpec] = MappingProxyType(
    {op.name: op for op in (FOLD_FROM, REDUCE_FROM, FOLD_KEYED_FROM, REDUCE_KEYED_FROM)}
)
"""The internal operators by their names."""


def operator(name: str) -> OpSpec:
    """The operator called `name`, an internal one too; raises `ValueError` where there is none."""
    found = INTERNAL.get(name) or lookup(name)
    if found is None:
        raise ValueError(f"there is no operator {name!r}")
    return found
