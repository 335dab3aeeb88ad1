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

HASHES = Library()
_CONTENT = Parameter("a string, or bytes", lambda kind: kind in (STRING, BINARY))
_64 = 2**64 - 1
_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_SPARKS_SEED = 42


def _hashed(limits: Budget, args: list[Any]) -> None:
    limits.charge(60 * sum(len(a) for a in args if isinstance(a, str | bytes)))


def _xxhash64(F: Any, content: Column, seed: int = _SPARKS_SEED) -> Column | None:
    return F.xxhash64(content) if seed == _SPARKS_SEED else None


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
def xxhash64(content: str | bytes, seed: int = _SPARKS_SEED) -> int:
    """The hash as a long, which may be negative; with this seed it is that of Spark."""
    data = _bytes(content)
    length, at = len(data), 0
    if length >= 32:
        found, at = _of_stripes(data, seed)
    else:
        found = seed + _PRIMES[4]
    found = _tail(data[at:], (found + length) & _64)
    found = ((found ^ (found >> 33)) * _PRIMES[1]) & _64
    found = ((found ^ (found >> 29)) * _PRIMES[2]) & _64
    found ^= found >> 32
    return found - 2**64 if found >= 2**63 else found


def _of_stripes(data: bytes, seed: int) -> tuple[int, int]:
    """What four lanes make of the whole stripes of 32 bytes, and where these end."""
    first, second = _PRIMES[:2]
    lanes = [seed + first + second, seed + second, seed, seed - first]
    end = len(data) // 32 * 32
    for at in range(0, end, 32):
        lanes = [
            _round(lane, int.from_bytes(data[at + 8 * i : at + 8 * i + 8], "little"))
            for i, lane in enumerate(lanes)
        ]
    found = sum(_turned(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _64
    for lane in lanes:
        found = ((found ^ _round(0, lane)) * first + _PRIMES[3]) & _64
    return found, end


def _tail(data: bytes, found: int) -> int:
    at = 0
    while at + 8 <= len(data):
        found ^= _round(0, int.from_bytes(data[at : at + 8], "little"))
        found = (_turned(found, 27) * _PRIMES[0] + _PRIMES[3]) & _64
        at += 8
    if at + 4 <= len(data):
        found ^= (int.from_bytes(data[at : at + 4], "little") * _PRIMES[0]) & _64
        found = (_turned(found, 23) * _PRIMES[1] + _PRIMES[2]) & _64
        at += 4
    for byte in data[at:]:
        found ^= (byte * _PRIMES[4]) & _64
        found = (_turned(found, 11) * _PRIMES[0]) & _64
    return found


def _round(lane: int, word: int) -> int:
    return (_turned((lane + word * _PRIMES[1]) & _64, 31) * _PRIMES[0]) & _64


def _turned(word: int, by: int) -> int:
    word &= _64
    return ((word << by) | (word >> (64 - by))) & _64


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
