"""Copies of Dagster's records: the databases of an instance that keeps them in SQLite.

SQLite copies a database that is in use, and puts one back into a database that others have open:
each as a whole, or not at all. What runs printed are files beside. A database server has backups of
its own, and one instance there may be that of many projects, so it is left to who operates it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from hydro_core.files.transfer import Put, put
from hydro_core.storage.places import files_in
from hydro_core.storage.remote import DataPlace, name_below

from . import SETTINGS, is_made_here
from .opening import storages_of

_PRINTED = "storage"
"""The directory with what runs printed."""
_IN_FILES = frozenset(
    {"SqliteRunStorage", "SqliteEventLogStorage", "ConsolidatedSqliteEventLogStorage", "EventLog"}
)
"""What keeps its records in databases below the directory of the instance."""
_SECONDS = 120
"""So long a database is waited for that somebody writes to."""


def why_not_copied(home: Path) -> str:
    """Why an instance's records are no part of a copy of a project, in words; "": they are.

    Raises:
        HydroError: its settings are wrong (code `config`).
    """
    if not is_made_here(home):
        return f"Dagster's instance in {home} is not of this project alone: copy it by itself"
    if _IN_FILES.issuperset(storages_of(home)) and (home / "history" / "runs.db").exists():
        return ""
    return (
        f"{home / SETTINGS} has Dagster's records in a database of its own: copy that with its "
        "own tools (`pg_dump`). Without it, what is restored is recorded anew"
    )


def copy_records(home: Path, to: DataPlace, put: Put) -> None:
    """Copies the records of an instance to a folder, which is made; others may write them."""
    beside = to.parent if isinstance(to, Path) else None
    with TemporaryDirectory(dir=beside, prefix=".records-") as scratch:
        for database in _databases(home):
            whole = Path(scratch) / database.name
            _copied(_openable(database, Path(scratch) / "read"), whole)
            _put(whole, to / database.relative_to(home).as_posix(), put)
            whole.unlink()
    for file in _files(home):
        _put(file, to / file.relative_to(home).as_posix(), put)


def restore_records(kept: DataPlace, home: Path) -> None:
    """Puts copied records in the place of those of an instance, which others may have open.

    Settings that are there stay.
    """
    if isinstance(kept, Path):
        _restored(kept, home)
        return
    with TemporaryDirectory(prefix="hydrotick-records-") as here:
        for file in files_in(kept):
            _put(file, Path(here) / name_below(file, kept), put)
        _restored(Path(here), home)


def _restored(kept: Path, home: Path) -> None:
    for database in _databases(kept):
        _copied(database, home / database.relative_to(kept))
    for file in _files(kept):
        if not (target := home / file.relative_to(kept)).exists():
            _put(file, target, put)


def _databases(home: Path) -> list[Path]:
    """Those of runs, events and schedules; the ones of runs come first, since events name runs."""
    found = [file for file in home.rglob("*.db") if home / _PRINTED not in file.parents]
    return sorted(found, key=lambda file: (file.name != "runs.db", file))


def _files(home: Path) -> Iterator[Path]:
    yield from sorted(home.glob(f"{SETTINGS}*"))
    yield from sorted(file for file in (home / _PRINTED).rglob("*") if file.is_file())


def _openable(database: Path, scratch: Path) -> Path:
    """The database where it may be opened: SQLite writes beside one that is only read."""
    if os.access(database.parent, os.W_OK):
        return database
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    for file in database.parent.glob(f"{database.name}*"):
        shutil.copyfile(file, scratch / file.name)
    return scratch / database.name


def _copied(database: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    with (
        closing(sqlite3.connect(database, timeout=_SECONDS)) as source,
        closing(sqlite3.connect(to, timeout=_SECONDS)) as target,
    ):
        source.backup(target)


def _put(file: DataPlace, to: DataPlace, put: Put) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    put(file, to)
