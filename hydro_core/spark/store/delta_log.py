"""The log of a Delta table that one process at a time writes: read once, then known.

delta-rs goes through what is stored of all files of a table whenever it commits: a few
milliseconds of a young table, 65 of one with 1,000 files. To add files is to add one entry to the
log, so that is done here, and what it adds is kept. All else (joining files, restoring,
checkpoints) is left to delta-rs.

An entry has a number and is written once: of two writers that add the same one, the second fails.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from hydro_core.spark.store.delta_actions import data_files

_INTERVAL = "delta.checkpointInterval"
_DEFAULT_INTERVAL = 100

_PLAIN_WRITER = 2
"""Tables of this version of the protocol, or before, may be added to without looking further."""
_KNOWN_FEATURES = frozenset({"appendOnly", "invariants", "timestampNtz"})
"""Of later ones, those that ask nothing of whoever adds files."""

Bounds = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A data file as a log tells of it."""

    name: str
    """Its path below the table's directory."""
    size: int
    rows: int | None
    bounds: Mapping[str, Bounds]
    """The least and the largest value of some columns; None: not known."""


class UnknownFeatureError(Exception):
    """Somebody has given a table features that whoever adds to it must know."""


class EntryExistsError(Exception):
    """Another writer has added to the log since it was read."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What a log says at a version."""

    version: int
    files: tuple[LoggedFile, ...]
    schema: pa.Schema
    checkpoint_interval: int
    unknown_features: frozenset[str]


