"""Lineage through functions, judged by the `udf` vectors."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hydro_core.functions.lineage import FieldMap, ResultUse, field_map
from hydro_core.functions.read import read_callable
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import UNKNOWN, FieldPath, ItemType, at, leaves
from tests.support.functions import live, text
from tests.unit.shared import or_skipped


def _vectors() -> list[Any]:
    for folder in Path(__file__).resolve().parents:
        found = sorted((folder / "shared" / "vectors" / "udf").glob("*.json"))
        if found:
            return [json.loads(path.read_text()) for path in found]
    return []


VECTORS = _vectors()


def _path(text: str) -> FieldPath:
    return tuple(text.split(".")) if text else ()


def _said(vector: Any, key: str, item: ItemType) -> set[tuple[FieldPath, FieldPath]]:
    """The pairs of leaves, output and input, that an `expect` or `may` names."""
    pairs = set()
    for out, inputs in vector.get(key, {}).items():
        for path in map(_path, inputs):
            for leaf, _ in leaves(at(item, path), path):  # type: ignore[arg-type]
                pairs.add(((*_path(out), *leaf[len(path) :]), leaf))
    return pairs


@pytest.mark.parametrize("vector", or_skipped(VECTORS), ids=lambda v: v["name"])
def test_vectors(vector: Any) -> None:
    item = parse_ddl(vector["params"])
    unknown = dict.fromkeys(("g", "log", "touch"), partial(print))
    fn = live(vector["function"], LIMIT=object(), **unknown)
    found = field_map(fn, (item,), use=USES[vector["op"]])
    said = {(out, f.path) for out, fields in found.equal.items() for f in fields}
    expected, may = _said(vector, "expect", item), _said(vector, "may", item)
    assert said <= expected | may, "unsound"
    assert said >= expected


def _equal(found: FieldMap) -> dict[str, list[str]]:
    return {
        ".".join(out): sorted(".".join(f.path) for f in fields)
        for out, fields in found.equal.items()
    }


def _computed(found: FieldMap) -> dict[str, list[str]]:
    return {
        ".".join(out): sorted(f"{f.input}:{'.'.join(f.path)}" for f in fields)
        for out, fields in found.computed.items()
    }


USES: dict[str, ResultUse] = {"map": "item", "filter_map": "optional", "flat_map": "elements"}
TRAPS = [
    # a list that is made here and changed afterwards
    (
        "elements",
        "    out = [(t[0], t[1])]\n    out.append((t[1], t[0]))\n    return out\n",
        {},
    ),
    (
        "elements",
        "    out = [(t[0], t[1])]\n    x = out\n    x.append((t[1], t[0]))\n    return out\n",
        {},
    ),
    (
        "elements",
        "    out = [(t[0], t[1])]\n    pair = (out, 1)\n    touch(pair)\n    return out\n",
        {},
    ),
    ("elements", "    out = [(t[0], t[1])]\n    out += [(t[1], t[0])]\n    return out\n", {}),
    ("elements", "    out = [(t[0], 1)]\n    out[0] = (t[1], 1)\n    return out\n", {}),
    ("elements", "    out = [(t[0], 1)]\n    del out[0]\n    return out\n", {}),
    (
        "elements",
        "    out = [(t[0], 1)]\n    def g(): out.append((t[1], 1))\n    g()\n    return out\n",
        {},
    ),
    # a name that is bound in one case only
    ("item", "    u = t[1]\n    t[0] > 5 and (u := t[0])\n    return (u,)\n", {}),
    ("item", "    u = t[1]\n    x = (u := t[0]) if t[0] else 1\n    return (u,)\n", {}),
    ("item", "    u = t[1]\n    x = 1 < t[0] < (u := t[0])\n    return (u,)\n", {}),
    ("item", "    u = t[1]\n    x = [1 for y in t[2] if (u := t[0])]\n    return (u,)\n", {}),
    ("item", "    u = t[1]\n    for u in t[2]:\n        pass\n    return (u,)\n", {}),
    ("item", "    u = t[1]\n    while t[0] < u:\n        u = u - 1\n    return (u,)\n", {}),
    (
        "item",
        "    u = t[1]\n    try:\n        u = t[0]\n    except E:\n        pass\n    return (u,)\n",
        {},
    ),
    (
        "item",
        "    u = t[1]\n    match t:\n        case (1, u, _):\n            pass\n    return (u,)\n",
        {"0": ["1"]},
    ),
    (
        "item",
        "    u = t[1]\n    match t[0]:\n        case u:\n            pass\n    return (u,)\n",
        {"0": ["0"]},
    ),
    # what a function within sees
    (
        "item",
        "    u = t[1]\n    def g():\n        return u\n    u = t[0]\n    return (g(),)\n",
        {"0": ["0"]},
    ),
    (
        "item",
        "    u = t[1]\n    def g(u):\n        return u\n    return (g(t[0]), u)\n",
        {"0": ["0"], "1": ["1"]},
    ),
    (
        "item",
        "    u = t[1]\n    def g(): return u\n    def h(u): return g()\n    return (h(t[0]),)\n",
        {},
    ),
    ("item", "    f = lambda u: (u, t[1])\n    return f(t[0])\n", {"0": ["0"], "1": ["1"]}),
    ("item", "    return (lambda t: t[0])(t[2]), t[0]\n", {"1": ["0"]}),
    ("item", "    return [t for t in t[2]], t[0]\n", {"1": ["0"]}),
    # arrays that something may have changed, in whatever order
    ("item", "    x = (t[2], t[0])\n    touch(x)\n    return (t[2], t[0])\n", {"1": ["0"]}),
    (
        "item",
        "    x = t[2]\n    y = (x, 1)\n    y[0].append(1)\n    return x, t[0]\n",
        {"1": ["0"]},
    ),
    ("item", "    sorted([t[2]], key=touch)\n    return t[2], t[0]\n", {"1": ["0"]}),
    ("item", "    keep(t)\n    return t\n", {"0": ["0"], "1": ["1"]}),
    ("item", "    x = t[2]\n    x += [1]\n    return t[2], t[0]\n", {"1": ["0"]}),
    ("item", "    x = t[2]\n    x *= 2\n    return t[2], t[0]\n", {"1": ["0"]}),
    ("item", "    x = t[0]\n    x += 1\n    return t[2], t[0]\n", {"0": ["2"], "1": ["0"]}),
    ("item", "    [x.append(1) for x in [t[2]]]\n    return t[2], t[0]\n", {"1": ["0"]}),
    # None
    ("item", "    if t[0]:\n        return t\n", {}),
    ("optional", "    if t[0]:\n        return t\n", {"0": ["0"], "1": ["1"], "2": ["2"]}),
    ("optional", "    return (t[0], None if t[0] else t[1])\n", {"0": ["0"]}),
    ("item", "    x = t if t[0] else None\n    return (x[0], x)\n", {"0": ["0"]}),
    ("elements", "    return [t[0], None]\n", {}),
    ("elements", "    return [(t[0], 1)] if t[1] else []\n", {"0": ["0"]}),
    ("elements", "    return [(t[0], 1)] + [(t[0], x) for x in t[2]]\n", {"0": ["0"]}),
    ("elements", "    return t\n", {}),
    ("elements", "    return t[2]\n", {}),
    # rows and tuples
    (
        "item",
        "    r = {'a': t[0], 'b': t[1]}\n    return {**r, 'a': 1, 'c': r['b']}\n",
        {"b": ["1"], "c": ["1"]},
    ),
    ("item", "    return {'a': t[0], 'a': t[1]}\n", {"a": ["1"]}),
    ("item", "    return {'a': t[0], **touch(t)}\n", {}),
    ("item", "    return t[:2] + (t[0],)\n", {"0": ["0"], "1": ["1"], "2": ["0"]}),
    ("item", "    return t[t[0]], t[0]\n", {"1": ["0"]}),
    ("item", "    return t[True], t[-1]\n", {"0": ["1"], "1": ["2"]}),
    ("item", "    a, *b, c = t\n    return (c, b[0], a)\n", {"0": ["2"], "1": ["1"], "2": ["0"]}),
    ("item", "    a, b = t\n    return (a, b)\n", {}),
    ("item", "    return tuple(t), list(t)\n", {"0.0": ["0"], "0.1": ["1"], "0.2": ["2"]}),
    ("item", "    return max(t[0], t[1]), t[0] or t[0]\n", {"1": ["0"]}),
    ("item", "    return (t, t)[0]\n", {"0": ["0"], "1": ["1"], "2": ["2"]}),
]


@pytest.mark.parametrize(("use", "body", "expected"), TRAPS)
def test_traps(use: Any, body: str, expected: dict[str, list[str]]) -> None:
    unknown = dict.fromkeys(("touch", "keep"), partial(print))
    fn = live(f"def f(t):\n{body}", E=ValueError, **unknown)
    assert _equal(field_map(fn, (parse_ddl("(long, long, array<long>)"),), use=use)) == expected


def test_what_is_computed() -> None:
    pair = parse_ddl("(long, struct<a: long, b: long>)")
    found = field_map(text("lambda k, r: (k + r.a, 1, r if k else None, r.b)"), (pair,))
    assert _computed(found) == {"0": ["0:0", "0:1.a"], "1": [], "2": ["0:0", "0:1.a", "0:1.b"]}
    assert _equal(found) == {"3": ["1.b"]}


def test_several_arguments() -> None:
    fn = text("lambda acc, k, v: (acc[0], k, acc[1] + v)")
    found = field_map(fn, (parse_ddl("(long, long)"), parse_ddl("(long, long)")))
    assert {out: sorted(f) for out, f in found.equal.items()} == {
        ("0",): [(0, ("0",))],
        ("1",): [(1, ("0",))],
    }
    assert _computed(found) == {"2": ["0:1", "1:1"]}


def test_what_cannot_be_read_says_nothing() -> None:
    exec("f = lambda t: t", scope := {})  # type: ignore[var-annotated]
    found = field_map(read_callable(scope["f"]), (parse_ddl("(long, long)"),))
    assert found.equal == {}
    assert _computed(found) == {"": ["0:0", "0:1"]}
    unfit = field_map(text("lambda a, b: a"), (parse_ddl("long"),))
    assert unfit.equal == {}


def test_of_an_unknown_item_the_whole_is_known() -> None:
    assert _equal(field_map(text("lambda x: x"), (UNKNOWN,))) == {"": [""]}
    assert _equal(field_map(text("lambda x: (x, x[0])"), (UNKNOWN,))) == {"0": [""]}


def test_a_declared_result_of_another_type_is_not_equal() -> None:
    fn = live("def f(t) -> float:\n    return t\n")
    assert field_map(fn, (parse_ddl("long"),)).equal == {}
    assert _equal(field_map(fn, (parse_ddl("double"),))) == {"": [""]}
