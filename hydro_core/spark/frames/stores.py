"""Object stores for Spark: the jars of Hadoop's file system for one, and how it is reached.

Only a session that meets a URL of a store has them: the jars are fetched when one is first met, as
those of Delta are, and are added to a JVM that runs already. How a bucket is reached is said of
that bucket alone, so the settings of two do not meet.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pyspark.sql import SparkSession

from hydro_core.spark.session.java import default_share
from hydro_core.spark.session.ready import store_made_ready
from hydro_core.storage.options import for_hadoop
from hydro_core.storage.remote import DataPlace, Remote

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
    if not isinstance(place, Remote):
        return str(place.absolute())
    reach(session, place)
    return place.for_spark


def uri_of(place: DataPlace) -> str:
    """The URI by which Spark tells of a file that it has read: Java leaves `=` and letters."""
    name = place.for_spark if isinstance(place, Remote) else f"file:{place.absolute()}"
    scheme, _, rest = name.partition(":")
    quoted = (c if not c.isascii() and c.isprintable() else quote(c, safe=_UNQUOTED) for c in rest)
    return f"{scheme}:{''.join(quoted)}"


def reach(session: SparkSession, place: Remote, share: Path | None = None) -> None:
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
