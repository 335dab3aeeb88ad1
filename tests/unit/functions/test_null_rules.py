"""Any entry may be used under the strict rule: a null among its operands gives null."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hydro_core.functions.call import call_item
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.library.operators import OPERATORS
from hydro_core.functions.library.registry import ALL_METHODS, FUNCTIONS, operation
from hydro_core.functions.result_type import result_type
from hydro_core.functions.tree import Const, Expr, Fn, Op, Param, Part, children
from hydro_core.types.values import conform
from tests.support.calls import ITEM, VALUES, uses
from tests.support.strict import strictly

USES = {op.name: op for op in uses()}
NO_ITEMS = {
    *("dict", "set", "timedelta", "timezone", "math", "re", "re.search", "re.match"),
    *("re.fullmatch", "re.finditer", "re.sub", ".items", ".values", ".difference", ".utcoffset"),
    *(".symmetric_difference", ".union", ".intersection", ".astimezone"),
}
"""What gives no item, or takes what this row has not; it is typed, and made strict, alike."""


def outcome(tree: Expr, row: dict[str, Any]) -> Any:
    """What a function gives for a row, or how it fails."""
    try:
        return call_item(function_of(tree, ("r",)), conform(row, ITEM))
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as problem:
        return type(problem)


def columns(tree: Expr) -> Iterator[str]:
    """The columns that are read."""
    match tree:
        case Part(Param("r"), str() as name):
            yield name
        case Param("r"):
            yield "r"
        case _:
            for child in children(tree):
                yield from columns(child)


def test_there_is_a_use_of_every_entry() -> None:
    every = {*OPERATORS, *FUNCTIONS, *(f".{name}" for name in ALL_METHODS)}
    assert {name for name in every - USES.keys() if not name.startswith("(")} == NO_ITEMS


@pytest.mark.parametrize("name", USES)
def test_a_strict_use_gives_null_for_any_null_and_else_the_same(name: str) -> None:
    plain, strict = USES[name], strictly(USES[name])
    assert repr(outcome(strict, VALUES)) == repr(outcome(plain, VALUES))
    for column in set(columns(plain)) - {"r"}:
        row = {**VALUES, column: None}
        # an operand that fails has no value, null or other
        if not any(isinstance(outcome(part, row), type) for part in plain.operands):
            assert outcome(strict, row) is None, column


@pytest.mark.parametrize("name", [name for name in USES if operation(name) is not None])
def test_an_entry_has_the_null_rule_that_it_says(name: str) -> None:
    entry, op = operation(name), USES[name]
    assert entry is not None
    nulls = outcome(op, {**VALUES, **dict.fromkeys(columns(op))})
    if entry.nulls == "python":
        assert isinstance(nulls, type), "it fails"
    elif entry.nulls == "strict":
        assert nulls is None


def test_operands_are_computed_once() -> None:
    asked: list[Any] = []
    tree = strictly(Op("*", (Op("len", (Param("x"),)), Const(2))))
    made = function_of(tree, ("x",))

    class Counted(str):
        __slots__ = ()

        def __len__(self) -> int:
            asked.append(self)
            return 3

    assert (made.call(Counted("abc")), len(asked)) == (6, 1)
    assert function_of(strictly(Op("+", (tree, tree))), ("x",)).call("ab") == 8


def test_a_strict_use_has_the_type_of_the_operation() -> None:
    for op in USES.values():
        plain, strict = (Fn("f", "f", ("r",), len, tree) for tree in (op, strictly(op)))
        assert result_type(strict, (ITEM,)) == result_type(plain, (ITEM,)), op.name
