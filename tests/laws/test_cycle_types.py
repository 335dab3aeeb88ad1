"""A stream that feeds itself has the type of its items: random cycles run on the reference.

A cycle is refused, with a type to give, or every item that comes out is one of its type; where the
type says that there is nothing but null, there is nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

import pytest

from hydro_core.compile import compile_text
from hydro_core.engines import Options
from hydro_core.errors import HydroError, ProgramError
from hydro_core.lang.resolve import parse
from hydro_core.running import run_json
from hydro_core.types.item import Array, ItemType, Row, Tuple, Unknown

# What a cycle makes of the new value x and of y, which it made before, or None.
STEPS = {
    "count": "x + (0 if y is None else y)",
    "halved": "x if y is None else y / 2 + x",
    "or": "(y or 0) + x",
    "last": "y",
    "first": "x if y is None else y",
    "floats": "0.5 if y is None else y",
    "decimals": "Decimal('1.5') if y is None else y + 1",
    "array": "[x] if y is None else (y + [x])[-3:]",
    "array of none": "[None] if y is None else [*y, x][-3:]",
    "text": "'' if y is None else y + str(x)",
    "pair": "(x, 1.5) if y is None else (y[0] + x, y[1] + 1)",
    "nested": "((x, None), []) if y is None else ((y[0][0] + x, y[0][0]), [y[0][0]])",
    "row": "{'n': x} if y is None else {**y, 'n': y.n + x}",
    "row by row": "{'n': x, 'm': None if y is None else y.n}",
    "get": "{'n': x, 'm': 0 if y is None else y.get('n', 0.5)}",
    "bounded": "max(x, y or 0)",
    "none": "None if x > 2 else y",
    "smallest": "x if y is None else min(y, x)",
    "test": "y is None or not y",
    "comprehension": "[x] if y is None else [z + 1 for z in y]",
    "unpacked": "(x, 0) if y is None else (lambda a, b: (b, a))(y[0], y[1])",
    "grows": "[y]",
    "grows wide": "(y, y)",
    "unlike": "x if y is None else str(y)",
    "unlike row": "{'a': x} if y is None else {'b': x}",
}
# How the values of `s` one tick ago meet those of `a`: STEP of x and y, made of what flows.
CYCLES = {
    "left join": """
        j = a -> join(right=p, how="left")
        j -> map(lambda k, v: (k, (lambda x, y: STEP)(v[0], v[1]))) -> s
    """,
    "outer join": """
        j = a -> join(right=p, how="outer")
        j -> map(lambda k, v: (k, (lambda x, y: STEP)(v[0] or 0, v[1]))) -> s
    """,
    "right join": """
        j = p -> join(right=a, how="right")
        j -> map(lambda k, v: (k, (lambda x, y: STEP)(v[1] or 0, v[0]))) -> s
    """,
    "rows": """
        left = a -> map(lambda k, v: {"k": k, "v": v})
        right = p -> map(lambda k, v: {"k": k, "w": v})
        j = left -> join(right=right, on="k", how="left")
        j -> select("k", v=lambda r: (lambda x, y: STEP)(r.v, r.w)) -> map(lambda k, v: (k, v)) -> s
    """,
    "rows of the cycle": """
        left = a -> map(lambda k, v: {"k": k, "v": v})
        right = p -> map(lambda k, v: {"k": k, "v": v})
        j = left -> join(right=right, on="k", how="left", suffix="_r")
        t = j -> select("k", v=lambda r: (lambda x, y: STEP)(r.v, r.v_r))
        t -> map(lambda k, v: (k, v)) -> s
    """,
    "union": """
        u = a -> map(lambda k, v: (k, (lambda x, y: STEP)(v, None))) -> union(again)
        again = p -> map(lambda k, v: (k, (lambda x, y: STEP)(1, v)))
        u -> unique() -> s
    """,
    "fold": """
        u = a -> map(lambda k, v: (k, (lambda x, y: STEP)(v, None))) -> union(p)
        u -> fold_keyed(None, lambda y, v: (lambda x, y: STEP)(1, y), commutative=True) -> s
    """,
    "single": """
        one = p -> map(lambda k, v: v) -> fold(None, lambda y, v: v, commutative=True)
        c = a -> cross_singleton(single=one)
        c -> map(lambda kv, y: (kv[0], (lambda x, y: STEP)(kv[1], y))) -> s
    """,
    "aggregate": """
        u = a -> join(right=p, how="left")
        rows = u -> map(lambda k, v: {"k": k, "v": (lambda x, y: STEP)(v[0], v[1])})
        rows -> aggregate(by="k", v=max("v")) -> map(lambda k, v: (k, v)) -> s
    """,
    "latest": """
        u = a -> join(right=p, how="left")
        rows = u -> map(lambda k, v: {"k": k, "v": (lambda x, y: STEP)(v[0], v[1])})
        rows -> latest(by="k", order="v") -> map(lambda k, v: (k, v)) -> s
    """,
    "sorted": """
        u = a -> join(right=p, how="left") -> sort()
        u -> scan_keyed(None, lambda y, v: (lambda x, y: STEP)(v[0], y)) -> s
    """,
}
BACK = ("prev()", "old() -> unique() -> sort() -> unique_keyed()", "prev() -> prev()")
TICKS = [{"a": [["k", 1], ["l", 2]]}, {"a": [["k", 3]]}, {}, {"a": [["k", 2], ["m", 1]]}]


def _programs() -> Iterator[tuple[str, str]]:
    random = Random(5)
    for (cycle, text), (step, body) in product(CYCLES.items(), STEPS.items()):
        lines = ['a = source("(string, long)")', f"p = s -> {random.choice(BACK)}"]
        lines += [line.strip() for line in text.replace("STEP", body).strip().splitlines()]
        yield f"{cycle}, {step}", "\n".join([*lines, "s = identity()", "s -> out"])


def test_the_type_of_a_cycle_is_that_of_its_items() -> None:
    counts = Counter[str]()
    for name, text in _programs():
        try:
            found = compile_text(text).typed.outputs["out"].item
        except ProgramError as error:
            if not all(d.code == "type" and d.help for d in error.diagnostics):
                pytest.fail(f"{name}: {error}\n{text}")
            counts["refused"] += 1
            counts[f"refused {name.split(', ')[1]}"] += 1
            continue
        try:
            ticks = run_json(parse(text), {}, TICKS, Options(optimized=False))
        except HydroError as error:
            pytest.fail(f"{name}: {error}\n{text}")
        items = [item for tick in ticks for item in tick["out"]]
        wrong = [item for item in items if not _is_json_of(item, found)]
        assert not wrong, f"{name}: {wrong} are not {found}\n{text}"
        counts["compared"] += len(items)
        counts["programs"] += bool(items)
    refused = {
        k.removeprefix("refused ") for k, n in counts.items() if k[:8] == "refused " and n > 3
    }
    assert refused == {"grows", "grows wide", "unlike", "unlike row"}, counts
    assert counts["programs"] > 200, counts
    assert counts["compared"] > 1000, counts


def _is_json_of(item: Any, of: ItemType) -> bool:
    """Whether a printed item is one of the type: nothing else than null where that is all."""
    match item, of:
        case None, _:
            return True
        case _, Unknown():
            return False
        case list(), Tuple(fields):
            return len(item) == len(fields) and all(map(_is_json_of, item, fields))
        case list(), Array(element):
            return all(_is_json_of(x, element) for x in item)
        case dict(), Row(fields):
            return list(item) == [f.name for f in fields] and all(
                _is_json_of(item[f.name], f.type) for f in fields
            )
        case _:
            kinds = {"long": int, "double": float, "string": str, "boolean": bool}
            return type(item) is kinds.get(str(of), str)
