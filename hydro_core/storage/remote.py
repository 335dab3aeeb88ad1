"""Locations in object stores, in the words of `Path`, and locations as people write them."""

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

# The place of a file or a folder in an object store, in the words that `Path` has for one.
#
# Whoever reads files takes either. A place is a name: to make one asks nothing of the store, and
# it can be sent to another process, which asks by credentials of its own. A file of a listing
# knows what the listing said of it, and is not asked for again.


_URL = re.compile(r"([a-z0-9]+)://([^/]*)(?:/(.*))?", re.IGNORECASE | re.DOTALL)
_BUCKET = re.compile(r"([^@]*@)?[A-Za-z0-9][A-Za-z0-9._-]*")
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RemoteStat:
    """What is known of a file: its size, and when it was written."""

    st_size: int
    st_mtime_ns: int
    """With the second in which it was written, and then what of its ETag fits: a file that is
    written twice within a second has two."""


@dataclass(frozen=True, slots=True)
class RemotePath:
    """A place in a bucket."""

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
        """What store it is in."""
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
        """The same without what stands behind the last dot."""
        return PurePosixPath(self.key).stem

    @property
    def suffix(self) -> str:
        """What stands behind the last dot, with it."""
        return PurePosixPath(self.key).suffix

    @property
    def suffixes(self) -> list[str]:
        """What stands behind each dot."""
        return PurePosixPath(self.key).suffixes

    @property
    def parts(self) -> tuple[str, ...]:
        """The folders that it is in, and its name."""
        return PurePosixPath(self.key).parts

    @property
    def parent(self) -> RemotePath:
        """The folder that it is in."""
        parent = str(PurePosixPath(self.key).parent)
        return replace(self, key="" if parent == "." else parent, listed=None)

    @property
    def for_spark(self) -> str:
        """The name by which Spark knows it."""
        return f"{HADOOP_SCHEMES[self.kind]}://{self.bucket}/{self.key}"

    @property
    def for_delta(self) -> dict[str, str]:
        """What delta-rs needs to know of the store."""
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
        """Whether there is a file, or a folder with one."""
        return self.is_dir() or self.is_file()

    def is_file(self) -> bool:
        return bool(self.key) and self.store.exists(self.key)

    def is_dir(self) -> bool:
        """Whether files are below it."""
        return next(self.store.list(self.key), None) is not None

    def stat(self) -> RemoteStat:
        """What is known of the file: what a listing said, if it is of one.

        Raises:
            FileNotFoundError: it is not there.
        """
        if self.listed is not None:
            return self.listed
        found = self.store.look(self.key)
        if found is None:
            raise FileNotFoundError(f"{self} is not there")
        return _stat(found)

    def files(self, after: str | None = None) -> Iterator[RemotePath]:
        """The files below it, as the store lists them; those that it is itself not among them."""
        offset = None if after is None else f"{self.key}/{after}"
        for found in self.store.list(self.key, offset):
            if not found.name.endswith("/"):
                yield replace(self, key=found.name, listed=_stat(found))

    def iterdir(self) -> Iterator[RemotePath]:
        """The folders in it, and the files."""
        folders, files = self.store.folder(self.key)
        for name in folders:
            yield replace(self, key=name.rstrip("/"), listed=None)
        for found in files:
            yield replace(self, key=found.name, listed=_stat(found))

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """A folder is there when a file is below it."""

    def write_bytes(self, content: bytes) -> None:
        """Writes the file whole."""
        self.store.write(self.key, content)

    def unlink(self, missing_ok: bool = False) -> None:
        """Removes the file; whether there was one is not told."""
        self.store.delete([self.key])

    def read_bytes(self) -> bytes:
        return self.store.read(self.key)

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.read_bytes().decode(encoding)

    def open(self, mode: Literal["rb"] = "rb") -> Any:
        """The file as one that is read and sought in, piece by piece."""
        if mode != "rb":
            raise ValueError(mode)
        return io.BufferedReader(RemoteFile(self), _PIECE)


class RemoteFile(io.RawIOBase):
    """The bytes of a file in a store; what is read is asked for then."""

    def __init__(self, place: RemotePath) -> None:
        super().__init__()
        self._place, self._store, self._key = place, place.store, place.key
        self._size, self._at = place.stat().st_size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Goes to another place."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        """How many bytes there are."""
        return self._size

    def readinto(self, buffer: Any) -> int:
        """Reads what fits."""
        length = min(len(buffer), self._size - self._at)
        if length <= 0:
            return 0
        buffer[:length] = self._bytes(self._at, length)
        self._at += length
        return length

    def _bytes(self, start: int, length: int) -> bytes:
        """Some bytes of the file. A store may break an answer off: then the rest is asked for, as
        long as the file is the one that was listed.

        Raises:
            InfrastructureError: it is not, or the store breaks off each time (code `runtime`).
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
        """Refuses a file that was written or removed since it was listed."""
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
"""Bytes that are asked for at once, of a file that is read from its start to its end."""

DataPlace = Path | RemotePath
"""Where a file or a folder is."""


def name_below(file: DataPlace, base: DataPlace) -> str:
    match file, base:
        case (RemotePath(), RemotePath()):
            return str(file.relative_to(base))
        case (Path(), Path()):
            return str(file.relative_to(base))
        case _:
            raise ValueError(f"{file} is not below {base}")


def file_known(base: DataPlace, name: str, size: int, written: int) -> DataPlace:
    """A file below a folder, of which a listing has told what `stat` tells."""
    file = base / name
    return replace(file, listed=RemoteStat(size, written)) if isinstance(file, RemotePath) else file


def is_remote(text: str) -> bool:
    """Whether a text is the URL of a place in an object store.

    >>> is_remote("s3://bucket/payments"), is_remote("file:///data"), is_remote("s3")
    (True, False, False)
    """
    found = _URL.fullmatch(text)
    return found is not None and found[1].lower() in KINDS


def remote_at(text: str, settings: StorageSettings = StorageSettings()) -> RemotePath:  # noqa: B008
    """The place that a URL names.

    Raises:
        ProgramError: it names none (code `config`).

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


# A path, or the URL of one, as people write it: where an input lands or lies, where outputs go.


_SCHEME = re.compile(r"file:|[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_MOUNTED = (
    "copy it to a directory that all who run ticks can see, or mount the bucket as one, and write "
    "its path"
)


def local_path(text: str) -> Path:
    """The path that a text names, relative or absolute: itself, or what a `file:` URL stands for.

    Raises:
        ProgramError: it is a URL that names none (code `config`).

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
    """The place that a text names: a path, what a `file:` URL stands for, or a place in a store.

    Raises:
        ProgramError: it is a URL that names none (code `config`).
    """
    return remote_at(text, storage) if is_remote(text) else local_path(text)


def _wrong(what: str, cure: str) -> ProgramError:
    return ProgramError.of("config", what, help=cure)
