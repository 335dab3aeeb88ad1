"""The Delta jars: resolved once by Spark's own package resolution, then files that every session
starts with.

Sessions that name packages instead resolve them each time: two seconds, and a network. This module
is the process that fetches them: `hydro_core.spark.session.ready` starts it where they are missing.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from hydro_core.spark.session.java import find_java
from hydro_core.spark.session.trust import trust_options

DELTA_VERSION = "4.4.0"
DELTA_PACKAGE = f"io.delta:delta-spark_4.2_2.13:{DELTA_VERSION}"

# Delta names all that it was built with, 87 MB. Spark ships these itself, or nothing that is used
# here needs them.
_EXCLUDED = (
    "com.fasterxml.jackson.*:*",
    "com.github.luben:*",
    "com.google.code.findbugs:*",
    "commons-logging:*",
    "commons-pool:*",
    "io.airlift:*",
    "io.unitycatalog:*",
    "javax.annotation:*",
    "org.apache.hadoop:*",
    "org.apache.logging.log4j:*",
    "org.apache.parquet:*",
    "org.locationtech.jts:*",
    "org.roaringbitmap:*",
    "org.slf4j:*",
    "org.xerial.snappy:*",
)

_TELLING = ("Server access error", "Host ", "Exception in", "Caused by: ", "unresolved ")


def delta_jars(share: Path) -> tuple[Path, ...]:
    """The jars that were fetched, in order; none if those of this Delta version are missing."""
    jars = tuple(sorted((share / "jars").glob("*.jar")))
    complete = any(f"delta-spark_4.2_2.13-{DELTA_VERSION}" in jar.name for jar in jars)
    return jars if complete else ()


def fetch_jars(share: Path, scratch: Path) -> None:
    """Resolves the jars by a first Spark start, and puts them in place as a whole.

    Args:
        share: the directory that is to have them.
        scratch: a directory of the same file system that they come to first.

    Raises:
        SessionError: there is no Java, or the packages cannot be had.
    """
    # Imported late: these need Spark, while looking for the jars does not.
    from hydro_core.spark.session.launch import SessionError, launch_context

    java_home = find_java(share)
    if java_home is None:
        raise SessionError("there is no Java to resolve packages with", "install one")
    scratch.mkdir(parents=True)
    launch_context(_options(scratch, java_home, share), java_home).stop()
    new = scratch / "new"
    new.mkdir()
    for jar in (scratch / "jars").glob("*.jar"):
        shutil.copy(jar, new)
    shutil.rmtree(share / "jars", ignore_errors=True)
    new.rename(share / "jars")


def _options(scratch: Path, java_home: Path, share: Path) -> dict[str, str]:
    # The machine's own Java knows the machine's certificate authorities, one from a wheel has to be
    # told.
    ours = java_home == share / "jdk"
    return {
        "spark.app.name": "hydrotick set-up",
        "spark.master": "local[1]",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": trust_options(scratch / "authorities.p12") if ours else "",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.jars.ivy": str(scratch),
        "spark.jars.packages": DELTA_PACKAGE,
        "spark.jars.excludes": ",".join(_EXCLUDED),
    }


def _reasons(printed: str) -> str:
    """The lines of Spark's report that say why; all of it if none does."""
    lines = [line.strip() for line in printed.splitlines()]
    why = [line for line in lines if line.startswith(_TELLING)]
    return "\n".join(dict.fromkeys(why)) or printed


def main(share: Path, scratch: Path) -> int:
    """Fetches the jars; on standard error it says why it cannot."""
    from hydro_core.spark.session.launch import SessionError

    try:
        fetch_jars(share, scratch)
    except SessionError as error:
        sys.stderr.write(f"{_reasons(error.message)}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
