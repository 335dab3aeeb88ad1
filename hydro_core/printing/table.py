"""Tables of text: cells under their column's name, as wide as the widest of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

GAP = "  "


@dataclass(slots=True)
class _Column:
    width: int
    is_right: bool | None = None
    """Whether all values are numbers; None: none has been seen that is not null."""

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
