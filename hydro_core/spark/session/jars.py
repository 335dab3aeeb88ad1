"""The jars of Delta and of object stores: resolved once by Spark's own package resolution, then
files that every session starts with, or is given when it first meets a store.

Sessions that name packages instead resolve them each time: two seconds, and a network. This module
is the process that fetches them: `hydro_core.spark.session.ready` starts it where they are missing.

A Java that came from a wheel trusts the certificate authorities that it was built with; a machine
may have its own, such as a company's. It is given those that Python's `ssl`, and so pip, finds.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import ssl
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from hydro_core.spark.session.java import find_java

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


@dataclass(frozen=True, slots=True)
class Packages:
    """What is resolved together: the jars of Delta, or of Hadoop's file system for a store."""

    what: str
    names: tuple[str, ...]
    excluded: tuple[str, ...]
    folder: str
    """Where they are in the directory that has them all."""
    first: str
    """The beginning of the name of one of them: where it is, they all are."""

    def jars(self, share: Path) -> tuple[Path, ...]:
        """Those that were fetched, in order; none if they are missing, or of another version."""
        jars = tuple(sorted((share / self.folder).glob("*.jar")))
        return jars if any(self.first in jar.name for jar in jars) else ()


DELTA = Packages(
    f"Delta {DELTA_VERSION}",
    (DELTA_PACKAGE,),
    _EXCLUDED,
    "jars",
    f"delta-spark_4.2_2.13-{DELTA_VERSION}",
)

HADOOP_VERSION = "3.5.0"
"""That of the Hadoop in PySpark: another one's file systems do not fit."""
_SDK_VERSION = "2.35.4"
_OF_SPARK = ("org.slf4j:*", "org.apache.hadoop:hadoop-common")
_SDK = "software.amazon.awssdk"
_S3 = Packages(
    f"S3 in Hadoop {HADOOP_VERSION}",
    (
        f"org.apache.hadoop:hadoop-aws:{HADOOP_VERSION}",
        *(f"{_SDK}:{name}:{_SDK_VERSION}" for name in ("s3-transfer-manager", "sts")),
        f"{_SDK}:apache-client:{_SDK_VERSION}",
    ),
    # The whole SDK is 686 MB, of which these three are all that is used.
    (f"{_SDK}:bundle", f"{_SDK}:netty-nio-client", *_OF_SPARK),
    "stores/s3",
    f"hadoop-aws-{HADOOP_VERSION}",
)
_AZURE = Packages(
    f"Azure in Hadoop {HADOOP_VERSION}",
    (f"org.apache.hadoop:hadoop-azure:{HADOOP_VERSION}",),
    ("com.fasterxml.jackson.*:*", *_OF_SPARK),
    "stores/azure",
    f"hadoop-azure-{HADOOP_VERSION}",
)
STORES = {"s3": _S3, "azure": _AZURE}
"""The packages by kinds of store. Google's file system is one jar, which its users name."""
_ALL = {"delta": DELTA, **STORES}


def fetch_jars(share: Path, scratch: Path, packages: Packages = DELTA) -> None:
    """Resolves the jars by a first Spark start, and puts them in place as a whole.

    Args:
        share: the directory that is to have them.
        scratch: a directory of the same file system that they come to first.
        packages: which ones.

    Raises:
        SessionError: there is no Java, or the packages cannot be had.
    """
    # Imported late: these need Spark, while looking for the jars does not.
    from hydro_core.spark.session.launch import SessionError, launch_context

    java_home = find_java(share)
    if java_home is None:
        what = "there is no Java to resolve packages with"
        raise SessionError.of("config", what, help="install one")
    scratch.mkdir(parents=True)
    launch_context(_options(scratch, java_home, share, packages), java_home).stop()
    new = scratch / "new"
    new.mkdir()
    for jar in (scratch / "jars").glob("*.jar"):
        shutil.copy(jar, new)
    place = share / packages.folder
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    new.rename(place)


def _options(scratch: Path, java_home: Path, share: Path, packages: Packages) -> dict[str, str]:
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
        "spark.jars.packages": ",".join(packages.names),
        "spark.jars.excludes": ",".join(packages.excluded),
    }


def main(share: Path, scratch: Path, which: str) -> int:
    """Fetches jars; on standard error it says why it cannot."""
    from hydro_core.spark.session.launch import SessionError

    try:
        fetch_jars(share, scratch, _ALL[which])
    except SessionError as error:
        printed = error.diagnostics[0].message
        lines = [line.strip() for line in printed.splitlines()]
        why = dict.fromkeys(line for line in lines if line.startswith(_TELLING))
        sys.stderr.write(("\n".join(why) or printed) + "\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))


_PASSWORD = "changeit"  # noqa: S105 - Java's convention for stores that hold nothing secret

_CERTIFICATE = re.compile(b"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)

_USUAL_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)


def trust_options(store: Path) -> str:
    """The JVM's flags to trust the machine's authorities, which it writes into the store.

    None where the machine has no bundle of them that is known.
    """
    bundle = _bundle()
    if bundle is None:
        return ""
    # Imported late: needed once, at set-up.
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    named = []
    for number, text in enumerate(_CERTIFICATE.findall(bundle.read_bytes())):
        # A bundle may hold an old certificate that is not quite to the letter: warned of, or left
        # out.
        with warnings.catch_warnings(action="ignore"), contextlib.suppress(ValueError):
            authority = x509.load_pem_x509_certificate(text)
            named.append(pkcs12.PKCS12Certificate(authority, f"authority-{number}".encode()))
    store.write_bytes(
        pkcs12.serialize_java_truststore(named, BestAvailableEncryption(_PASSWORD.encode()))
    )
    return (
        f"-Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStoreType=PKCS12 "
        f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}"
    )


def _bundle() -> Path | None:
    default = ssl.get_default_verify_paths().cafile
    candidates = [default] if default else []
    return next((Path(c) for c in (*candidates, *_USUAL_BUNDLES) if Path(c).is_file()), None)
