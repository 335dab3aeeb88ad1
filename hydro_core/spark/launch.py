"""Starting the JVM that Spark runs in, so that a user sees nothing of it unless it fails.

PySpark finds Spark, Java and Python by the environment; here they are those of this installation,
and the environment is as before when the JVM runs. What the JVM prints while it starts is kept for
the error message.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from hydro_core.errors import Diagnostic, HydroError

_REPORTED_BYTES = 4000

# One arena per thread, glibc's habit, costs a JVM of some fifty threads hundreds of MiB.
_ARENAS = "2"

# Spark starts a first small JVM that only composes the command line of the real one.
_COMPOSER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


class SessionError(HydroError):
    """Spark cannot be started: what is missing or wrong, and the cure."""

    def __init__(self, message: str, cure: str) -> None:
        super().__init__(Diagnostic(code="config", message=message, help=cure))
        self.message = message


def launch_context(
    options: Mapping[str, str], java_home: Path, *, quiet: bool = True
) -> SparkContext:
    """A Spark context with these options, in a JVM of that Java.

    `quiet`: nothing of what the JVM prints reaches the terminal.
    """
    conf = SparkConf(loadDefaults=False)
    for key, value in options.items():
        conf.set(key, value)
    with tempfile.TemporaryFile() as printed, _environment(java_home):
        try:
            if SparkContext._gateway is None:  # noqa: SLF001 - Spark offers no question for it
                kwargs = {"stdout": printed, "stderr": printed} if quiet else {}
                gateway = launch_gateway(conf, popen_kwargs=kwargs)  # type: ignore[no-untyped-call]
                return SparkContext(conf=conf, gateway=gateway)
            return SparkContext(conf=conf)
        except PySparkRuntimeError as error:
            raise SessionError(
                f"Spark's JVM ended while it started:\n{_tail(printed) or error}",
                f"see that `{java_home}/bin/java -version` works and that there is memory for it",
            ) from error


@contextmanager
def _environment(java_home: Path) -> Iterator[None]:
    """The environment in which PySpark finds this installation's Spark, Java, Python and log."""
    home = Path(pyspark.__file__).parent
    wanted = {
        "JAVA_HOME": str(java_home),
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(home / "conf"),
        "SPARK_LAUNCHER_OPTS": _COMPOSER_OPTIONS,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "pyspark-shell",
        "MALLOC_ARENA_MAX": _ARENAS,
    }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _tail(printed: IO[bytes]) -> str:
    size = printed.seek(0, os.SEEK_END)
    printed.seek(max(0, size - _REPORTED_BYTES))
    return printed.read().decode(errors="replace").strip()
