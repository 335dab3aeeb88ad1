"""Ticks of data as a table that reads well on a page: what came in, and what came out.

```
tick | payments         => totals
     | user     amount  => user     total
0    | ann           5  => ann          5
     | bob           2  => bob          2
1    | ann           1  => ann          6
```

A tick goes on until the next number. Columns are two spaces apart. A value that is no text is
JSON; a text stands without quotes where that cannot be taken for something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydro_core.types.item import ItemType, Row, Scalar, Tuple, is_numeric

Batches = list[Mapping[str, list[Any]]]
_TEXTS = ("string", "date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class Column:
    """A stream in a table: its name, whether it is an output, and the type of its items."""

    name: str
    out: bool
    of: ItemType

    @property
    def mark(self) -> str:
        return "=>" if self.out else "|"

    @property
    def fields(self) -> list[tuple[str, ItemType]]:
        """What has a column of its own."""
        match self.of:
            case Row(fields):
                return [(field.name, field.type) for field in fields]
            case Tuple(items):
                return [(f"_{i}", item) for i, item in enumerate(items, 1)]
            case item:
                return [("item", item)]


def names_of(text: str) -> list[tuple[str, bool]]:
    """The streams of a table, each with whether it is an output."""
    return [(cells[0], out) for out, cells in _groups(text.splitlines()[0])]


def _groups(line: str) -> list[tuple[bool, list[str]]]:
    """What stands behind each mark of a line, cut into cells."""
    parts = re.split(r"(?<=\s)(\||=>)(?=\s|$)", line)
    marks, texts = parts[1::2], parts[2::2]
    return [
        (mark == "=>", re.split(r"\s{2,}", text.strip()) if text.strip() else [])
        for mark, text in zip(marks, texts, strict=True)
    ]


def read(text: str, streams: Sequence[Column]) -> Batches:
    """The batches of the streams, tick by tick; they are the first of the table."""
    ticks: list[dict[str, list[Any]]] = []
    for line in text.splitlines()[2:]:
        number = re.match(r"\d+", line)
        if number:
            assert int(number[0]) == len(ticks), f"tick {number[0]} follows {len(ticks) - 1}"
            ticks.append({stream.name: [] for stream in streams})
        for stream, (_, cells) in zip(streams, _groups(line), strict=False):
            if cells:
                ticks[-1][stream.name].append(_item(stream, cells))
    return list(ticks)


def _item(stream: Column, cells: Sequence[str]) -> Any:
    fields = stream.fields
    if len(cells) != len(fields):
        cells = " ".join(cells).split()
    assert len(cells) == len(fields), f"{stream.name} has {len(fields)} columns: {cells}"
    values = [_value(cell, of) for cell, (_, of) in zip(cells, fields, strict=True)]
    match stream.of:
        case Row():
            return dict(zip([name for name, _ in fields], values, strict=True))
        case Tuple():
            return values
        case _:
            return values[0]


def _value(cell: str, of: ItemType) -> Any:
    if not _is_text(of) or cell == "null" or cell.startswith('"'):
        return json.loads(cell)
    return cell


def _is_text(of: ItemType) -> bool:
    return str(of).startswith("decimal") or (isinstance(of, Scalar) and of.name in _TEXTS)


def written(streams: Sequence[Column], ticks: Batches) -> str:
    """The table of these ticks."""
    groups = [_aligned(stream, ticks) for stream in streams]
    numbers = ["tick", "", *_numbers(streams, ticks)]
    wide = max(map(len, numbers))
    lines = []
    for i, number in enumerate(numbers):
        parts = [number.ljust(wide)]
        for stream, group in zip(streams, groups, strict=True):
            parts += [stream.mark, group[i]]
        lines.append(" ".join(parts).rstrip())
    return "\n".join(lines) + "\n"


def _numbers(streams: Sequence[Column], ticks: Batches) -> Iterator[str]:
    for number, tick in enumerate(ticks):
        yield str(number)
        yield from [""] * (_height(streams, tick) - 1)


def _height(streams: Sequence[Column], tick: Mapping[str, list[Any]]) -> int:
    return max(1, *(len(tick[stream.name]) for stream in streams))


def _aligned(stream: Column, ticks: Batches) -> list[str]:
    """The lines of one stream: its name, its columns, and its items, all of one width."""
    rows: list[list[str]] = []
    streams = ticks[0].keys() if ticks else ()
    for tick in ticks:
        height = max(1, *(len(tick[name]) for name in streams))
        shown = [_cells(stream, item) for item in tick[stream.name]]
        rows += shown + [[""] * len(stream.fields)] * (height - len(shown))
    head = [name for name, _ in stream.fields]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    right = [is_numeric(of) for _, of in stream.fields]
    lines = [
        "  ".join(
            cell.rjust(w) if r else cell.ljust(w)
            for cell, w, r in zip(line, widths, right, strict=True)
        )
        for line in [head, *rows]
    ]
    wide = max(len(stream.name), *map(len, lines))
    return [line.ljust(wide) for line in [stream.name, *lines]]


def _cells(stream: Column, item: Any) -> list[str]:
    match stream.of:
        case Row():
            return [_cell(item[name], of) for name, of in stream.fields]
        case Tuple():
            return [_cell(x, of) for x, (_, of) in zip(item, stream.fields, strict=True)]
        case _:
            return [_cell(item, stream.of)]


def _cell(value: Any, of: ItemType) -> str:
    plain = _is_text(of) and isinstance(value, str)
    if plain and re.fullmatch(r'(?!null$)[^\s"|=](?: ?[^\s|])*', value):
        return value
    return json.dumps(value, ensure_ascii=False)
