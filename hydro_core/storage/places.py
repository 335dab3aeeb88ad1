"""Operations on files and folders, in a directory and in a store, by name or pattern."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate, chain
from pathlib import Path
from tempfile import NamedTemporaryFile

from hydro_core.errors import InfrastructureError
from hydro_core.storage.remote import DataPlace, RemotePath

# Patterns of names in a store, as a shell has them: `*`, `**`, `?` and `[…]`.


WILD = frozenset("*?[")


def fixed_part(pattern: RemotePath) -> RemotePath:
    """The folder before the first wildcard of a pattern."""
    parts = []
    for part in pattern.parts[:-1]:
        if WILD & set(part):
            break
        parts.append(part)
    return RemotePath(pattern.scheme, pattern.bucket, "/".join(parts), pattern.settings)


def matching(pattern: RemotePath) -> Iterator[RemotePath]:
    """The files that a pattern matches, and those below folders that it matches."""
    matches = re.compile(_expression(pattern.parts))
    for file in fixed_part(pattern).files():
        parts = file.parts
        for count, above in enumerate(accumulate(parts, "{}/{}".format), 1):
            if matches.fullmatch(above):
                if not any(part[0] in "_." for part in parts[count:]):
                    yield file
                break


def _expression(parts: tuple[str, ...]) -> str:
    found = []
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if part == "**":
            # Any number of folders, none of them hidden.
            found.append("(?:[^./][^/]*/)*" + ("[^./][^/]*" if last else ""))
        else:
            found.append(_of_part(part) + ("" if last else "/"))
    return "".join(found)


def _of_part(part: str) -> str:
    hidden = "" if part.startswith(".") else r"(?!\.)"
    found, at = [hidden if WILD & set(part) else ""], 0
    while at < len(part):
        sign, end = part[at], part.find("]", at + 2)
        if sign == "[" and end > 0:
            among = part[at + 1 : end]
            no = "^" if among.startswith("!") else ""
            found.append(f"[{no}{_quoted(among.removeprefix('!'))}]")
            at = end
        else:
            found.append({"*": "[^/]*", "?": "[^/]"}.get(sign, re.escape(sign)))
        at += 1
    return "".join(found)


def _quoted(among: str) -> str:
    return re.sub(r"([\\^\]])", r"\\\1", among)


# Operations on files and folders, in a directory and in a store, that `Path` lacks.


_NO_LINKS = (errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.EMLINK)
"""Errors of a file system without hard links."""

_PIECE = 1 << 20
_HELD = 8 << 20
"""Bytes of a file for a store that are buffered in memory; the rest is buffered on disk until the
file is complete.
"""

Identity = tuple[int, ...]
"""The identity of a file: it differs from every other file that ever has its name."""


def remove_tree(place: DataPlace, *, ignore_errors: bool = False) -> None:
    """Removes a folder with its content; with `ignore_errors`, entries that cannot be removed
    stay.
    """
    if isinstance(place, RemotePath):
        with suppress(*((InfrastructureError,) if ignore_errors else ())):
            place.store.delete_below(place.key)
    else:
        shutil.rmtree(place, ignore_errors=ignore_errors)


def empty(place: DataPlace) -> None:
    """Removes a folder with its content, if it exists.

    Raises:
        InfrastructureError: the store does not let it be removed.
    """
    remove_tree(place, ignore_errors=isinstance(place, Path))


def identity_of(file: DataPlace) -> Identity:
    """The identity of a file: it differs from every other file that ever has its name.

    Raises:
        FileNotFoundError: it is not there.
    """
    if isinstance(file, RemotePath):
        found = file.stat()
        return found.st_size, found.st_mtime_ns
    stat = file.stat()
    # A copy preserves the time of the last write, and the inode of a removed file is reused: a file
    # that was restored twice may share both. No program can set the third.
    return stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns


def are_there(files: Iterable[DataPlace]) -> bool:
    """True if all files exist; a store lists each of their folders once."""
    wanted = list(files)
    folders = {file.parent for file in wanted if isinstance(file, RemotePath)}
    there: set[DataPlace] = {file for folder in folders for file in folder.files()}
    return all(file in there if isinstance(file, RemotePath) else file.exists() for file in wanted)


def pieces_of(file: DataPlace) -> Iterator[bytes]:
    """The content of a file, piece by piece.

    Raises:
        FileNotFoundError: it is not there.
    """
    if isinstance(file, RemotePath):
        yield from file.store.pieces(file.key)
        return
    with file.open("rb") as content:
        while piece := content.read(_PIECE):
            yield piece


def write_pieces(file: DataPlace, pieces: Iterable[bytes]) -> int:
    """Writes a file from pieces, and gives its size; in a store it becomes visible as a whole, or
    not at all.
    """
    rest = iter(pieces)
    # A missing source raises here, before a file is created.
    first = bytearray(next(rest, b""))
    if isinstance(file, Path):
        with file.open("wb") as target:
            return sum(map(target.write, chain([bytes(first)], rest)))
    for piece in rest:
        first += piece
        if len(first) > _HELD:
            break
    else:
        file.write_bytes(bytes(first))
        return len(first)
    with NamedTemporaryFile(prefix="hydrotick-") as whole:
        size = sum(map(whole.write, chain([bytes(first)], rest)))
        whole.flush()
        file.store.write_file(file.key, Path(whole.name))
    return size


def carry(file: DataPlace, to: DataPlace) -> None:
    """Copies a file to any location, whose folder exists; a store copies its own files by itself.

    Raises:
        FileNotFoundError: it is not there.
    """
    match file, to:
        case (Path(), Path()):
            shutil.copy2(file, to)
        case (RemotePath(), RemotePath()) if file.store is to.store:
            file.store.copy(file.key, to.key)
        case _:
            write_pieces(to, pieces_of(file))


def second_name(file: DataPlace, to: DataPlace) -> None:
    """Gives the content of a file another name: by a hard link, or by a copy in a store and in a
    file system without links.
    """
    match file, to:
        case (RemotePath(), RemotePath()):
            carry(file, to)
        case (Path(), Path()):
            try:
                os.link(file, to)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                shutil.copyfile(file, to)
        case _:
            raise ValueError(f"{file} and {to} are in different places")


def has_second_name(file: DataPlace, to: DataPlace) -> bool:
    """True if `second_name` was done already, for a file that never changes."""
    if isinstance(file, Path) and isinstance(to, Path):
        return to.exists() and to.samefile(file)
    return to.is_file() and to.stat().st_size == file.stat().st_size


def write_whole(file: DataPlace, text: str) -> None:
    """Writes a file atomically: concurrent readers find its old or its new content."""
    if isinstance(file, RemotePath):
        file.write_bytes(text.encode())
        return
    part = file.with_name(f"{file.name}.part")
    with part.open("w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
    part.replace(file)


def entries_in(folder: DataPlace) -> list[DataPlace]:
    """The entries of a folder, by name; none if it does not exist."""
    there = isinstance(folder, RemotePath) or folder.is_dir()
    return sorted(folder.iterdir(), key=lambda entry: entry.name) if there else []


def derived_place(place: DataPlace) -> Path | None:
    """A local directory for derived data of a folder, which can be recomputed at any time; None: no
    such directory is configured.
    """
    if isinstance(place, Path):
        return place
    known = place.settings.derived
    digest = hashlib.sha256(str(place).encode()).hexdigest()[:20]
    return None if known is None else Path(known, f"{place.name}-{digest}")


def files_in(folder: DataPlace) -> Iterator[DataPlace]:
    """The files in a folder and in its folders; none if it does not exist."""
    if isinstance(folder, RemotePath):
        yield from folder.files()
    else:
        yield from (file for file in folder.rglob("*") if file.is_file())
