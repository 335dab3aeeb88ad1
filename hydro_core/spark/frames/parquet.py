"""Files for Spark: names of locations, object stores, and Parquet as it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from hydro_core.errors import DataError, InfrastructureError
from hydro_core.settings import MEBIBYTE
from hydro_core.spark.session.java import default_share
from hydro_core.spark.session.ready import store_made_ready
from hydro_core.spark.session.session import PARQUET
from hydro_core.storage.arrow import opened
from hydro_core.storage.places import entries_in
from hydro_core.storage.remote import DataPlace, RemotePath
from hydro_core.storage.settings import for_hadoop

# Object stores for Spark: the jars of Hadoop's file system for one, and how it is reached.
#
# Only a session that meets a URL of a store has them: the jars are fetched when one is first met,
# as those of Delta are, and are added to a JVM that runs already. How a bucket is reached is said
# of that bucket alone, so the settings of two do not meet.


_SIGNS = re.compile(r"[\[\]{}*?\\]")
_UNQUOTED = "/=@!$&'()*+,;:~-._"
_MARK = "hydrotick.stores"
"""The property of the JVM that names the stores whose jars it has; with an application behind it,
those whose jars were sent to its executors."""


def spark_name(session: SparkSession, place: DataPlace) -> str:
    """The name of a place that Spark knows it by, with nothing in it that it takes for a pattern;
    from then on the session reaches the store that it is in.

    Raises:
        HydroError: the jars of the store cannot be had (code `config`).
    """
    return escaped(unpatterned(session, place))


def escaped(name: str) -> str:
    r"""A name with nothing in it that Spark would take for a pattern.

    >>> unpatterned_name("/data/a[1]/x.parquet")
    '/data/a\\[1\\]/x.parquet'
    """
    return _SIGNS.sub(r"\\\g<0>", name)


def unpatterned(session: SparkSession, place: DataPlace) -> str:
    """The same where Spark takes no patterns: of a table, or of the folder that files are in."""
    if not isinstance(place, RemotePath):
        return str(place.absolute())
    reach(session, place)
    return place.for_spark


def uri_of(place: DataPlace) -> str:
    """The URI by which Spark tells of a file that it has read: Java leaves `=` and letters."""
    name = place.for_spark if isinstance(place, RemotePath) else f"file:{place.absolute()}"
    scheme, _, rest = name.partition(":")
    quoted = (c if not c.isascii() and c.isprintable() else quote(c, safe=_UNQUOTED) for c in rest)
    return f"{scheme}:{''.join(quoted)}"


def reach(session: SparkSession, place: RemotePath, share: Path | None = None) -> None:
    """Lets a session read and write in the bucket that a place is in."""
    context: Any = session.sparkContext
    jvm, conf = context._jvm, context._jsc.hadoopConfiguration()  # noqa: SLF001 - Spark has no other way
    for jar in _missing(jvm, _MARK, place.kind, share):
        # Java's class loader of Spark takes jars while it runs.
        loader = jvm.Thread.currentThread().getContextClassLoader()
        loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
    if not context.master.startswith("local"):
        # Executors elsewhere are sent them, by each application that they run for.
        for jar in _missing(jvm, f"{_MARK}.{context.applicationId}", place.kind, share):
            context._jsc.addJar(str(jar))  # noqa: SLF001
    for name, value in for_hadoop(place.kind, place.bucket, place.settings).items():
        if conf.get(name) != value:
            conf.set(name, value)


def _missing(jvm: Any, mark: str, kind: str, share: Path | None) -> tuple[Path, ...]:
    """The jars of a kind of store, where a property of the JVM does not name it; it does then."""
    known = jvm.System.getProperty(mark) or ""
    if kind in known.split(","):
        return ()
    jars = store_made_ready(share or default_share(), kind)
    jvm.System.setProperty(mark, ",".join(filter(None, (known, kind))))
    return jars


# Parquet as Spark writes it for us: what is written is what was declared, and nothing else.
#
# Spark's default for timestamps is INT96, which most other readers take for nanoseconds: they see
# another time before 1677-09-21 and after 2262-04-11. The options that decide are a session's,
# and a session may be the user's own; so they are set before each write, and footers are read
# after it.


_ROWS_OF_A_FILE = 5_000_000
"""The most that are looked through at once where rows are looked up by this process: a file."""

_SMALL_GROUP = MEBIBYTE
"""The bytes of a row group: those of some ten thousand rows."""


def write_parquet(
    frame: DataFrame, folder: DataPlace, declared: pa.Schema, *, in_small_groups: bool = False
) -> Mapping[DataPlace, int]:
    """Writes the rows into files of a folder, and gives how many each has.

    Args:
        frame: the rows.
        folder: where the files go.
        declared: the columns that they are to have.
        in_small_groups: whether rows will be looked up in them.

    Raises:
        DataError: the files have other columns or types than those (code `state`).
        InfrastructureError: executors have written them to disks of their own (code `config`).
    """
    conf = frame.sparkSession.conf
    for option, value in PARQUET.items():
        if conf.get(option, None) != value:
            conf.set(option, value)
    seen = _WriteCounter(frame, folder)
    writer = seen.frame.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    if in_small_groups:
        writer = writer.option("parquet.block.size", str(_SMALL_GROUP))
    writer = writer.option("maxRecordsPerFile", str(_ROWS_OF_A_FILE))
    writer.option("compression", "snappy").parquet(unpatterned(frame.sparkSession, folder))
    files = [file for file in entries_in(folder) if file.suffix == ".parquet"]
    footers = {file: pq.read_metadata(opened(file)) for file in files}
    for file, footer in footers.items():
        _refuse_others(file, footer.schema.to_arrow_schema(), declared)
    seen.refuse_lost(sum(footer.num_rows for footer in footers.values()))
    return {file: footer.num_rows for file, footer in footers.items()}


class _WriteCounter:
    """Counts what executors write to a directory of this machine: to that of another one they write
    without an error, and nothing of it is here.
    """

    def __init__(self, frame: DataFrame, folder: DataPlace) -> None:
        elsewhere = not str(frame.sparkSession.sparkContext.master).startswith("local")
        self._folder = folder
        self._rows = Observation() if elsewhere and isinstance(folder, Path) else None
        self.frame = frame
        if self._rows is not None:
            self.frame = frame.observe(self._rows, F.count(F.lit(1)).alias("rows"))

    def refuse_lost(self, there: int) -> None:
        """Raises where more rows were written than are here."""
        if self._rows is None or (rows := self._rows.get["rows"]) == there:
            return
        raise InfrastructureError.of(
            "config",
            f"executors have written {rows:,} rows below {self._folder.parent}, of which "
            f"{there:,} are here: that directory is another one on their machines",
            help="name a store as `data` in `[storage]`, or mount the directory at the same "
            "path on all nodes",
        )


def _refuse_others(file: DataPlace, found: pa.Schema, declared: pa.Schema) -> None:
    """Refuses a file that has other columns, or other types, than those that are declared."""
    is_there = {field.name: _bare(field.type) for field in found}
    wanted = {field.name: _bare(field.type) for field in declared}
    if list(is_there.items()) == list(wanted.items()):
        return
    differ = [n for n in (*wanted, *is_there) if is_there.get(n) != wanted.get(n)]
    name = differ[0] if differ else next(iter(wanted))
    raise DataError.of(
        "state",
        f"Spark wrote the column `{name}` of {file.parent} as {is_there.get(name, 'nothing')}, "
        f"and it is {wanted.get(name, 'not declared')}: nothing of it is committed",
        help="take options of `spark.sql.parquet` out of Spark's configuration",
    )


def _bare(of: pa.DataType) -> str:
    """The type without the names of elements, and without what may be null."""
    if pa.types.is_list(of):
        return f"array<{_bare(of.value_type)}>"
    if pa.types.is_struct(of):
        fields = (of.field(i) for i in range(of.num_fields))
        return f"struct<{', '.join(f'{field.name}: {_bare(field.type)}' for field in fields)}>"
    return str(of)
