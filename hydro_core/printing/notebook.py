"""What a notebook shows of a tick's outputs: a table for each."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from hydro_core.types.values import RowItem

MOST_ROWS = 20
"""So many rows of an output are shown."""


class TickOutputs(dict[str, list[Any]]):
    """The items of every output of a tick, by the outputs' names; a notebook shows them as tables.

    >>> TickOutputs(n=[1, 2])
    {'n': [1, 2]}
    """

    def _repr_html_(self) -> str:
        return "\n".join(_table(name, items) for name, items in self.items())


def _table(name: str, items: Sequence[Any]) -> str:
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
