"""JSON lines: an object a line, and the lines that are none. A line ends at LF alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from hydro_core.files.row_batch import NOT_UTF8, ROWS, JsonRows, Reject, TextLine
from hydro_core.files.unreadable import (
    UNREADABLE,
    is_utf8,
    opened_text,
    refuse_file,
    refuse_untyped,
)
from hydro_core.storage.remote import DataPlace
from hydro_core.types.common import merge
from hydro_core.types.item import ItemType
from hydro_core.types.json import infer, parse_json
from hydro_core.types.values import ValueProblem

_CURE = "each line is one JSON object"


def json_rows(file: DataPlace, *, tolerant: bool = False) -> Iterator[JsonRows]:
    """The rows of a file, piece by piece; if `tolerant`, with the lines that are none."""
    try:
        with opened_text(file) as lines:
            rows = (
                (TextLine.of(number, line), *_object_of(line))
                for number, line in enumerate(lines, 1)
                if not line.isspace()
            )
            while piece := list(islice(rows, ROWS)):
                told, objects, rejects = zip(*piece, strict=True)
                wrong = {place: reject for place, reject in enumerate(rejects) if reject}
                if wrong and not tolerant:
                    first = min(wrong)
                    wrong[first].refuse(file, told[first].number)
                names = list(dict.fromkeys(name for row in objects for name in row))
                yield JsonRows(objects, names, {n: one.reason for n, one in wrong.items()}, told)
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


def _object_of(line: bytes) -> tuple[dict[str, Any], Reject | None]:
    """The object that a line is, or why it is none."""
    if not is_utf8(line):
        return {}, NOT_UTF8
    try:
        row = parse_json(line.decode())
    except ValueProblem as problem:
        return {}, Reject(f"is not JSON: {problem}", _CURE)
    return (row, None) if isinstance(row, dict) else ({}, Reject("is no JSON object", _CURE))
