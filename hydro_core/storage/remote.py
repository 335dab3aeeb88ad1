"""Locations in object stores, with the interface of `Path`, and locations as people write them."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from hydro_core.errors import InfrastructureError, ProgramError
from hydro_core.storage.settings import HADOOP_SCHEMES, KINDS, StorageSettings, for_delta
from hydro_core.storage.store import FileStore, StoredFile, bucket_store

# The location of a file or a folder in an object store, with the interface of `Path`.
#
# Readers of files take either. A location is a name: to build one sends no request, and it can be
# sent to another process, which uses credentials of its own. A file of a listing has the size and
# time that the listing gave, and needs no further request.


_URL = re.compile(r"([a-z0-9]+)://([^/]*)(?:/(.*))?", re.IGNORECASE | re.DOTALL)
_BUCKET = re.compile(r"([^@]*@)?[A-Za-z0-9][A-Za-z0-9._-]*")
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RemoteStat:
    """The size of a file, and the time of its last write."""

    st_size: int
    st_mtime_ns: int
    """The second of the last write, plus as much of the ETag as fits below it: two writes of a file
    within a second differ.
    """


@dataclass(frozen=True, slots=True)
class RemotePath:
    """A location in a bucket."""

    scheme: str
    bucket: str
    key: str
    settings: StorageSettings = field(default=StorageSettings(), repr=False)
    listed: RemoteStat | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.key}".rstrip("/")

    def __truediv__(self, below: str | PurePosixPath) -> RemotePath:
        return replace(self, key=str(PurePosixPath(self.key, below)), listed=None)

    def __lt__(self, other: RemotePath) -> bool:
        return str(self) < str(other)

    @property
    def kind(self) -> str:
        """The kind of its store."""
        return KINDS[self.scheme]

    @property
    def store(self) -> FileStore:
        """The bucket."""
        return bucket_store(self.kind, self.scheme, self.bucket, self.settings)

    @property
    def name(self) -> str:
        """The last part of its name."""
        return PurePosixPath(self.key).name

    @property
    def stem(self) -> str:
        """The last part of its name without the suffix."""
        return PurePosixPath(self.key).stem

    @property
    def suffix(self) -> str:
        """The suffix: the last dot of the name and the text after it."""
        return PurePosixPath(self.key).suffix

    @property
    def suffixes(self) -> list[str]:
        """All suffixes of the name."""
        return PurePosixPath(self.key).suffixes

    @property
    def parts(self) -> tuple[str, ...]:
        """The folders of its key, and its name."""
        return PurePosixPath(self.key).parts

    @property
    def parent(self) -> RemotePath:
        """Its folder."""
        parent = str(PurePosixPath(self.key).parent)
        return replace(self, key="" if parent == "." else parent, listed=None)

    @property
    def for_spark(self) -> str:
        """The URL in Spark."""
        return f"{HADOOP_SCHEMES[self.kind]}://{self.bucket}/{self.key}"

    @property
    def for_delta(self) -> dict[str, str]:
        """The options of the store for delta-rs."""
        options = for_delta(self.kind, self.settings)
        if self.settings.profile:
            options["aws_profile"] = self.settings.profile
        return options

    def absolute(self) -> RemotePath:
        """Itself."""
        return self

    def relative_to(self, base: RemotePath) -> PurePosixPath:
        """Its name below a folder."""
        return PurePosixPath(self.key).relative_to(base.key)

    def exists(self) -> bool:
        """True if there is a file, or a folder with one."""
        return self.is_dir() or self.is_file()

    def is_file(self) -> bool:
        return bool(self.key) and self.store.exists(self.key)

    def is_dir(self) -> bool:
        """True if there are files below it."""
        return next(self.store.list(self.key), None) is not None

    def stat(self) -> RemoteStat:
        """The size and time of the file: those of a listing, if it is from one.

        Raises:
            FileNotFoundError: the file does not exist.
        """
        if self.listed is not None:
            return self.listed
        found = self.store.look(self.key)
        if found is None:
            raise FileNotFoundError(f"{self} is not there")
        return _stat(found)

    def files(self, after: str | None = None) -> Iterator[RemotePath]:
        """The files below it, as the store lists them, with `after` those after a name."""
        offset = None if after is None else f"{self.key}/{after}"
        for found in self.store.list(self.key, offset):
            if not found.name.endswith("/"):
                yield replace(self, key=found.name, listed=_stat(found))

    def iterdir(self) -> Iterator[RemotePath]:
        """The folders and files in it."""
        folders, files = self.store.folder(self.key)
        for name in folders:
            yield replace(self, key=name.rstrip("/"), listed=None)
        for found in files:
            yield replace(self, key=found.name, listed=_stat(found))

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Does nothing: a folder exists if a file is below it."""

    def write_bytes(self, content: bytes) -> None:
        """Writes the file whole."""
        self.store.write(self.key, content)

    def unlink(self, missing_ok: bool = False) -> None:
        """Removes the file, if it exists."""
        self.store.delete([self.key])

    def read_bytes(self) -> bytes:
        return self.store.read(self.key)

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.read_bytes().decode(encoding)

    def open(self, mode: Literal["rb"] = "rb") -> Any:
        """The file as a buffered binary stream."""
        if mode != "rb":
            raise ValueError(mode)
        return io.BufferedReader(RemoteFile(self), _PIECE)


