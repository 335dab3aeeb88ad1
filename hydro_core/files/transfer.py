"""Brings files to a copy: those that an earlier copy has already are linked, and not read again.

What a file holds is told by its hash, which the copy keeps: by it the next copy knows what it has,
and who reads the copy knows that nothing of it was damaged since.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Protocol

from hydro_core.storage.places import carry, files_in, pieces_of, second_name, write_pieces
from hydro_core.storage.remote import DataPlace, name_below


class Put(Protocol):
    """Copies a file; `fixed` says that one of its name and size is never another."""

    def __call__(self, file: DataPlace, to: DataPlace, *, fixed: bool = False) -> None:
        """Copies the file `file` to `to`, whose directory is there."""


def put(file: DataPlace, to: DataPlace, *, fixed: bool = False) -> None:
    """Copies a file; from a directory to a directory with its times and rights."""
    carry(file, to)


@dataclass(frozen=True, slots=True)
class KeptCopy:
    """A copy that is there: where, and the hash of each of its files, by their names in it."""

    directory: DataPlace
    hashes: Mapping[str, str]


@dataclass(slots=True)
class Transfer:
    """The files of a copy in `directory`, as they are put there; `put` is a `Put`."""

    directory: DataPlace
    earlier: KeptCopy | None = None
    hashes: dict[str, str] = field(default_factory=dict)
    """Of each file that was put there."""
    fresh: dict[str, int] = field(default_factory=dict)
    """The bytes of each file that no earlier copy had."""

    def put(self, file: DataPlace, to: DataPlace, *, fixed: bool = False) -> None:
        """Copies a file to its place in the copy, or links the same one of the earlier copy.

        One that is damaged in the earlier copy is copied anew.
        """
        name = PurePath(name_below(to, self.directory)).as_posix()
        known = None if self.earlier is None else self.earlier.hashes.get(name)
        if self.earlier is not None and known is not None:
            kept = self.earlier.directory / name
            if _is_same(file, kept, known, fixed=fixed):
                second_name(kept, to)
                self.hashes[name] = known
                self.fresh.pop(name, None)
                return
        self.hashes[name], self.fresh[name] = _copied(file, to)

    def done(self) -> KeptCopy:
        """The copy as it is there: an attempt that was begun anew may have put more."""
        there = self._there()
        return KeptCopy(self.directory, {n: h for n, h in self.hashes.items() if n in there})

    def moved(self) -> tuple[int, int]:
        """How many files no earlier copy had, and their bytes."""
        there = self._there()
        sizes = [size for name, size in self.fresh.items() if name in there]
        return len(sizes), sum(sizes)

    def _there(self) -> set[str]:
        files = files_in(self.directory)
        return {PurePath(name_below(file, self.directory)).as_posix() for file in files}


def hash_of(file: DataPlace) -> str:
    """The hash of what a file holds.

    Raises:
        FileNotFoundError: it is not there.
    """
    found = hashlib.sha256()
    for piece in pieces_of(file):
        found.update(piece)
    return found.hexdigest()


def damaged(copy: KeptCopy, parts: Iterable[str]) -> list[str]:
    """The files below some parts of a copy that are missing, or hold something else than they did,
    each with its path.
    """
    of = tuple(f"{part}/" for part in parts)
    return [
        str(copy.directory / name)
        for name, known in sorted(copy.hashes.items())
        if name.startswith(of) and not _holds(copy.directory / name, known)
    ]


def _is_same(file: DataPlace, kept: DataPlace, known: str, *, fixed: bool) -> bool:
    """Whether the kept file is whole, and what the file is."""
    try:
        if kept.stat().st_size != file.stat().st_size:
            return False
    except (FileNotFoundError, NotADirectoryError):
        return False
    return _holds(kept, known) and (fixed or hash_of(file) == known)


def _holds(file: DataPlace, known: str) -> bool:
    try:
        return hash_of(file) == known
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False


def _copied(file: DataPlace, to: DataPlace) -> tuple[str, int]:
    """Copies a file, and gives the hash and the size of what was read."""
    found = hashlib.sha256()

    def read() -> Iterator[bytes]:
        for piece in pieces_of(file):
            found.update(piece)
            yield piece

    size = write_pieces(to, read())
    if isinstance(file, Path) and isinstance(to, Path):
        shutil.copystat(file, to)
    return found.hexdigest(), size
