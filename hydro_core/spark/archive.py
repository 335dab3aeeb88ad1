"""An archive of Spark's loaded classes: with it a session is ready some three seconds sooner.

The JVM writes it when it ends, once, at set-up (`python -m hydro_core.spark.archive`), and maps it
at every later start. One that does not fit, since Java or Spark changed, is passed over by the JVM
without a word.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from hydro_core.spark.java import default_share

_ARCHIVE = "classes.jsa"

_PATIENCE = 180
"""Seconds in which the JVM must have written the archive: 10 on an idle machine."""


def archive_flag(share: Path) -> str:
    """The JVM's flag for the archive, with a space before it; empty if there is none."""
    archive = share / _ARCHIVE
    return f' "-XX:SharedArchiveFile={archive}" -Xlog:disable' if archive.is_file() else ""


def write_archive(share: Path) -> Path | None:
    """Runs a little of everything in a session that writes the archive when it ends."""
    # Imported late: a session asks for the flag, and this starts one.
    from hydro_core.settings import SparkSettings
    from hydro_core.spark.session import session_options, start_session

    archive, new = share / _ARCHIVE, share / f"{_ARCHIVE}.new"
    archive.unlink(missing_ok=True)
    settings = SparkSettings(share=share)
    flags = session_options(settings)["spark.driver.extraJavaOptions"]
    extra = {"spark.driver.extraJavaOptions": f'{flags} "-XX:ArchiveClassesAtExit={new}"'}
    spark = start_session(settings, app_name="hydrotick set-up", extra=extra)
    with tempfile.TemporaryDirectory() as scratch:
        table = str(Path(scratch) / "table")
        rows = spark.range(100).selectExpr("id % 7 as k", "struct(id, 'x' as s) as item")
        rows.write.format("delta").save(table)
        rows.write.format("delta").mode("append").save(table)
        read = spark.read.format("delta").load(table).where("k < 5")
        read.join(rows.groupBy("k").count(), "k", "left").distinct().orderBy("k").toArrow()
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - the JVM ends with its standard input
    spark.stop()
    if gateway is None:
        return None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=_PATIENCE)
    return new.rename(archive) if new.is_file() else None


def main() -> int:
    """Writes the archive, and prints where it is; no archive is no failure."""
    written = write_archive(default_share())
    sys.stdout.write(f"{written or 'this Java writes no archive'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
