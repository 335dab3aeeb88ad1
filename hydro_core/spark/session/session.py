"""Spark sessions: one per process, others beside it with settings for their work, and executors."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakSet

import pyarrow as pa
from py4j.java_gateway import GatewayClient, JavaClass, JavaMember, JVMView
from pyspark import SparkContext
from pyspark.sql import SparkSession

from hydro_core.errors import HydroError
from hydro_core.settings import MEBIBYTE, SparkSettings
from hydro_core.spark.session.classes import archive_of, flags_for
from hydro_core.spark.session.failures import data_error
from hydro_core.spark.session.java import default_share
from hydro_core.spark.session.launch import (
    JAVA_FLAGS,
    SessionError,
    discard_jvm,
    launch_context,
    package_archive,
    runs_jobs,
)
from hydro_core.spark.session.ready import ready_for
from hydro_core.storage.remote import RemotePath

# Fewer calls of the JVM: every one is a message to another process and back.
#
# A plan of some thirty operators is made by thousands of calls. For each function PySpark asks
# for its class and then for the function before it calls it, and it fills each list item by item.
# Here the answers of the first two are kept, and short lists are made by one call.


_CLASSES = (
    "org.apache.spark.sql.functions",
    "functions",
    "PythonUtils",
    "PythonSQLUtils",
    "SparkSession",
)
"""The classes, by the names by which PySpark asks for them all the time."""

_LONGEST = 10
"""`List.of` takes so many items, one by one."""


def with_fewer_calls(jvm: JVMView) -> None:
    """Makes what looks things up in this JVM keep the answers."""
    client = jvm._gateway_client  # noqa: SLF001 - it has no other way to its client
    if any(isinstance(converter, _ShortLists) for converter in client.converters):
        return  # a JVM serves several contexts, one after the other
    for name in _CLASSES:
        found = getattr(jvm, name)
        if isinstance(found, JavaClass):
            # Python asks a view for an attribute by name only if it has none.
            setattr(jvm, name, _CachedJavaClass(found._fqn, client))  # noqa: SLF001 - nor to a name
    client.converters = [_ShortLists(client), *client.converters]


class _CachedJavaClass(JavaClass):  # type: ignore[misc]
    """A class of the JVM that looks each of its functions up once."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            setattr(self, name, found)
        return found


class _ShortLists:
    """Lists as arguments: short ones by one call, where py4j's own converter takes one an item."""

    def __init__(self, client: GatewayClient) -> None:
        self._of = JavaMember("of", None, "z:java.util.List", client)

    def can_convert(self, given: object) -> bool:
        # `List.of` takes no nulls.
        return (
            isinstance(given, list | tuple)
            and 0 < len(given) <= _LONGEST
            and all(item is not None for item in given)
        )

    def convert(self, given: list[Any] | tuple[Any, ...], client: GatewayClient) -> Any:
        return self._of(*given)


# The Spark session: embedded, with Delta, without a network, one per process.
#
# A session costs five to ten seconds and some 700 MiB, a warm one runs a small job in a tenth of
# a second: so whoever needs Spark asks for `shared_session`, and only tests that must start one
# call `start_session`.


__all__ = ["SessionError", "session_options", "shared_session", "start_session"]

# Of the memory that is granted in all, what is not heap: classes of Spark, Delta and generated code
# (up to 260 MiB), compiled code (160), buffers of the network and of Arrow (160), stacks and the
# collector.
_BESIDE_HEAP = 640 * MEBIBYTE
_LEAST_HEAP = 512 * MEBIBYTE

# Half of the processor time of a small tick is that of the JVM's compilers. The optimizing one
# begins ten times later than it would; loops over large data still come that far soon.
_LATE_OPTIMIZATION = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

_JARS = "spark.jars"

_IN_UTC = "-Duser.timezone=UTC"

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # A log of a few hundred entries: the default of 50 tasks to read it costs 2 to 3 s each time.
    "spark.databricks.delta.snapshotPartitions": "1",
}

_MEANING = {
    # Timestamps are instants, and days are days in UTC wherever the machine stands.
    "spark.sql.session.timeZone": "UTC",
    # Overflow, a failed cast and a division by zero are errors and not nulls, as in Python.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.caseSensitive": "true",
}

