"""Settings of object stores, and their form for each library that reaches one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

# Settings of object stores: `[storage]` of hydrotick.toml, for all libraries.
#
# Three libraries reach a store: obstore, delta-rs and Hadoop's file systems. Each has its own names
# for the same settings; the functions below translate. No setting is a secret: credentials are
# found where these libraries look by default (`credentials`).


PATIENCE = 150
"""Seconds in which a request to a slow or throttling store (429, 503) is repeated. That is more
than the minute that a busy store takes to recover, and short enough for people.
"""


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """The settings of a project's stores; None leaves one to the libraries' defaults."""

    endpoint: str | None = None
    """The URL of a server of the S3 protocol that is not Amazon's."""
    region: str | None = None
    """The region of the buckets."""
    profile: str | None = None
    """The profile of the shared files of AWS that has the credentials."""
    anonymous: bool = False
    """True if requests are not signed, for public buckets."""
    derived: str | None = None
    """The local directory for derived data of stores, which can be recomputed."""
    patience: int = PATIENCE
    """Seconds in which a failed request to a store is repeated."""

    def where(self, environ: Mapping[str, str]) -> StorageSettings:
        """The same, with values of the environment for the settings that are None."""
        endpoint = _first(environ, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
        return replace(
            self,
            endpoint=self.endpoint or endpoint,
            region=self.region or _first(environ, "AWS_REGION", "AWS_DEFAULT_REGION"),
            profile=self.profile or _first(environ, "AWS_PROFILE"),
        )


def _first(environ: Mapping[str, str], *names: str) -> str | None:
    return next((environ[name] for name in names if environ.get(name)), None)


# The settings of a store in the words of each library that reaches it.


KINDS = {
    "s3": "s3",
    "s3a": "s3",
    "abfs": "azure",
    "abfss": "azure",
    "gs": "gs",
}
"""The kind of store by the scheme of a URL."""

HADOOP_SCHEMES = {"s3": "s3a", "azure": "abfss", "gs": "gs"}
"""The scheme of Hadoop's file system by the kind of store."""

_RETRIES = 1_000
"""More retries than fit into the time limit: the time ends them."""
_LONGEST_PAUSE = 5
_S3_FACTORY = "org.apache.hadoop.fs.s3a"


def for_obstore(kind: str, settings: StorageSettings) -> dict[str, Any]:
    """The arguments of obstore's stores."""
    retries = {
        "max_retries": _RETRIES,
        "retry_timeout": timedelta(seconds=settings.patience),
        "backoff": {"max_backoff": timedelta(seconds=_LONGEST_PAUSE)},
    }
    client = {"allow_http": _is_http(settings), "timeout": timedelta(seconds=settings.patience)}
    config: dict[str, Any] = {}
    if settings.anonymous:
        config["skip_signature"] = True
    if kind == "s3":
        config |= {"endpoint": settings.endpoint} if settings.endpoint else {}
        config |= {"region": settings.region} if settings.region else {}
    return {"config": config, "client_options": client, "retry_config": retries}


def for_delta(kind: str, settings: StorageSettings) -> dict[str, str]:
    """The `storage_options` of delta-rs."""
    options = {
        "max_retries": str(_RETRIES),
        "retry_timeout": f"{settings.patience}s",
        "backoff_config.max_backoff": f"{_LONGEST_PAUSE}s",
        "timeout": f"{settings.patience}s",
    }
    if kind != "s3":
        return options
    said = {
        "aws_endpoint_url": settings.endpoint,
        "aws_region": settings.region,
        "aws_allow_http": "true" if _is_http(settings) else None,
        "aws_skip_signature": "true" if settings.anonymous else None,
    }
    return options | {name: value for name, value in said.items() if value}


def for_hadoop(kind: str, bucket: str, settings: StorageSettings) -> dict[str, str]:
    """The properties of Hadoop's file system for a bucket, and for no other."""
    if kind != "s3":
        return {}
    signer = (
        f"{_S3_FACTORY}.AnonymousAWSCredentialsProvider"
        if settings.anonymous
        else "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
    )
    said = {
        "endpoint": settings.endpoint,
        "endpoint.region": settings.region,
        "path.style.access": "true" if settings.endpoint else None,
        "connection.ssl.enabled": "false" if _is_http(settings) else None,
        "aws.credentials.provider": signer,
        # The pause begins with half a second and doubles.
        "retry.throttle.limit": str(max(8, settings.patience // 6)),
        "attempts.maximum": "10",
    }
    of_bucket = {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in said.items() if value}
    return {**of_bucket, "fs.s3.impl": f"{_S3_FACTORY}.S3AFileSystem"}


def _is_http(settings: StorageSettings) -> bool:
    return settings.endpoint is not None and settings.endpoint.startswith("http://")
