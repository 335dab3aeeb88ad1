"""Errors of a store for people: the problem, its location, and help.

Libraries put whole answers and requests into their errors, and these may hold secrets. Only the
status and the code of the answer are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hydro_core.errors import Code, InfrastructureError
from hydro_core.storage.credentials import CURE

_STATUS = re.compile(r"status(?: code)?:? (\d{3})", re.IGNORECASE)
_CODE = re.compile(r"<Code>(\w+)</Code>")
_NAMED = re.compile(
    r"\b(InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|AccessDenied|SlowDown"
    r"|RequestTimeTooSkewed)\b"
)
"""Codes that Amazon's SDK names in its own words."""
_WRONG_KEYS = frozenset(
    {"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken"}
)
_UNREACHABLE = re.compile(r"error sending request|[Cc]onnect|dns error|HTTP error|timed out")
_OF_A_STORE = re.compile(
    r"error performing|Generic (?!LocalFileSystem)\w+ error|<Code>|lacked the necessary",
    re.IGNORECASE,
)
"""Messages of libraries about a failing store, not about its content. A directory is no store:
delta-rs reports an empty file of one as a `Generic LocalFileSystem error`, and that is damage.
"""
_REFUSED = re.compile(
    r"lacked the necessary (privileges|credentials)|lacked valid auth", re.IGNORECASE
)
_OF_MACHINE = re.compile(r"\w+://169\.254\.169\.254\b")
"""The location of the service that gives a machine credentials."""
_LOCATIONS = re.compile(r"\w+://[^\s<>'\"]+|<(Key|Resource)>.*?</\1>", re.DOTALL)
"""Locations in a message: their names may be any words, which say nothing of the failure."""
_AGAIN = "then run it again; what was committed stands"


@dataclass(frozen=True, slots=True)
class StoreProblem:
    """A problem of a store, or of the connection to it, with help."""

    code: Code
    message: str
    cure: str


@contextmanager
def store_errors(url: str, bucket: str, doing: str) -> Iterator[None]:
    """A context in which errors of the store become errors for people.

    A missing file is a `FileNotFoundError`; an existing or changed file is an error of obstore's,
    which the caller handles.

    Args:
        url: the requested location.
        bucket: its bucket.
        doing: the operation, such as `read`.
    """
    from obstore import exceptions

    try:
        yield
    except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
        raise
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error) or doing == "write":
            raise problem(str(error), url, bucket, doing) from None
        raise FileNotFoundError(f"{url} is not there") from None
    except exceptions.BaseError as error:
        raise problem(str(error), url, bucket, doing) from None


def is_of_store(said: str) -> bool:
    """True if a library's message is about the store, not about its content."""
    return _OF_A_STORE.search(said) is not None


def is_without_words(said: str) -> bool:
    """True if a store refused without a reason, as it does if an answer has no content."""
    said = _LOCATIONS.sub("", said)
    refused = _status(said) in (400, 401, 403) or _REFUSED.search(said) is not None
    return refused and _CODE.search(said) is None


def problem(said: str, url: str, bucket: str, doing: str) -> InfrastructureError:
    """The error for people from a library's message; nothing else of the message is used."""
    if _OF_MACHINE.search(said):
        found = _without_credentials()
    else:
        found = _case(_LOCATIONS.sub("", said), bucket, doing)
    return InfrastructureError.of(found.code, f"{url}: {found.message}", help=found.cure)


def _case(said: str, bucket: str, doing: str) -> StoreProblem:
    found = _CODE.search(said) or _NAMED.search(said)
    answer, status = found[1] if found else "", _status(said)
    if answer == "NoSuchBucket" or "UnknownStoreException" in said:
        return _no_bucket(bucket)
    if answer in _WRONG_KEYS:
        what = "have expired" if answer == "ExpiredToken" else "are not those of anybody it knows"
        return StoreProblem("config", f"the credentials {what} ({answer})", CURE)
    if answer == "RequestTimeTooSkewed":
        cure = "set this machine's clock (`hydrotick doctor` says how far they are apart)"
        return StoreProblem(
            "config", "the clock of this machine is not the store's", f"{cure}, {_AGAIN}"
        )
    if answer in ("PermanentRedirect", "AuthorizationHeaderMalformed") or status in (301, 307):
        cure = "write the bucket's `region` in `[storage]` of hydrotick.toml, or set AWS_REGION"
        return StoreProblem("config", f"the {_named(bucket)} is in another region", cure)
    if status in (401, 403) or answer == "AccessDenied" or _REFUSED.search(said):
        cure = f"give whoever runs this the right to {doing} there"
        return StoreProblem("config", f"these credentials have not the right to {doing} it", cure)
    return _of_the_way(said, status, answer, bucket)


def _of_the_way(said: str, status: int | None, answer: str, bucket: str) -> StoreProblem:
    """A problem of the store, or of the connection to it."""
    if status in (429, 500, 502, 503, 504):
        shown = f"{status} {answer}".strip()
        cure = f"see what is wrong with it, or let `patience` in `[storage]` be longer, {_AGAIN}"
        return StoreProblem(
            "runtime", f"the store is busy, and was asked again and again ({shown})", cure
        )
    if "credential" in said.lower():
        return _without_credentials()
    if status == 404:
        return _no_bucket(bucket)
    if status is None and _UNREACHABLE.search(said):
        cure = f"see that `endpoint` in `[storage]` is right and the network is there, {_AGAIN}"
        return StoreProblem("runtime", "the store cannot be reached", cure)
    shown = " ".join(filter(None, (str(status or ""), answer))) or "an answer that is none"
    return StoreProblem(
        "runtime", f"the store says {shown}", f"see what is wrong with it, {_AGAIN}"
    )


def _without_credentials() -> StoreProblem:
    return StoreProblem("config", "there are no credentials for it", CURE)


def _no_bucket(bucket: str) -> StoreProblem:
    cure = "make it, or write the name of one that is there"
    return StoreProblem("config", f"there is no {_named(bucket)}", cure)


def _named(bucket: str) -> str:
    return f"bucket `{bucket}`" if bucket else "bucket"


def _status(said: str) -> int | None:
    found = _STATUS.search(said)
    return int(found[1]) if found else None
