"""A function that is made from its tree does what the function does that the tree was read from."""

from __future__ import annotations

import pickle
import warnings
from random import Random

import pytest

from hydro_core.functions.call import call_item
from hydro_core.functions.forms import stored_form
from hydro_core.functions.from_tree import function_of, is_complete, text_of
from hydro_core.types.values import canonical
from tests.support.functions import live
from tests.support.random_functions import (
    HELPERS,
    ITEM,
    random_function,
    random_item,
    scope_of_helpers,
)

FUNCTIONS = 150
ITEMS = 4


@pytest.mark.parametrize("seed", range(6))
def test_random_functions(seed: int) -> None:
    random = Random(f"from tree {seed}")
    compared = 0
    for _ in range(FUNCTIONS):
        source = random_function(random)
        if "while" in source or "for" in source:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fn = live(HELPERS + source, **scope_of_helpers())
        except SyntaxError:
            continue
        if fn.tree is None or not is_complete(fn.tree):
            continue
        made = pickle.loads(pickle.dumps(function_of(fn.tree, fn.params)))
        assert stored_form(made, (ITEM,)) == stored_form(fn, (ITEM,)), source
        assert text_of(made.tree, made.params) == made.source
        for number in range(ITEMS):
            item = random_item(random, 100 * number)
            try:
                wanted = call_item(fn, item)
            except Exception:  # noqa: BLE001 - most random functions fail on most items
                continue
            assert canonical(call_item(made, item)) == canonical(wanted), source
            compared += 1
    assert compared > 20, "too little was compared to be a test"
