"""Tables of rows: as aligned text for terminals, as HTML for notebooks."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from hydro_core.types.values import RowItem

GAP = "  "


@dataclass(slots=True)
class _Column:
    width: int
    is_right: bool | None = None
    """True while all values are numbers; None before the first value that is not null."""

    def padded(self, cell: str) -> str:
        return cell.rjust(self.width) if self.is_right else cell.ljust(self.width)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns of texts, two spaces apart.

    >>> print(table(["name", "type"], [["a", "long"], ["words", "string"]]))
    name   type
    a      long
    words  string
    """
    return "\n".join(table_lines(header, rows))


def table_lines(
    header: Sequence[str], rows: Iterable[Sequence[Any]], widest: int | None = None
) -> Iterator[str]:
    """A table line by line: columns of numbers stand at the right, and what is no text is JSON.

    Args:
        header: the names of the columns.
        rows: the cells of each row; gone through twice, so that no more than one needs to be held.
        widest: longer cells are cut; None: none is.
    """
    columns = [_Column(len(name)) for name in header]
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            column.width = max(column.width, len(_cell(value, widest)))
            if value is not None and column.is_right is not False:
                column.is_right = isinstance(value, int | float) and not isinstance(value, bool)
    for cells in chain([header], rows):
        padded = (c.padded(_cell(v, widest)) for c, v in zip(columns, cells, strict=True))
        yield GAP.join(padded).rstrip()


def _cell(value: Any, widest: int | None) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text.encode("unicode_escape").decode() if not text.isprintable() else text
    return text if widest is None or len(text) <= widest else f"{text[: widest - 1]}…"


MOST_ROWS = 20
"""So many rows of an output are shown."""


class TickOutputs(dict[str, list[Any]]):
    """The items of every output of a tick, by the outputs' names; a notebook shows them as tables.

    >>> TickOutputs(n=[1, 2])
    {'n': [1, 2]}
    """

    def _repr_html_(self) -> str:
        return "\n".join(_html_table(name, items) for name, items in self.items())


def _html_table(name: str, items: Sequence[Any]) -> str:
    rows = [_columns(item) for item in items[:MOST_ROWS]]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    body = "".join(_row("td", [_text(row[c]) if c in row else "" for c in columns]) for row in rows)
    left = len(items) - MOST_ROWS
    more = f"<p>… {left:,} more</p>" if left > 0 else ""
    caption = f"<caption>{html.escape(name)}: {len(items):,} item(s)</caption>"
    head = f"<thead>{_row('th', columns)}</thead>" if columns else ""
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>{more}"


def _columns(item: Any) -> dict[str, Any]:
    match item:
        case RowItem():
            # A column may be called as a method is: `items`.
            return dict(dict.items(item))
        case tuple():
            return {f"_{i}": value for i, value in enumerate(item, 1)}
        case _:
            return {"item": item}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def _row(tag: str, cells: Sequence[str]) -> str:
    inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"
