"""Digests, check sums, base 64 and named UUIDs; of a text, they are those of its UTF-8."""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable
from typing import Any
from uuid import UUID
from uuid import uuid5 as named_uuid

from hydro_core.functions.constant_limits import Budget
from hydro_core.functions.library import costs
from hydro_core.functions.library.entry import (
    KNOWN_WHOLE,
    TEXT,
    Column,
    Expression,
    Library,
    Parameter,
    optional,
)
from hydro_core.types.item import BINARY, LONG, STRING
from hydro_core.types.routing import SEED, bytes_hashed

HASHES = Library()
_CONTENT = Parameter("a string, or bytes", lambda kind: kind in (STRING, BINARY))


def _hashed(limits: Budget, args: list[Any]) -> None:
    limits.charge(60 * sum(len(a) for a in args if isinstance(a, str | bytes)))


def _xxhash64(F: Any, content: Column, seed: int = SEED) -> Column | None:
    return F.xxhash64(content) if seed == SEED else None


def _base64(F: Any, content: Column) -> Column:
    """Spark may break lines, which are no letters of base 64."""
    return F.replace(F.base64(content.cast("binary")), F.lit("\r\n"), F.lit(""))


def _digest(name: str, column: Expression, *, secret: bool) -> Callable[..., str | None]:
    """The function of a digest, by its name."""

    def digest(content: str | bytes) -> str:
        return hashlib.new(name, _bytes(content), usedforsecurity=secret).hexdigest()

    none = "" if secret else ", which is no secret's"
    digest.__doc__ = f"The digest in hexadecimal digits{none}; of a text, that of its UTF-8."
    digest.__name__ = digest.__qualname__ = name
    return HASHES.strict(STRING, _CONTENT, column=column, cost=costs.content)(digest)


sha1 = _digest("sha1", lambda F, x: F.sha1(x), secret=False)
sha256 = _digest("sha256", lambda F, x: F.sha2(x, 256), secret=True)
sha512 = _digest("sha512", lambda F, x: F.sha2(x, 512), secret=True)
md5 = _digest("md5", lambda F, x: F.md5(x), secret=False)


@HASHES.strict(LONG, _CONTENT, column=lambda F, x: F.crc32(x), cost=costs.content)
def crc32(content: str | bytes) -> int:
    """The check sum, not negative; of a text, that of its UTF-8."""
    return zlib.crc32(_bytes(content))


@HASHES.strict(LONG, _CONTENT, optional(KNOWN_WHOLE), column=_xxhash64, cost=_hashed)
def xxhash64(content: str | bytes, seed: int = SEED) -> int:
    """The hash as a long, which may be negative; with this seed it is that of Spark."""
    found = bytes_hashed(_bytes(content), seed)
    return found - 2**64 if found >= 2**63 else found


@HASHES.strict(STRING, _CONTENT, column=_base64, cost=costs.content)
def base64_encode(content: str | bytes) -> str:
    """The content in the letters of base 64; of a text, its UTF-8."""
    return base64.b64encode(_bytes(content)).decode("ascii")


@HASHES.strict(BINARY, TEXT, cost=costs.content)
def base64_decode(text: str) -> bytes:
    """The bytes that stand in a text in base 64; what is none fails."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as problem:
        raise ValueError(f"{text[:40]!r} is not in base 64: {problem}") from None


@HASHES.strict(STRING, TEXT, TEXT, cost=costs.content)
def uuid5(namespace: str, name: str) -> str:
    """The UUID of a name within a namespace, which is a UUID."""
    return str(named_uuid(UUID(namespace), name))


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content