class DeltaLog:
    """The log of the table in a directory; it is read when it is first asked for something."""

    def __init__(self, path: Path, noted: Sequence[str]) -> None:
        """`noted` are the columns, of integers without nulls, of which each file has bounds."""
        self.path = path
        self._noted = tuple(noted)
        self._known: _Read | None = None

    @property
    def version(self) -> int:
        """The version that was seen last."""
        return self._read.version

    @property
    def files(self) -> tuple[LoggedFile, ...]:
        """The data files of the version that was seen last."""
        return self._read.files

    @property
    def schema(self) -> pa.Schema:
        """The columns of the version that was seen last."""
        return self._read.schema

    @property
    def has_more(self) -> bool:
        """Whether somebody has added to the log since it was read."""
        return self._entry(self.version + 1).exists()

    def is_at(self, version: int) -> bool:
        """Whether the table stands at this version, neither before nor beyond."""
        if self._entry(version + 1).exists():
            return False
        if self._known is None or self.version != version or not self._entry(version).exists():
            self.forget()
        return self.version == version

    def forget(self) -> None:
        """Reads the log anew when it is next asked for something."""
        self._known = None

    def look_at(self, version: int) -> None:
        """Takes the table as it was at an earlier version, until it is forgotten."""
        self._known = self._of(DeltaTable(self.path, version=version))

    def files_at(self, version: int) -> tuple[LoggedFile, ...]:
        """The data files of an earlier version; they may have been removed from the disk since."""
        return self._files(DeltaTable(self.path, version=version))

    @contextmanager
    def by_delta_rs(self) -> Iterator[DeltaTable]:
        """The table for whatever else is to be done with it; then its log is read again."""
        table = DeltaTable(self.path)
        self._known = None
        yield table
        table.update_incremental()
        self._known = self._of(table)

    def write(self, rows: pa.Table, bounds: Mapping[str, Bounds]) -> LoggedFile:
        """Writes rows into a file below the table's directory, which the log does not name yet."""
        file = self.path / f"{uuid.uuid4()}.parquet"
        # Without Arrow's own schema, which calls parts of lists and maps otherwise than Delta.
        try:
            pq.write_table(rows, file, store_schema=False)
        except OSError:
            file.unlink(missing_ok=True)
            raise
        return LoggedFile(file.name, file.stat().st_size, rows.num_rows, bounds)

    def add(self, files: Iterable[LoggedFile], *, replacing: bool = False, **noted: str) -> None:
        """Adds files by one entry.

        Args:
            files: written ones, below the table's directory.
            replacing: whether all files that are there are taken away.
            noted: what the entry says of itself besides.

        Raises:
            EntryExistsError: another writer has added to the log since it was read.
            UnknownFeatureError: the table is not as it was made.
        """
        now, added = self._read, tuple(files)
        if now.unknown_features:
            raise UnknownFeatureError(", ".join(sorted(now.unknown_features)))
        moment = int(time.time() * 1000)
        removed = now.files if replacing else ()
        mode = "Overwrite" if replacing else "Append"
        told = {"timestamp": moment, "operation": "WRITE", "operationParameters": {"mode": mode}}
        lines = [
            {"commitInfo": {**told, "engineInfo": "hydrotick", **noted}},
            *({"remove": _removal(file, moment)} for file in removed),
            *({"add": _addition(file, moment)} for file in added),
        ]
        version = now.version + 1
        _put(self._entry(version), "".join(f"{_json(line)}\n" for line in lines))
        kept = () if replacing else now.files
        self._known = _Read(
            version, kept + added, now.schema, now.checkpoint_interval, now.unknown_features
        )
        if version % now.checkpoint_interval == 0:
            self._checkpoint()

    @property
    def _read(self) -> _Read:
        if self._known is None:
            self._known = self._of(DeltaTable(self.path))
        return self._known

    def _entry(self, version: int) -> Path:
        return self.path / "_delta_log" / f"{version:020}.json"

    def _of(self, table: DeltaTable) -> _Read:
        schema: Any = table.schema().to_arrow()
        protocol, settings = table.protocol(), table.metadata().configuration
        features = {f"version {protocol.min_writer_version} of the protocol"}
        if protocol.min_writer_version <= _PLAIN_WRITER:
            features = set()
        elif protocol.writer_features is not None:
            features = set(protocol.writer_features)
        return _Read(
            table.version(),
            self._files(table),
            pa.schema(schema),
            int(settings.get(_INTERVAL, _DEFAULT_INTERVAL)),
            frozenset(features - _KNOWN_FEATURES),
        )

    def _files(self, table: DeltaTable) -> tuple[LoggedFile, ...]:
        ends = [f"{end}.{name}" for name in self._noted for end in ("min", "max")]
        rows = data_files(table, "path", "size_bytes", "num_records", *ends)
        return tuple(
            LoggedFile(
                row["path"],
                row["size_bytes"],
                row["num_records"],
                {name: (row[f"min.{name}"], row[f"max.{name}"]) for name in self._noted},
            )
            for row in rows
        )

    def _checkpoint(self) -> None:
        # The entries stand; whoever reads them has some more to read until the next time.
        with suppress(DeltaError):
            table = DeltaTable(self.path)
            table.create_checkpoint()
            table.cleanup_metadata()


def _addition(file: LoggedFile, moment: int) -> Mapping[str, Any]:
    known = {name: ends for name, ends in file.bounds.items() if None not in ends}
    statistics: dict[str, Any] = {
        "minValues": {name: least for name, (least, _) in known.items()},
        "maxValues": {name: largest for name, (_, largest) in known.items()},
        "nullCount": dict.fromkeys(file.bounds, 0),
    }
    if file.rows is not None:
        statistics["numRecords"] = file.rows
    return {
        "path": file.name,
        "partitionValues": {},
        "size": file.size,
        "modificationTime": moment,
        "dataChange": True,
        "stats": _json(statistics),
    }


def _removal(file: LoggedFile, moment: int) -> Mapping[str, Any]:
    return {
        "path": file.name,
        "deletionTimestamp": moment,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": file.size,
    }


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _put(entry: Path, text: str) -> None:
    """Writes an entry: whole, and only where there is none."""
    part = entry.with_name(f"_commit_{uuid.uuid4()}.json.tmp")
    try:
        part.write_text(text, encoding="utf-8")
        os.link(part, entry)
    except FileExistsError as error:
        raise EntryExistsError(f"{entry} is there already") from error
    finally:
        part.unlink(missing_ok=True)
