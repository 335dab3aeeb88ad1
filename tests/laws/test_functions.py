"""What is said of functions is true: random functions are called, and compared with what was said.

- A field that is said to equal an input field is that field, in every item that comes out.
- A result that has a type is of the type.
- A function never changes the item that it is given.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from hydro_core.errors import TypeProblem
from hydro_core.functions.call import call_item
from hydro_core.functions.lineage import FieldMap, ResultUse, field_map
from hydro_core.functions.result_type import result_type
from hydro_core.functions.tree import Fn
from hydro_core.types.item import FieldPath
from hydro_core.types.values import canonical, conform
from tests.support.functions import live
from tests.support.random_functions import (
    HELPERS,
    ITEM,
    random_function,
    random_item,
    scope_of_helpers,
)

USES: tuple[ResultUse, ...] = ("item", "optional", "elements")
FUNCTIONS = 60
ITEMS = 4


@pytest.mark.parametrize("seed", range(10))
def test_random_functions(seed: int) -> None:
    said = sum(_check(*found) for found in _functions(Random(seed)))
    assert said > 50, "too little was said to be a test"


def _functions(random: Random) -> Iterator[tuple[str, Fn, Random]]:
    count = 0
    while count < FUNCTIONS:
        source = random_function(random)
        if "while" in source or _may_run_forever(source):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fn = live(HELPERS + source, **scope_of_helpers())
        except SyntaxError:
            continue
        count += 1
        yield source, fn, random


def _may_run_forever(source: str) -> bool:
    return "for" in source and ("append" in source or "touch" in source or "again" in source)


def _check(source: str, fn: Fn, random: Random) -> int:
    maps = {use: field_map(fn, (ITEM,), use=use) for use in USES}
    try:
        item_type = result_type(fn, (ITEM,)) if fn.pure else None
    except TypeProblem:
        item_type = None
    said = 0
    for number in range(ITEMS):
        item = random_item(random, 100 * number)
        before = copy.deepcopy(item)
        try:
            result = call_item(fn, item)
        except Exception:  # noqa: BLE001 - most random functions fail on most items
            continue
        assert canonical(item) == canonical(before), source
        if item_type is not None:
            conform(result, item_type)
        for use, found in maps.items():
            for out in _items(result, use):
                said += _compare(source, found, before, out)
    return said


def _items(result: Any, use: ResultUse) -> list[Any]:
    if use == "elements":
        return list(result) if isinstance(result, list | tuple) else []
    return [] if use == "optional" and result is None else [result]


def _compare(source: str, found: FieldMap, item: Any, out: Any) -> int:
    for path, fields in found.equal.items():
        for field in fields:
            claim = f"{path} of {out} is {field.path} of {item} in\n{source}"
            assert canonical(_at(out, path)) == canonical(_at(item, field.path)), claim
    return sum(map(len, found.equal.values()))


def _at(value: Any, path: FieldPath) -> Any:
    for step in path:
        if value is None:
            return None
        value = value[int(step)] if isinstance(value, tuple) else value[step]
    return value
