"""The rows that an output has at the ticks of a range: at hand, or as the files that have them.

What executors wrote is not brought together here: whoever looks at it does so piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from hydro_core.files.parquet import files_as_dataset, in_pieces

if TYPE_CHECKING:
    from pyarrow.dataset import Expression
    from pyspark.sql import DataFrame, SparkSession

    from hydro_core.spark.store.delta.write import WrittenRows


@dataclass(frozen=True, slots=True)
class ShownRows:
    """Rows with the column `tick`."""

    table: pa.Table | None
    """The rows themselves, where they are at hand."""
    written: WrittenRows | None = None
    """The files that have them, where they are not."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of their columns."""
        return self._schema.names

    @property
    def count(self) -> int:
        return self._written.rows if self.table is None else self.table.num_rows

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """All rows, with these columns; at least one piece, if one without rows."""
        names = list(self.columns if columns is None else columns)
        if self.table is not None:
            yield self.table.select(names)
            return
        yield from self._pieces(names, None)

    def at(self, tick: int, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows of one tick, in the order in which they are stored."""
        # `status` asks for no rows, and waits for nothing that it has no use for.
        import pyarrow.compute as pc

        names = list(self.columns if columns is None else columns)
        if self.table is not None:
            yield self.table.filter(pc.equal(self.table["tick"], pa.scalar(tick))).select(names)
            return
        yield from self._pieces(names, pc.field("tick") == tick)

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows as executors read them; they are as files."""
        return self._written.frame(spark)

    def discard(self) -> None:
        """Removes the files, which are nobody else's."""
        if self.table is None:
            self._written.discard()

    def _pieces(self, names: Sequence[str], where: Expression | None) -> Iterator[pa.Table]:
        rows = files_as_dataset(self._written.files, self._schema)
        some = False
        for piece in in_pieces(rows, names, where):
            some = True
            yield piece
        if not some:
            yield self._schema.empty_table().select(list(names))

    @property
    def _written(self) -> WrittenRows:
        if self.written is None:
            raise AssertionError("rows are at hand or in files")
        return self.written

    @property
    def _schema(self) -> pa.Schema:
        return self._written.spec.arrow_schema if self.table is None else self.table.schema


def shown_of(written: WrittenRows) -> ShownRows:
    """What was written for a table, as it is looked at."""
    return ShownRows(written.table, written)
