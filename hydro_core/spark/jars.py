"""The Delta jars: resolved once by Spark's own package resolution, then files that every session
starts with.

Sessions that name packages instead resolve them each time: two seconds, and a network. `python -m
hydro_core.spark.jars` fetches them into the environment, and does nothing when they are there.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from hydro_core.spark.java import default_share, find_java
from hydro_core.spark.trust import trust_options

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


def delta_jars(share: Path) -> tuple[Path, ...]:
    """The jars that were fetched, in order; none if those of this Delta version are missing."""
    jars = tuple(sorted((share / "jars").glob("*.jar")))
    complete = any(f"delta-spark_4.2_2.13-{DELTA_VERSION}" in jar.name for jar in jars)
    return jars if complete else ()


def fetch_jars(share: Path) -> tuple[Path, ...]:
    """Resolves the jars by a first Spark start, puts them in place as a whole, and gives their
    paths.

    Raises:
        SessionError: there is no Java, or the packages cannot be had; it says what to do.
    """
    # Imported late: these need Spark, while looking for the jars does not.
    from hydro_core.spark.launch import SessionError, launch_context

    java_home = find_java(share)
    if java_home is None:
        raise SessionError(
            "there is no Java to resolve packages with",
            "run `python -m hydro_core.spark.java`",
        )
    share.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=share) as scratch:
        try:
            launch_context(_options(Path(scratch), java_home, share), java_home).stop()
        except SessionError as error:
            raise SessionError(
                f"Spark could not resolve {DELTA_PACKAGE}:\n{_reasons(error.message)}",
                "see that this machine reaches Maven Central, and try again; it is needed once",
            ) from error
        new = share / "jars.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        for jar in (Path(scratch) / "jars").glob("*.jar"):
            shutil.copy(jar, new)
        shutil.rmtree(share / "jars", ignore_errors=True)
        new.rename(share / "jars")
    return delta_jars(share)


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
    why = [
        line for line in lines if line.startswith(("Server access error", "Host ", "Exception in"))
    ]
    return "\n".join(dict.fromkeys(why)) or printed


def main() -> int:
    """Fetches the jars unless they are there, and prints where they are."""
    from hydro_core.spark.launch import SessionError

    share = default_share()
    try:
        jars = delta_jars(share) or fetch_jars(share)
    except SessionError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if not jars:
        sys.stderr.write(
            f"Spark resolved {DELTA_PACKAGE}, but its jar is not in {share / 'jars'}\n"
        )
        return 1
    sys.stdout.write(f"{share / 'jars'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