PARQUET = {
    # Microseconds, as timestamps are: INT96, Spark's default, is read as other times by others.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Dates are those of one calendar, before 1582-10-15 too.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
"""How Parquet is written and read; whoever writes sets it on the session, which may be another."""

_LEAN = {
    # Where in our code each column was made: three calls of the JVM for every one.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}

_LONG_LIFE = {
    # A session lives for thousands of ticks; what Spark remembers of past ones is for its UI, which
    # is off.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "5",
    # A range of many rows runs some sixty generated classes. Spark keeps a hundred, the last used:
    # flows, or sizes of ranges, that take turns would compile all of theirs anew each time. Each
    # takes 30 KiB of metaspace, and up to three times as much of compiled code.
    "spark.sql.codegen.cache.maxEntries": "400",
}

_EMBEDDED = {
    # Everything stays on this machine, so its name need not resolve.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

_lock = Lock()
_shared: list[tuple[SparkSession, SparkSettings]] = []
"""The session of this process, if one was started, and with which settings."""


def shared_session(settings: SparkSettings | None = None) -> SparkSession:
    """The one warm session of this process, started when first asked for.

    The settings of the first caller hold: Spark's memory and jars cannot change while it runs. But
    who asks for other settings of Spark's own (`extra`) is given a session that has them, in place
    of the one before. So whoever keeps working asks again for each piece of work and keeps no
    session: one that was stopped, or whose JVM has ended, is replaced here.
    """
    with _lock:
        fits = not _shared or settings is None or settings.extra == _shared[0][1].extra
        if not fits or not runs_jobs():
            # Somebody stopped it, or its JVM ended (out of memory, killed), perhaps while it
            # started: another takes its place.
            _shared.clear()
            discard_jvm()
        if not _shared:
            wanted = settings or SparkSettings()
            _shared.append((start_session(wanted), wanted))
        return _shared[0][0]


def start_session(
    settings: SparkSettings,
    *,
    app_name: str = "hydrotick",
    extra: Mapping[str, str] | None = None,
) -> SparkSession:
    """A Spark session with Delta; `extra` are further options of Spark that win over the settings.

    Raises:
        HydroError: the jars or a Java cannot be had, or Spark does not start; it says what to do.
    """
    _silence_query_log()
    _refuse_connect(settings.master)
    java_home, jars = ready_for(settings)
    options = {"spark.app.name": app_name, **session_options(settings, jars)}
    archive = archive_of(settings.share or default_share(), java_home, jars)
    context = _launched(options, extra or {}, java_home, archive)
    with_fewer_calls(context._jvm)  # noqa: SLF001 - Spark offers no question for it
    if not _is_one_process(settings.master):
        # Nodes of a cluster have PySpark and pyarrow, but not this package.
        context.addPyFile(str(package_archive()))
    session = SparkSession.builder.getOrCreate()
    if settings.shuffle_partitions is None and "spark.sql.shuffle.partitions" not in options:
        session.conf.set("spark.sql.shuffle.partitions", str(context.defaultParallelism))
    return session


def _launched(
    options: Mapping[str, str], extra: Mapping[str, str], java_home: Path, archive: Path | None
) -> SparkContext:
    """A context with these options, of which `extra` win, in a JVM that starts with the archive of
    classes; one that it does not start with is removed.
    """
    flags = " ".join((options[JAVA_FLAGS], *flags_for(archive)))
    quiet = "-Dhydrotick.log.level=OFF" in flags
    try:
        return launch_context({**options, JAVA_FLAGS: flags, **extra}, java_home, quiet=quiet)
    except SessionError:
        if archive is None or JAVA_FLAGS in extra:
            raise
        with suppress(OSError):  # whoever may not write there starts without it each time
            archive.unlink()
        return launch_context({**options, **extra}, java_home, quiet=quiet)


def session_options(settings: SparkSettings, jars: tuple[Path, ...] = ()) -> dict[str, str]:
    options = {
        "spark.master": settings.master,
        **_DELTA,
        **_MEANING,
        **PARQUET,
        **_LEAN,
        **_LONG_LIFE,
        "spark.databricks.delta.properties.defaults.checkpointInterval": str(
            settings.checkpoint_interval
        ),
        "spark.sql.autoBroadcastJoinThreshold": str(settings.broadcast_bytes),
    }
    if jars and _is_one_process(settings.master):
        # An archive may have classes of what a JVM starts with, not of what it is given then.
        options["spark.driver.extraClassPath"] = os.pathsep.join(str(jar) for jar in jars)
    elif jars:
        options[_JARS] = ",".join(str(jar) for jar in jars)
    if settings.shuffle_partitions is not None:
        options["spark.sql.shuffle.partitions"] = str(settings.shuffle_partitions)
    if settings.master.startswith("local"):
        options |= _EMBEDDED
    if not _is_one_process(settings.master):
        options["spark.executor.extraJavaOptions"] = _IN_UTC
    return _with_jars(options | _driver_options(settings), dict(settings.extra))


def _with_jars(options: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """The options and what wins over them; the jars of both are there."""
    jars = [of[_JARS] for of in (options, extra) if of.get(_JARS)]
    return {**options, **extra, **({_JARS: ",".join(jars)} if jars else {})}


def _is_one_process(master: str) -> bool:
    """Whether jobs run within the JVM of the driver: `local`, `local[…]`."""
    return master == "local" or master.startswith("local[")


def _driver_options(settings: SparkSettings) -> dict[str, str]:
    """Heap and the parts beside it, so that together they stay within the granted memory.

    Wherever the jobs run, the driver is a process of this machine.
    """
    heap = max(settings.memory_bytes - _BESIDE_HEAP, _LEAST_HEAP)
    flags = (
        # The collector that needs the least memory beside a heap of this size.
        "-XX:+UseSerialGC",
        "-XX:MaxMetaspaceSize=384m",
        "-XX:ReservedCodeCacheSize=160m",
        "-XX:MaxDirectMemorySize=160m",
        *_LATE_OPTIMIZATION,
        # A broken heap must end the process and with it the tick, not leave half of its threads.
        "-XX:+ExitOnOutOfMemoryError",
        _IN_UTC,
        f'"-Dlog4j2.configurationFile={files("hydro_core.spark.session") / "log4j2.properties"}"',
        f"-Dhydrotick.log.level={settings.log_level}",
    )
    return {
        "spark.driver.memory": f"{heap // MEBIBYTE}m",
        JAVA_FLAGS: " ".join(flags),
    }


def _refuse_connect(master: str) -> None:
    if master.startswith("sc://"):
        raise SessionError.of(
            "config",
            f"Spark runs at `{master}`, a Spark Connect server: it has no driver in this process, "
            "which ticks need to commit their tables",
            help="set HYDROTICK_SPARK_MASTER (or `master`) to `local[*]`, `spark://HOST:PORT` or "
            "another of Spark's masters",
        )


def _silence_query_log() -> None:
    """Errors reach the caller as exceptions; PySpark would print each of them as JSON as well, and
    its link to the JVM every interrupt with its traceback.
    """
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_of_the_link)


def _is_not_of_the_link(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


# The sessions that stand beside the shared one in its process, each with settings for its work.
#
# Whoever wants a session gets it here, or from `hydro_core.spark.session.session`, which starts
# the shared one. What was set on that after it was started a new session does not inherit.


_FEW_ROWS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A side that is sent to all tasks is a job of its own.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Spark takes a join of joins for as large as the product of all that is in it.
    "spark.sql.maxSinglePartitionBytes": str(2**63 - 1),
    # A leaf of a kept plan, of which it knows no size, it takes for as large as can be; with any
    # other number than this one the product of some joins would be that large, too.
    "spark.sql.defaultSizeInBytes": "1",
    # The one moves a join below what brings the rows into one partition, and then needs an
    # exchange; the other computes results of all rows apart, as queries within the query.
    "spark.sql.optimizer.excludedRules": (
        "org.apache.spark.sql.catalyst.optimizer.PushDownLeftSemiAntiJoin,"
        "org.apache.spark.sql.catalyst.optimizer.MergeSubplans"
    ),
}
"""What differs in a session for few rows."""

_COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""What differs again where a plan is kept, and its rows are not so few."""

_SMALL = {
    # Its estimates and its stages cost more than a small job does; sizes of files are known.
    "spark.sql.adaptive.enabled": "false",
}
"""What differs in a session for small ranges."""

_FILES = {
    # What folders are called is text, and cast where it is wanted.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""What differs in a session that reads files."""

_SET_LATER = ("spark.sql.shuffle.partitions",)

_sessions: WeakSet[SparkSession] = WeakSet()
"""Those for few rows."""


@lru_cache(maxsize=4)
def few_rows_session(spark: SparkSession) -> SparkSession:
    """A session for few rows: everything is in one partition, nothing is compiled."""
    return for_few_rows(spark.newSession())


@lru_cache(maxsize=4)
def compiling_session(spark: SparkSession) -> SparkSession:
    """The same for plans that are kept: what they are compiled to is worth its price."""
    return _with(for_few_rows(spark.newSession()), _COMPILED)


@lru_cache(maxsize=4)
def small_ranges_session(spark: SparkSession) -> SparkSession:
    """A session for small ranges, whose rows are not so few."""
    later = {key: value for key in _SET_LATER if (value := spark.conf.get(key, None)) is not None}
    return _with(spark.newSession(), {**later, **_SMALL})


def files_session(spark: SparkSession) -> SparkSession:
    """A session for one run over files, which may have further settings of its own."""
    return _with(spark.newSession(), _FILES)


def for_few_rows(session: SparkSession) -> SparkSession:
    """Makes a session one for few rows, and gives it."""
    _sessions.add(session)
    return _with(session, _FEW_ROWS)


def has_few_rows(session: SparkSession) -> bool:
    return session in _sessions


def _with(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    for key, value in settings.items():
        session.conf.set(key, value)
    return session


# The Pythons of Spark's executors: they run functions of programs, and read files of stores.


_NEEDED = ("numpy", "obstore", "pyarrow", "pyspark")


@dataclass(frozen=True, slots=True)
class ExecutorPython:
    host: str
    version: str
    lacks: tuple[str, ...]
    """The packages that are needed there, and are not."""

    refused: tuple[str, ...] = ()
    """What stores say to it of which it was to list something."""

    @property
    def fits(self) -> bool:
        """Whether it is as the one of the driver, and has what it needs."""
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        return not self.lacks and self.version == here


def executor_pythons(
    settings: SparkSettings, places: Sequence[RemotePath] = ()
) -> list[ExecutorPython]:
    """Those that a small job finds; it runs on all executors that are there.

    Args:
        settings: where Spark runs.
        places: what they are to list, one by one.

    Raises:
        HydroError: Spark cannot be started, or the job fails.
    """
    session = shared_session(settings)
    needed = _NEEDED

    def listed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import platform
        from importlib.util import find_spec

        for _ in batches:
            lacks = [name for name in needed if find_spec(name) is None]
            refused = [] if lacks else _refused(places)
            version = ".".join(platform.python_version_tuple()[:2])
            row: dict[str, Any] = {"host": [platform.node()], "version": [version]}
            row |= {"lacks": [" ".join(lacks)], "refused": ["\n".join(refused)]}
            yield pa.RecordBatch.from_pydict(row)

    tasks = max(2, 2 * session.sparkContext.defaultParallelism)
    schema = "host string, version string, lacks string, refused string"
    try:
        rows = session.range(0, tasks, 1, tasks).mapInArrow(listed, schema).distinct().collect()
    except Exception as error:
        raise data_error(error) from error
    return [
        ExecutorPython(r.host, r.version, tuple(r.lacks.split()), tuple(r.refused.splitlines()))
        for r in sorted(rows)
    ]


def _refused(places: Sequence[RemotePath]) -> list[str]:
    """What stores say of these places, each on a line; runs where the executor does."""
    found = []
    for place in places:
        try:
            next(place.files(), None)
        except HydroError as error:
            found += [" ".join(listed.says().split()) for listed in error.diagnostics]
    return found
