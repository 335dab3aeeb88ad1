"""The machine's certificate authorities as a trust store for a Java that came from a wheel.

Such a Java trusts the authorities that it was built with; a machine may have its own, such as a
company's. They are where Python's `ssl`, and so pip, finds them.
"""

from __future__ import annotations

import contextlib
import re
import ssl
import warnings
from pathlib import Path

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
