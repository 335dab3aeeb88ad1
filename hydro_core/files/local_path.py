"""A path, or the URL of one, as people write it: where an input lands or lies, where outputs go."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hydro_core.errors import ProgramError
from hydro_core.storage.remote import DataPlace, is_remote, remote_at
from hydro_core.storage.settings import StorageSettings

_URL = re.compile(r"file:|[a-z][a-z0-9+.-]*://", re.IGNORECASE)
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
    if not _URL.match(text):
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
