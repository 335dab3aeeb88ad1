"""The process that makes an archive of classes: a JVM that does a small piece of a tick's work."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hydro_core.settings import SparkSettings
from hydro_core.spark.session.launch import JAVA_FLAGS
from hydro_core.spark.session.session import session_options, start_session


def _trained(share: Path, part: Path) -> None:
    """A JVM that does what ticks do, and at its end writes which classes that took."""
    settings = SparkSettings(master="local[2]", share=share)
    flags = session_options(settings)[JAVA_FLAGS]
    wanted = f'{flags} "-XX:ArchiveClassesAtExit={part}" -Xlog:disable'
    session = start_session(settings, extra={JAVA_FLAGS: wanted})
    _work(session, part.with_suffix(".table"))
    session.stop()
    gateway = SparkContext._gateway  # noqa: SLF001 - Spark offers no question for it
    assert gateway is not None
    gateway.shutdown()
    # The JVM ends when its input does, and then it writes.
    process = gateway.proc
    process.stdin.close()
    process.wait()


def _work(session: SparkSession, table: Path) -> None:
    """Writes a few rows as a Delta table, reads, joins and groups them, and takes them as Arrow."""
    few = session.range(100).withColumn("name", F.concat(F.lit("n"), F.col("id").cast("string")))
    rows = few.withColumn("item", F.struct("id", "name"))
    try:
        rows.write.format("delta").save(str(table))
        stored = session.read.format("delta").load(str(table))
        counted = stored.groupBy("name").agg(
            F.sum("id").alias("ids"), F.max("item").alias("newest")
        )
        joined = counted.join(rows, "name", "left").where("ids >= 0").coalesce(1)
        joined.unionByName(joined).toArrow()
        joined.select("name", "ids").sort("name").collect()
    finally:
        shutil.rmtree(table, ignore_errors=True)


if __name__ == "__main__":
    _trained(Path(sys.argv[1]), Path(sys.argv[2]))
