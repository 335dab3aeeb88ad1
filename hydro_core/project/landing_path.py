"""Where an input lands, as its asset says it: a path, or the URL of one."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hydro_core.errors import Diagnostic, ProgramError

_URL = re.compile(r"file:|[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_SHARED = (
    "let it land in a directory that all who run ticks can see (a mounted bucket, too); "
    "docs/decisions/object-stores.md says what stands in the way of object stores"
)


def landing_path(text: str) -> Path:
    """The path that a landing's `path` names: relative to where data land, or absolute.

    Raises:
        ProgramError: it is a URL that names none (code `config`).

    >>> landing_path("payments"), landing_path("file:///data/all%20payments")
    (PosixPath('payments'), PosixPath('/data/all payments'))
    """
    if not _URL.match(text):
        return Path(text)
    try:
        url = urlsplit(text)
    except ValueError:
        raise _wrong(f"{text} is no URL", "write a path, or `file:///…`") from None
    if url.scheme != "file":
        raise _wrong(f"{text} is a URL, and `{url.scheme}` is not supported", _SHARED)
    if url.netloc not in ("", "localhost"):
        what = f"{text} is on the machine {url.netloc}"
        raise _wrong(what, "write `file:///…`, with three slashes, for a path of this machine")
    if not url.path.startswith("/") or url.query or url.fragment:
        what = f"{text} is not the URL of an absolute path"
        raise _wrong(what, "write `file:///…`, with `%3F` for a `?` and `%23` for a `#`")
    return Path(unquote(url.path))


def _wrong(what: str, cure: str) -> ProgramError:
    return ProgramError(Diagnostic("config", what, help=cure))
