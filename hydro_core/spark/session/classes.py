"""An archive of the classes that Spark loads, which every JVM that fits it starts with.

Half of what a JVM takes to come to its first small job goes into reading, verifying and linking
some twenty thousand classes from jars. An archive of Java's (AppCDS) has them as they are in
memory. It is made once, by `hydrotick ready`, in a JVM that does a small piece of a tick's work and
writes at its end what it has loaded. A JVM looks at it by itself, and does without where it is
broken or of another Java, other jars, or other paths.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hydro_core.settings import MEBIBYTE

_SECONDS_TO_MAKE = 600


def archive_of(share: Path, java_home: Path, jars: Sequence[Path]) -> Path | None:
    """The archive for a Java and the jars that Spark starts with; None where there is none, or one
    that is not as long as it was.
    """
    for archive in _places(share).glob(f"{_number(java_home, jars)}-*.jsa"):
        if archive.stem.rpartition("-")[2] == str(archive.stat().st_size):
            return archive
    return None


def flags_for(archive: Path | None) -> tuple[str, ...]:
    """The flags by which a JVM starts with the archive, none where there is none."""
    if archive is None:
        return ()
    # What does not fit is left alone, and of that nothing is printed.
    return ("-Xshare:auto", f'"-XX:SharedArchiveFile={archive}"', "-Xlog:disable")


def make_archive(share: Path, java_home: Path, jars: Sequence[Path]) -> str:
    """Makes the archive in a process of its own; says how large it is, or why there is none.

    Args:
        share: the directory of the jars, which the archive goes to as a whole.
        java_home: the Java that it is for.
        jars: those that Spark starts with.
    """
    places, number = _places(share), _number(java_home, jars)
    places.mkdir(parents=True, exist_ok=True)
    part, began = places / f"{number}.{os.getpid()}", time.monotonic()
    command = [sys.executable, "-m", "hydro_core.spark.session.training", str(share), str(part)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_SECONDS_TO_MAKE
        )
    except subprocess.TimeoutExpired:
        return f"no archive of classes was made in {_SECONDS_TO_MAKE} s"
    if done.returncode or not part.is_file():
        part.unlink(missing_ok=True)
        return f"no archive of classes could be made: {done.stderr.strip()[-500:]}"
    for other in places.glob("*.jsa"):
        other.unlink()
    size, seconds = part.stat().st_size, time.monotonic() - began
    part.replace(places / f"{number}-{size}.jsa")
    return f"an archive of classes, {size // MEBIBYTE} MiB, after {seconds:.0f} s"


def _places(share: Path) -> Path:
    return share / "classes"


def _number(java_home: Path, jars: Sequence[Path]) -> str:
    """Names a Java, the jars, and where Spark is."""
    from pyspark import __version__

    release = java_home / "release"
    known = [str(java_home.resolve()), sys.prefix, __version__, *(jar.name for jar in jars)]
    known.append(release.read_text(errors="replace") if release.is_file() else "")
    return hashlib.sha256("\0".join(known).encode()).hexdigest()[:16]
