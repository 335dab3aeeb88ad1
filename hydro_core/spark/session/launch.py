"""Starting the JVM that Spark runs in, so that a user sees nothing of it unless it fails.

PySpark finds Spark, Java and Python by the environment; here they are those of this installation,
and the environment is as before when the JVM runs. What the JVM prints while it starts is kept for
the error message.
"""

from __future__ import annotations

import atexit
import locale
import os
import pwd
import shutil
import signal
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pyspark
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from hydro_core.errors import InfrastructureError

_REPORTED_BYTES = 4000
JAVA_FLAGS = "spark.driver.extraJavaOptions"

# One arena per thread, glibc's habit, costs a JVM of some fifty threads hundreds of MiB.
_ARENAS = "2"

# A JVM takes the names of files by its locale: without UTF-8 (`LC_ALL=C`) it finds no `größe.csv`.
_UTF_8_NAMES = (
    {} if locale.nl_langinfo(locale.CODESET).upper() == "UTF-8" else {"LC_ALL": "C.UTF-8"}
)

# Spark starts a first small JVM that only composes the command line of the real one.
_COMPOSER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


class SessionError(InfrastructureError):
    """Spark cannot be started: what is missing or wrong, and the cure."""


def launch_context(
    options: Mapping[str, str], java_home: Path, *, quiet: bool = True
) -> SparkContext:
    """A Spark context with these options, in a JVM of that Java.

    `quiet`: nothing of what the JVM prints reaches the terminal.
    """
    conf = SparkConf(loadDefaults=False)
    name = _name_for_the_nameless()
    wanted = options if name is None else {**options, **_known_as(name, options)}
    for key, value in wanted.items():
        conf.set(key, value)
    with tempfile.TemporaryFile() as printed, _environment(java_home):
        try:
            if SparkContext._gateway is None:  # noqa: SLF001 - Spark offers no question for it
                kwargs = {"stdout": printed, "stderr": printed} if quiet else {}
                with _interrupts_wait():
                    gateway = launch_gateway(  # type: ignore[no-untyped-call]
                        conf, popen_kwargs=kwargs
                    )
                if name is not None:
                    users = gateway.jvm.org.apache.hadoop.security.UserGroupInformation
                    users.setLoginUser(users.createRemoteUser(name))
                return SparkContext(conf=conf, gateway=gateway)
            return SparkContext(conf=conf)
        except (PySparkRuntimeError, Py4JNetworkError) as error:
            raise SessionError.of(
                "config",
                f"Spark's JVM ended while it started:\n{_tail(printed) or error}",
                help=f"see that `{java_home}/bin/java -version` works and that there is memory "
                "for it",
            ) from error


def _name_for_the_nameless() -> str | None:
    """What a JVM is to call the user where the machine has no name of it: containers are run by
    numbers, and there neither Spark nor Hadoop starts by itself. None where it has one.
    """
    number = os.getuid()
    try:
        pwd.getpwuid(number)
    except KeyError:
        return os.environ.get("SPARK_USER") or f"user{number}"
    return None


def _known_as(name: str, options: Mapping[str, str]) -> dict[str, str]:
    """Options that say of a user what the machine does not: the name, and a home."""
    home = os.environ.get("HOME", "")
    folder = home if os.access(home, os.W_OK) else tempfile.gettempdir()
    flags = f'{options.get(JAVA_FLAGS, "")} -Duser.name={name} "-Duser.home={folder}"'
    return {JAVA_FLAGS: flags, "spark.jars.ivy": str(Path(folder) / ".ivy2")}


def package_archive() -> Path:
    """This package as an archive of Python files, for processes on other machines."""
    root = Path(__file__).parents[2]
    target = Path(tempfile.mkdtemp(prefix="hydrotick-")) / "hydro_core.zip"
    atexit.register(shutil.rmtree, target.parent, ignore_errors=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*.py")):
            archive.write(file, Path(root.name) / file.relative_to(root))
    return target


def runs_jobs() -> bool:
    """Whether the Spark context of this process can run jobs: nobody stopped it, its JVM lives."""
    context = SparkContext._active_spark_context  # noqa: SLF001 - Spark offers no question for it
    if context is None or context._jsc is None or jvm_process() is None:  # noqa: SLF001
        return False
    try:
        return not context._jsc.sc().isStopped()  # noqa: SLF001
    except (Py4JError, OSError):
        return False


def jvm_process() -> int | None:
    """The number of the process that is Spark's JVM; None if there is none, or if it has ended."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001
    process = getattr(gateway, "proc", None)
    return process.pid if process is not None and process.poll() is None else None


def discard_jvm() -> None:
    """Makes PySpark forget a context that was stopped and, where it has ended, its JVM."""
    context: Any = SparkContext._active_spark_context  # noqa: SLF001
    # Killed a moment ago, its process may still be there: what counts is whether it answers.
    ended = not _jvm_answers()
    if context is not None:
        if ended:
            # There is nobody to be told of the end.
            context._jsc = None  # noqa: SLF001
        context.stop()
    SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001
    if ended and SparkContext._gateway is not None:  # noqa: SLF001
        with suppress(Py4JError, OSError):
            SparkContext._gateway.shutdown()  # noqa: SLF001
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001


def _jvm_answers() -> bool:
    jvm: Any = SparkContext._jvm  # noqa: SLF001
    if jvm is None or jvm_process() is None:
        return False
    try:
        return bool(jvm.System.nanoTime())
    except (Py4JError, OSError):
        return False


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Within it Ctrl-C waits: a JVM that nobody waits for while it starts stays for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: came.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came.is_set():
            signal.raise_signal(signal.SIGINT)


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
        **_UTF_8_NAMES,
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
