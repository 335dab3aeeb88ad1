"""Credentials for a store, from the places where people have them; hydrotick stores none.

obstore finds credentials in the environment, of web identities, containers and instance roles. It
does not read the shared files of AWS: their keys are read here, and everything else in them (SSO, a
role, a command) is left to boto3, where it is installed.
"""

from __future__ import annotations

import configparser
import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from hydro_core.errors import InfrastructureError
from hydro_core.storage.settings import StorageSettings

_OF_ENVIRONMENT = (
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    ("AWS_WEB_IDENTITY_TOKEN_FILE",),
    ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",),
    ("AWS_CONTAINER_CREDENTIALS_FULL_URI",),
)
"""Environment variables by which obstore finds credentials without a request to the machine."""
_METADATA = "http://169.254.169.254"
_SECONDS_TO_ANSWER = 1.0
_SECONDS_WITHOUT = 10.0
"""The seconds until a machine that did not answer is asked again: it may have been slow."""
_ANSWERS: dict[str, tuple[bool, float]] = {}
"""By endpoint, whether it answered, and the moment at which it was asked."""

CURE = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE for a profile of "
    "`~/.aws/credentials`, or run where an instance role gives them; for a public bucket write "
    "`anonymous = true` in `[storage]`"
)

Provider = Callable[[], Mapping[str, Any]]


def s3_credentials(settings: StorageSettings) -> Provider | None:
    """The provider of credentials for obstore; None: obstore finds them by itself.

    Raises:
        InfrastructureError: there are none, or the profile has none (code `config`).
    """
    if settings.anonymous or (not settings.profile and _in_environment()):
        return None
    found = _of_profile(settings.profile)
    if found is not None:
        return found
    if not _machine_answers(os.environ.get("AWS_METADATA_ENDPOINT") or _METADATA):
        raise no_credentials("there are no credentials for S3")
    return None


def no_credentials(what: str) -> InfrastructureError:
    return InfrastructureError.of("config", what, help=CURE)


def _in_environment() -> bool:
    return any(all(os.environ.get(name) for name in names) for names in _OF_ENVIRONMENT)


def _of_profile(profile: str | None) -> Provider | None:
    """The keys of a profile of the shared files; None: no profile is named, and there is no
    default.

    They are read at each request, so changed keys need no restart.
    """
    name = profile or "default"
    said = _said(name)
    if not said:
        if profile:
            raise no_credentials(f"there is no profile `{profile}` in the shared files of AWS")
        return None
    if "aws_access_key_id" in said:
        return lambda: _keys(_said(name))
    try:
        from boto3.session import Session  # type: ignore[import-untyped]
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        if not profile:
            return None
        raise no_credentials(
            f"the profile `{profile}` has no keys, and only boto3 gets them in another way"
        ) from None
    found: Any = Boto3CredentialProvider(Session(profile_name=name))
    return found  # type: ignore[no-any-return]


def _said(profile: str) -> Mapping[str, str]:
    """The settings of a profile in the shared files."""
    found: dict[str, str] = {}
    home = Path.home() / ".aws"
    files = (
        (os.environ.get("AWS_CONFIG_FILE") or home / "config", f"profile {profile}"),
        (os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials", profile),
    )
    for file, section in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            # The parser's message may contain a secret, so it is left out.
            raise no_credentials(f"{file} is no file of profiles") from None
        for name in (section, profile) if profile == "default" else (section,):
            found |= dict(parser[name]) if parser.has_section(name) else {}
    return found


def _keys(said: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "access_key_id": said.get("aws_access_key_id", ""),
        "secret_access_key": said.get("aws_secret_access_key", ""),
        "token": said.get("aws_session_token"),
        "expires_at": None,
    }


def _machine_answers(endpoint: str) -> bool:
    """True if the machine gives credentials of its role; without this test obstore tries for
    minutes.
    """
    if os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return False
    answers, asked = _ANSWERS.get(endpoint, (False, float("-inf")))
    if not answers and time.monotonic() - asked >= _SECONDS_WITHOUT:
        answers = _is_reachable(urlsplit(endpoint))
        _ANSWERS[endpoint] = (answers, time.monotonic())
    return answers


def _is_reachable(found: SplitResult) -> bool:
    try:
        address = (found.hostname or "", found.port or 80)
        with socket.create_connection(address, _SECONDS_TO_ANSWER):
            return True
    except OSError:
        return False