class RemoteFile(io.RawIOBase):
    """The bytes of a file in a store; each read is a request."""

    def __init__(self, place: RemotePath) -> None:
        super().__init__()
        self._place, self._store, self._key = place, place.store, place.key
        self._size, self._at = place.stat().st_size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves the position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        """The number of bytes."""
        return self._size

    def readinto(self, buffer: Any) -> int:
        """Reads as much as fits."""
        length = min(len(buffer), self._size - self._at)
        if length <= 0:
            return 0
        buffer[:length] = self._bytes(self._at, length)
        self._at += length
        return length

    def _bytes(self, start: int, length: int) -> bytes:
        """Some bytes of the file. A store may break off an answer: then the rest is requested, as
        long as the file is the listed one.

        Raises:
            InfrastructureError: the file is another one, or the store breaks off each time (code
                `runtime`).
        """
        content = b""
        for _ in range(_ATTEMPTS):
            begin, missing = start + len(content), length - len(content)
            content += self._store.read_range(self._key, begin, missing)
            if len(content) == length:
                return content
            self._refuse_another_file()
        raise InfrastructureError.of(
            "runtime",
            f"the store breaks off its answers: {len(content):,} of {length:,} bytes of "
            f"{self._place} came",
            help="run it again later",
        )

    def _refuse_another_file(self) -> None:
        """Refuses a file that was written or removed after it was listed."""
        stored, listed = self._store.look(self._key), self._place.stat()
        if stored is not None and _stat(stored) == listed:
            return
        there = "is gone" if stored is None else f"has {stored.size:,} bytes now"
        raise InfrastructureError.of(
            "runtime",
            f"{self._place} was written or removed while it was read: it was listed with "
            f"{listed.st_size:,} bytes, and {there}",
            help="write files elsewhere and move them in when they are whole; then run it again",
        )


_ATTEMPTS = 4
_PIECE = 1024 * 1024
"""Bytes of each request in a read from start to end."""

DataPlace = Path | RemotePath
"""The location of a file or a folder."""


def name_below(file: DataPlace, base: DataPlace) -> str:
    match file, base:
        case (RemotePath(), RemotePath()):
            return str(file.relative_to(base))
        case (Path(), Path()):
            return str(file.relative_to(base))
        case _:
            raise ValueError(f"{file} is not below {base}")


def file_known(base: DataPlace, name: str, size: int, written: int) -> DataPlace:
    """A file below a folder, with the size and time from a listing."""
    file = base / name
    return replace(file, listed=RemoteStat(size, written)) if isinstance(file, RemotePath) else file


def is_remote(text: str) -> bool:
    """True if a text is the URL of a location in an object store.

    >>> is_remote("s3://bucket/payments"), is_remote("file:///data"), is_remote("s3")
    (True, False, False)
    """
    found = _URL.fullmatch(text)
    return found is not None and found[1].lower() in KINDS


def remote_at(text: str, settings: StorageSettings = StorageSettings()) -> RemotePath:  # noqa: B008
    """The location of a URL.

    Raises:
        ProgramError: the text is no such URL (code `config`).

    >>> str(remote_at("S3A://bucket/landing/payments/"))
    's3a://bucket/landing/payments'
    """
    found = _URL.fullmatch(text)
    assert found is not None
    scheme, bucket, key = found[1].lower(), found[2], (found[3] or "").strip("/")
    if not _BUCKET.fullmatch(bucket) or "//" in key or {".", ".."} & set(key.split("/")):
        cure = f"write `{scheme}://BUCKET/FOLDER`"
        raise ProgramError.of("config", f"{_shown(text)} names no place", help=cure)
    if "@" in bucket and KINDS[scheme] != "azure":
        cure = "leave it out: credentials come from the environment, a profile or a role"
        what = "a URL of a store has no user and no password"
        raise ProgramError.of("config", what, help=cure)
    return RemotePath(scheme, bucket, key, settings)


def _shown(text: str) -> str:
    return re.sub(r"//[^/]*@", "//…@", text)


def _stat(found: StoredFile) -> RemoteStat:
    second = found.written // _SECOND * _SECOND
    digest = hashlib.blake2b(found.etag.encode(), digest_size=8).digest()
    return RemoteStat(found.size, second + int.from_bytes(digest) % _SECOND)


# Locations as people write them, paths or URLs: of inputs, landings and outputs.


_SCHEME = re.compile(r"file:|[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_MOUNTED = (
    "copy it to a directory that all who run ticks can see, or mount the bucket as one, and write "
    "its path"
)


def local_path(text: str) -> Path:
    """The path of a text, relative or absolute: the text itself, or the path of a `file:` URL.

    Raises:
        ProgramError: it is a URL without a local path (code `config`).

    >>> local_path("payments"), local_path("file:///data/all%20payments")
    (PosixPath('payments'), PosixPath('/data/all payments'))
    """
    if not _SCHEME.match(text):
        return Path(text)
    try:
        url = urlsplit(text)
    except ValueError:
        raise _wrong(f"{text} is no URL", "write a path, or `file:///…`") from None
    if url.scheme != "file":
        raise _wrong(f"{text} is a URL, and `{url.scheme}:` is neither read nor written", _MOUNTED)
    if url.netloc not in ("", "localhost"):
        what = f"{text} is on the machine {url.netloc}"
        raise _wrong(what, "write `file:///…`, with three slashes, for a path of this machine")
    if not url.path.startswith("/") or url.query or url.fragment:
        what = f"{text} is not the URL of an absolute path"
        raise _wrong(what, "write `file:///…`, with `%3F` for a `?` and `%23` for a `#`")
    return Path(unquote(url.path))


def place_at(text: str, storage: StorageSettings) -> DataPlace:
    """The location of a text: a path, the path of a `file:` URL, or a location in a store.

    Raises:
        ProgramError: it is another URL (code `config`).
    """
    return remote_at(text, storage) if is_remote(text) else local_path(text)


def _wrong(what: str, cure: str) -> ProgramError:
    return ProgramError.of("config", what, help=cure)
