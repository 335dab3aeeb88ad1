"""Why a function fails on an item, in Python's own words.

A column knows only of which kind Python's error is. The item stands in the failure, so that Python
can be asked: what it says here is what the reference says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.functions.evaluate import call_accumulate, call_item
from hydro_core.functions.failed_call import kind_of
from hydro_core.functions.fn import Fn
from hydro_core.ir.graph import Node
from hydro_core.types.item import ItemType, Row, Tuple
from hydro_core.types.json import from_json
from hydro_core.types.values import ValueProblem

_VALUE = "value"


def retold(
    fn: Fn, node: Node, typed: Typed, items: Mapping[str, Any]
) -> tuple[str, str, tuple[Any, ...]] | None:
    """The kind of the exception, its text and the items; None where Python does not fail.

    Args:
        fn: the function that failed in a column.
        node: the operator whose argument it is.
        typed: the types of the program.
        items: what it was called with, as Spark's JSON: an item, or an accumulator and an item.
    """
    values = [plain(value) for value in items.values()]
    for arguments in _readings(values, node, typed):
        try:
            _call(fn, node, arguments)
        except Exception as problem:  # noqa: BLE001 - a user's function may raise anything
            return kind_of(problem), str(problem), arguments
        return None
    return None


def _call(fn: Fn, node: Node, arguments: tuple[Any, ...]) -> None:
    of = next((a for a in node.op.args if node.args.get(a.name) is fn), None)
    if len(arguments) == 2:
        call_accumulate(fn, *arguments)
    elif of is None or not of.leading:
        call_item(fn, *arguments)
    elif "init" in node.args:
        # What Spark adds up has no accumulator: the start stands for it.
        call_accumulate(fn, node.args["init"], *arguments)


def _readings(values: Sequence[Any], node: Node, typed: Typed) -> Iterator[tuple[Any, ...]]:
    """The values as items of the types that they may have."""
    given = [typed.types[endpoint].item for endpoint in node.inputs]
    made = [typed.of(node.id).item] if node.op.outputs != "none" else []
    kinds = [_whole_or_value(given)]
    if len(values) == 2:
        kinds = [_whole_or_value(made), *kinds]
    if len(values) > 2:
        return
    for types in product(*kinds):
        try:
            yield tuple(from_json(v, t) for v, t in zip(values, types, strict=True))
        except ValueProblem:
            continue


def _whole_or_value(types: Iterable[ItemType]) -> list[ItemType]:
    """The types, and what stands beside the key in those of keyed streams."""
    found: list[ItemType] = []
    for item in types:
        match item:
            case Tuple((_, value)):
                found += [item, value]
            case Row() if (column := item.column(_VALUE)) is not None:
                found += [item, column]
            case _:
                found.append(item)
    return found


def plain(value: Any) -> Any:
    """Spark's JSON of a tuple, `{"_1": …}`, as JSON of ours: `[…]`."""
    match value:
        case dict() if value and list(value) == [f"_{i}" for i in range(1, len(value) + 1)]:
            return [plain(v) for v in value.values()]
        case dict():
            return {name: plain(v) for name, v in value.items()}
        case list():
            return [plain(v) for v in value]
        case _:
            return value
