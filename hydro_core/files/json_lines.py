"""JSON lines: an object a line, and what is wrong with those that are none."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from hydro_core.files.row_batch import ROWS, JsonRows, TextLine
from hydro_core.files.unreadable import (
    IS_NOT_UTF8,
    UNREADABLE,
    is_utf8,
    refuse,
    refuse_file,
    refuse_not_utf8,
    refuse_untyped,
    text_of,
)
from hydro_core.storage.remote import DataPlace
from hydro_core.types.common import merge
from hydro_core.types.item import ItemType
from hydro_core.types.json import infer, parse_json
from hydro_core.types.values import ValueProblem


def json_rows(file: DataPlace, *, tolerant: bool = False) -> Iterator[JsonRows]:
    """The rows of a file, piece by piece; if `tolerant`, with the lines that are none."""
    try:
        with text_of(file, strict=False) as lines:
            rows = (
                (TextLine(number, line), *_object_of(file, number, line, tolerant))
                for number, line in enumerate(lines, 1)
                if line.strip()
            )
            while piece := list(islice(rows, ROWS)):
                told, objects, reasons = zip(*piece, strict=True)
                names = list(dict.fromkeys(name for row in objects for name in row))
                wrong = {place: why for place, why in enumerate(reasons) if why}
                yield JsonRows(objects, names, wrong, told)
    except UNREADABLE as problem:
        refuse_file(file, problem)


def surveyed_json(file: DataPlace) -> tuple[ItemType, list[str]]:
    """What the rows of a file have in common, and all of their columns."""
    names = dict[str, None]()
    types: list[ItemType] = []
    try:
        for piece in json_rows(file):
            names |= dict.fromkeys(piece.names)
            types.append(infer(piece.objects))
        return merge(types), list(names)
    except ValueProblem as problem:
        refuse_untyped(file, problem)


def _object_of(
    file: DataPlace, number: int, line: str, tolerant: bool
) -> tuple[dict[str, Any], str]:
    """The object that a line is, or why it is none."""
    if not is_utf8(line):
        if not tolerant:
            refuse_not_utf8(file, number)
        return {}, IS_NOT_UTF8
    try:
        row = parse_json(line)
        why = "" if isinstance(row, dict) else "is no JSON object"
    except ValueProblem as problem:
        why = f"is not JSON: {problem}"
    if not why:
        return row, ""
    if not tolerant:
        refuse(f"`{file}`, line {number} {why}", "each line is one JSON object")
    return {}, f"it {why}"
