"""Lineage through functions, judged by the `udf` vectors."""

from __future__ import annotations

import json
import linecache
from pathlib import Path
from typing import Any

import pytest

from hydro_core.functions.field_map import field_map
from hydro_core.functions.read import read_callable
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import FieldPath, ItemType, at, leaves


def _vectors() -> list[Any]:
    for folder in Path(__file__).resolve().parents:
        found = sorted((folder / "shared" / "vectors" / "udf").glob("*.json"))
        if found:
            return [json.loads(path.read_text()) for path in found]
    return []


VECTORS = _vectors()


def unknown(*_: object) -> object:
    return 0


def live(text: str, **names: object) -> Any:
    """The function of a text, with a source that can be read."""
    file = f"<vector {hash(text)}>"
    whole = text if text.startswith("def") else f"f = {text}\n"
    linecache.cache[file] = (len(whole), None, whole.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"g": print, "log": print, "touch": print, "LIMIT": object(), **names}
    exec(compile(whole, file, "exec"), scope)
    return scope["f"]


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


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["name"])
def test_vectors(vector: Any) -> None:
    item = parse_ddl(vector["params"])
    found = field_map(read_callable(live(vector["function"])), (item,), use=vector["op"])
    said = {(out, f.path) for out, fields in found.equal.items() for f in fields}
    expected, may = _said(vector, "expect", item), _said(vector, "may", item)
    assert said <= expected | may, "unsound"
    assert said >= expected
