"""How Arrow opens Parquet here: timestamps that are stored as INT96 are read in microseconds.

Spark and Hive write INT96 unless they are told otherwise. It holds any time; but Arrow makes
nanoseconds of it by default, which wrap around before 1677-09-21 and after 2262-04-11, in silence.
Whoever reads a file that others may have written opens it here. INT96 holds nanoseconds, too, which
are lost in microseconds: only a second reading in nanoseconds tells whether there are any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from io import RawIOBase
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from hydro_core.settings import MEBIBYTE, ROWS_AT_ONCE
from hydro_core.storage.arrow import file_system, names_of, opened
from hydro_core.storage.places import write_pieces
from hydro_core.storage.remote import DataPlace

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyarrow.dataset import Dataset, Expression, ParquetFileFormat

# Arrow's datasets (with pandas) are loaded where they read something.

_UNIT = "us"
_READ_AHEAD = MEBIBYTE


def opened_parquet(file: DataPlace) -> pq.ParquetFile:
    """A file, to be read by itself."""
    return pq.ParquetFile(opened(file), coerce_int96_timestamp_unit=_UNIT)


def parquet_format(unit: str = _UNIT) -> ParquetFileFormat:
    """The form of the files of a dataset; `unit`: of timestamps that are stored as INT96."""
    from pyarrow.dataset import ParquetFileFormat

    return ParquetFileFormat(coerce_int96_timestamp_unit=unit)


def files_with(constants: Mapping[DataPlace, Mapping[str, Any]], schema: pa.Schema) -> Dataset:
    """The rows of files, in each of which some columns are constant: no file has those."""
    from pyarrow.dataset import FileSystemDataset, field
    from pyarrow.fs import LocalFileSystem

    def holds(of: Mapping[str, Any]) -> Expression | None:
        tests = (
            field(name) == value if value.is_valid else field(name).is_null()
            for name, value in of.items()
        )
        return reduce(and_, tests) if of else None

    files, form = list(constants), parquet_format()
    system = file_system(files) or LocalFileSystem()
    fragments = [
        form.make_fragment(name, system, holds(constants[file]))
        for file, name in zip(files, names_of(files), strict=True)
    ]
    return FileSystemDataset(fragments, schema, form, system)


def files_as_dataset(
    files: Iterable[DataPlace], schema: pa.Schema | None, unit: str = _UNIT
) -> Dataset:
    """The rows of files; None: with the columns that the first of them has."""
    from pyarrow.dataset import dataset

    found = list(files)
    names, system = names_of(found), file_system(found)
    rows: Any = dataset(names, schema=schema, format=parquet_format(unit), filesystem=system)
    return rows  # type: ignore[no-any-return]


def in_pieces(
    rows: Dataset, columns: Sequence[str] | None = None, where: Expression | None = None
) -> Iterator[pa.Table]:
    """The rows of a dataset for which a condition holds, a piece at a time.

    No more is read ahead than one piece, so it takes as much memory whatever the rows are.
    """
    from pyarrow.dataset import ParquetFragmentScanOptions

    # A row group of Spark's has 128 MiB; of each column as much is read as is needed next.
    buffered = ParquetFragmentScanOptions(
        use_buffered_stream=True, buffer_size=_READ_AHEAD, pre_buffer=False
    )
    found: Any = rows
    for batch in found.to_batches(
        columns=None if columns is None else list(columns),
        filter=where,
        batch_size=ROWS_AT_ONCE,
        batch_readahead=1,
        fragment_readahead=1,
        fragment_scan_options=buffered,
    ):
        if batch.num_rows:
            yield pa.Table.from_batches([batch])


def delta_rows(table: DeltaTable) -> Dataset:
    from pyarrow.dataset import ParquetReadOptions

    options = ParquetReadOptions(dictionary_columns=None, coerce_int96_timestamp_unit=_UNIT)
    rows: Any = table.to_pyarrow_dataset(parquet_read_options=options)
    return rows  # type: ignore[no-any-return]


def write_parquet_file(rows: pa.Table, file: DataPlace) -> int:
    """Writes rows into a file, and gives its bytes."""
    if isinstance(file, Path):
        pq.write_table(rows, file)
        return file.stat().st_size
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    content = sink.getvalue()
    file.write_bytes(content.to_pybytes())
    return content.size


def write_parquet_pieces(pieces: Iterable[pa.Table], file: DataPlace) -> int:
    """Writes rows that come in pieces, at least one, into a file, and gives its bytes."""
    return write_pieces(file, _encoded(pieces))


def _encoded(pieces: Iterable[pa.Table]) -> Iterator[bytes]:
    """The bytes of a Parquet file, as its rows come."""
    sink: Any = _Sink()
    writer = None
    for piece in pieces:
        if writer is None:
            writer = pq.ParquetWriter(sink, piece.schema)
        writer.write_table(piece)
        yield sink.drained()
    if writer is not None:
        writer.close()
    yield sink.drained()


class _Sink(RawIOBase):
    """Takes what is written, to be taken out again."""

    def __init__(self) -> None:
        super().__init__()
        self._held, self._before = bytearray(), 0

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._held += content
        return len(content)

    def tell(self) -> int:
        return self._before + len(self._held)

    def drained(self) -> bytes:
        """What was written since this was asked last."""
        found = bytes(self._held)
        self._before += len(found)
        self._held.clear()
        return found


def may_be_finer(metadata: pq.FileMetaData) -> bool:
    """Whether timestamps of a file may have nanoseconds that are lost in microseconds: Spark, which
    writes most files with INT96, has none.
    """
    return b"org.apache.spark.version" not in (metadata.metadata or {}) and _has_int96(metadata)


def _has_int96(metadata: pq.FileMetaData) -> bool:
    schema = metadata.schema
    return any(schema.column(i).physical_type == "INT96" for i in range(len(schema)))
