"""The machine's certificate authorities as a trust store for a Java that came from a wheel.

Such a Java trusts the authorities that it was built with; a machine may have its own, such as a company's. They are
where Python's `ssl`, and so pip, finds them.
"""

from __future__ import annotations

import ssl
from pathlib import Path

_PASSWORD = "changeit"  # noqa: S105 - Java's convention for stores that hold nothing secret

_USUAL_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)


def trust_options(store: Path) -> str:
    """Writes the machine's authorities into the store; gives the JVM's flags for it, none if there is no bundle."""
    bundle = _bundle()
    if bundle is None:
        return ""
    # Imported late: needed once, at set-up.
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    authorities = x509.load_pem_x509_certificates(bundle.read_bytes())
    named = [pkcs12.PKCS12Certificate(one, str(i).encode()) for i, one in enumerate(authorities)]
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
