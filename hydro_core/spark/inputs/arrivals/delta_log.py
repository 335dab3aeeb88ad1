"""What commits to a Delta table have done to its rows, by its log: no row is read.

An entry says of each file that it adds or removes whether that changes data. Compaction changes
none; a restored table may have what it had. So files are counted in two ways: those that are there,
and those whose rows have come or gone. What one of the two calls unchanged is unchanged.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from hydro_core.storage.remote import DataPlace

_LOG = "_delta_log"


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file whose rows are new: by its path in the table, and a version that has it.

    `lowest` and `highest` bound what the tick column holds, where the log says so.
    """

    path: str
    version: int
    lowest: Any = None
    highest: Any = None


@dataclass(frozen=True, slots=True)
class FileChanges:
    """What came: files that were `appended`, and those `written` while others were `gone`.

    Rows of the latter may be the same.
    """

    appended: tuple[AddedFile, ...] = ()
    written: tuple[AddedFile, ...] = ()
    gone: tuple[str, ...] = ()


@dataclass(slots=True)
class _Counted:
    """What has been seen of the entries so far."""

    there: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    written: set[str] = field(default_factory=set)
    added: dict[str, AddedFile] = field(default_factory=dict)

    def entry(self, version: int, actions: list[Mapping[str, Any]], column: str | None) -> None:
        removed = [action["remove"] for action in actions if "remove" in action]
        rewrites = any(action.get("dataChange", True) for action in removed)
        for action in removed:
            self._count(action, -1)
        for action in (action["add"] for action in actions if "add" in action):
            path = self._count(action, 1)
            self.added[path] = AddedFile(path, version, *_bounds(action, column))
            if rewrites:
                self.written.add(path)

    def _count(self, action: Mapping[str, Any], by: int) -> str:
        path = unquote(action["path"])
        self.there[path] += by
        if action.get("dataChange", True):
            self.rows[path] += by
        return path


def changes_between(
    path: DataPlace, first: int, last: int, column: str | None
) -> FileChanges | None:
    """What the versions after `first` up to `last` changed, with bounds of a column; None: the log
    does not tell any more.
    """
    if first > last:
        return None
    counted = _Counted()
    for version in range(first + 1, last + 1):
        try:
            entry = (path / _LOG / f"{version:020}.json").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        actions = [json.loads(line) for line in entry.split("\n") if line.strip()]
        counted.entry(version, actions, column)
    return _net(counted)


def _net(counted: _Counted) -> FileChanges:
    come, gone = _signed(counted.rows)
    if not any(counted.there.values()) or not (come or gone):
        return FileChanges()
    if any(path in counted.added for path in gone):
        # Rows went with a file that came since, by a compaction: only files that are there tell.
        come, gone = _signed(counted.there)
        return FileChanges((), tuple(counted.added[path] for path in come), tuple(gone))
    alone = not gone
    appended = [path for path in come if alone or path not in counted.written]
    return FileChanges(
        tuple(counted.added[path] for path in appended),
        tuple(counted.added[path] for path in come if path not in appended),
        tuple(gone),
    )


def _signed(counts: Counter[str]) -> tuple[list[str], list[str]]:
    return [p for p, n in counts.items() if n > 0], [p for p, n in counts.items() if n < 0]


def _bounds(action: Mapping[str, Any], column: str | None) -> tuple[Any, Any]:
    if column is None:
        return None, None
    partition: Mapping[str, Any] = action.get("partitionValues") or {}
    if column in partition:
        return partition[column], partition[column]
    stats = json.loads(action["stats"]) if action.get("stats") else {}
    found: Iterator[Any] = (stats.get(of, {}).get(column) for of in ("minValues", "maxValues"))
    return next(found), next(found)
