"""How object stores are reached: what `[storage]` of hydrotick.toml says, once for all libraries.

Three libraries reach a store: obstore, delta-rs and Hadoop's file systems. Each has names of its
own for the same things; `options` translates. There is no secret among the settings: credentials
are found where these libraries look by default (`credentials`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

PATIENCE = 150
"""Seconds in which a store that is slow, or asks for patience (429, 503), is asked again. It is
more than the minute that a busy store takes to come back, and less than makes people wonder."""


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """How the stores of a project are reached; None leaves it to the libraries' defaults."""

    endpoint: str | None = None
    """The URL of a server of the S3 protocol that is not Amazon's."""
    region: str | None = None
    """The region of the buckets."""
    profile: str | None = None
    """The profile of the shared files of AWS that has the credentials."""
    anonymous: bool = False
    """Whether nothing is signed: public buckets."""
    derived: str | None = None
    """The directory of this machine for what can be made again of what is in stores."""
    patience: int = PATIENCE
    """Seconds in which a store that does not answer as it should is asked again."""

    def where(self, environ: Mapping[str, str]) -> StorageSettings:
        """The same with what the environment says where these are silent."""
        endpoint = _first(environ, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
        return replace(
            self,
            endpoint=self.endpoint or endpoint,
            region=self.region or _first(environ, "AWS_REGION", "AWS_DEFAULT_REGION"),
            profile=self.profile or _first(environ, "AWS_PROFILE"),
        )


def _first(environ: Mapping[str, str], *names: str) -> str | None:
    return next((environ[name] for name in names if environ.get(name)), None)
