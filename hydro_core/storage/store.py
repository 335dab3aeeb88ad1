"""A store: the operations on a bucket, which holds files by names.

About a dozen operations suffice. Names are paths with `/`, below the bucket. A written file is
visible to all readers at once, as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from hydro_core.storage.credentials import s3_credentials
from hydro_core.storage.problems import is_without_words, store_errors
from hydro_core.storage.settings import StorageSettings, for_obstore

_LISTED_AT_ONCE = 1_000
_PIECE = 1 << 20
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class StoredFile:
    name: str
    size: int
    written: int
    """When it was written, in nanoseconds."""
    etag: str = ""
    """A tag that changes with every write of the file."""


class FileStore:
    """A bucket.

    Args:
        url: the name of the bucket in errors.
        bucket: the name of the bucket.
        ask: obstore's store.
    """

    def __init__(self, url: str, bucket: str, ask: Any) -> None:
        # Clients of stores are imported only where a store is used.
        import obstore

        self._url, self._bucket, self._ask = url, bucket, ask
        self._obstore = obstore

    def list(self, below: str = "", after: str | None = None) -> Iterator[StoredFile]:
        """The files below a folder, in the order of their names; with `after`, those after a
        name.
        """
        with self._errors(below, "list"):
            given = {"offset": after} if after is not None else {}
            found = self._obstore.list(
                self._ask, below or None, chunk_size=_LISTED_AT_ONCE, **given
            )
            for chunk in found:
                yield from map(_stored, chunk)

    def look(self, name: str) -> StoredFile | None:
        """The metadata of a file; None if it does not exist."""
        with self._errors(name, "read"):
            try:
                return _stored(self._obstore.head(self._ask, name))
            except FileNotFoundError:
                return None
            except self._obstore.exceptions.BaseError as error:
                if is_without_words(str(error)) and self._is_missing(name):
                    return None
                raise

    def _is_missing(self, name: str) -> bool:
        """True if a file does not exist, after a refusal without a reason: a read gives the reason,
        be it the key, the clock or the right.
        """
        try:
            self._obstore.get(self._ask, name)
        except FileNotFoundError:
            return True
        return False

    def exists(self, name: str) -> bool:
        return self.look(name) is not None

    def read(self, name: str) -> bytes:
        """The content of a file.

        Raises:
            FileNotFoundError: it is not there.
        """
        with self._errors(name, "read"):
            return bytes(self._obstore.get(self._ask, name).bytes())

    def pieces(self, name: str) -> Iterator[bytes]:
        """The content of a file, piece by piece.

        Raises:
            FileNotFoundError: it is not there.
        """
        with self._errors(name, "read"):
            for piece in self._obstore.get(self._ask, name).stream(min_chunk_size=_PIECE):
                yield bytes(piece)

    def read_marked(self, name: str) -> tuple[bytes, str] | None:
        """The content of a file with its ETag; None if it does not exist."""
        with self._errors(name, "read"):
            try:
                found = self._obstore.get(self._ask, name)
                return bytes(found.bytes()), found.meta["e_tag"] or ""
            except FileNotFoundError:
                return None

    def folder(self, name: str) -> tuple[Sequence[str], Sequence[StoredFile]]:
        """The folders in a folder, and the files."""
        with self._errors(name, "list"):
            found = self._obstore.list_with_delimiter(self._ask, name or None)
            return tuple(found["common_prefixes"]), tuple(map(_stored, found["objects"]))

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """Some bytes of a file.

        Raises:
            FileNotFoundError: it is not there.
        """
        if not length:
            return b""
        with self._errors(name, "read"):
            return bytes(self._obstore.get_range(self._ask, name, start=start, length=length))

    def write(self, name: str, content: bytes) -> str:
        """Writes a file whole and replaces an existing one; gives its ETag."""
        with self._errors(name, "write"):
            return _etag(self._obstore.put(self._ask, name, content))

    def write_file(self, name: str, file: Path) -> None:
        """The same with the content of a local file of any size."""
        with self._errors(name, "write"):
            self._obstore.put(self._ask, name, file)

    def write_if_absent(self, name: str, content: bytes) -> str | None:
        """The same, if the file does not exist; None: it exists, and is unchanged."""
        with self._errors(name, "write"):
            try:
                return _etag(self._obstore.put(self._ask, name, content, mode="create"))
            except self._obstore.exceptions.AlreadyExistsError:
                return None

    def replace_if(self, name: str, etag: str, content: bytes) -> str | None:
        """The same, if the file has the given ETag; None: it has another, and is unchanged."""
        with self._errors(name, "write"):
            try:
                return _etag(self._obstore.put(self._ask, name, content, mode={"e_tag": etag}))
            except (self._obstore.exceptions.PreconditionError, FileNotFoundError):
                return None

    def copy(self, name: str, to: str) -> None:
        """Writes a file a second time, by the store itself.

        Raises:
            FileNotFoundError: it is not there.
        """
        with self._errors(name, "copy"):
            self._obstore.copy(self._ask, name, to)

    def delete(self, names: Sequence[str]) -> None:
        """Removes the files that exist."""
        if not names:
            return
        with self._errors(names[0], "delete"):
            self._obstore.delete(self._ask, list(names))

    def delete_below(self, folder: str) -> None:
        self.delete([file.name for file in self.list(folder)])

    def _errors(self, name: str, doing: str) -> Any:
        return store_errors(self._name(name), self._bucket, doing)

    def _name(self, name: str) -> str:
        return f"{self._url}/{name}" if name else self._url


@lru_cache(maxsize=64)
def bucket_store(kind: str, scheme: str, bucket: str, settings: StorageSettings) -> FileStore:
    """The store of a bucket; sends no request yet.

    Raises:
        InfrastructureError: there are no credentials for it (code `config`).
    """
    from obstore.store import AzureStore, GCSStore, S3Store

    given, url = for_obstore(kind, settings), f"{scheme}://{bucket}"
    with store_errors(url, bucket, "read"):
        match kind:
            case "s3":
                signer: Any = s3_credentials(settings)
                ask: Any = S3Store(bucket, credential_provider=signer, **given)
            case "azure":
                ask = AzureStore.from_url(url, **given)
            case _:
                ask = GCSStore(bucket, **given)
    return FileStore(url, bucket, ask)


def _stored(found: Any) -> StoredFile:
    moment = found["last_modified"].timestamp()
    return StoredFile(
        found["path"], found["size"], int(moment * _NANOSECONDS), found["e_tag"] or ""
    )


def _etag(written: Any) -> str:
    return written["e_tag"] or ""
