"""Brings files to a copy: those that an earlier copy has already are linked, and not read again.

What a file holds is told by its hash, which the copy keeps: by it the next copy knows what it has,
and who reads the copy knows that nothing of it was damaged since.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hydro_core.storage.places import second_name

_CHUNK = 1 << 20


class Put(Protocol):
    """Copies a file; `fixed` says that one of its name and size is never another."""

    def __call__(self, file: Path, to: Path, *, fixed: bool = False) -> None:
        """Copies the file `file` to `to`, whose directory is there."""


def put(file: Path, to: Path, *, fixed: bool = False) -> None:
    """Copies a file, with its times and rights."""
    shutil.copy2(file, to)


@dataclass(frozen=True, slots=True)
class KeptCopy:
    """A copy that is there: where, and the hash of each of its files, by their names in it."""

    directory: Path
    hashes: Mapping[str, str]


@dataclass(slots=True)
class Transfer:
    """The files of a copy in `directory`, as they are put there; `put` is a `Put`."""

    directory: Path
    earlier: KeptCopy | None = None
    hashes: dict[str, str] = field(default_factory=dict)
    """Of each file that was put there."""
    fresh: dict[str, int] = field(default_factory=dict)
    """The bytes of each file that no earlier copy had."""

    def put(self, file: Path, to: Path, *, fixed: bool = False) -> None:
        """Copies a file to its place in the copy, or links the same one of the earlier copy.

        One that is damaged in the earlier copy is copied anew.
        """
        name = to.relative_to(self.directory).as_posix()
        known = None if self.earlier is None else self.earlier.hashes.get(name)
        if self.earlier is not None and known is not None:
            kept = self.earlier.directory / name
            if _is_same(file, kept, known, fixed=fixed):
                second_name(kept, to)
                self.hashes[name] = known
                self.fresh.pop(name, None)
                return
        self.hashes[name] = _copied(file, to)
        self.fresh[name] = to.stat().st_size

    def done(self) -> KeptCopy:
        """The copy as it is there: an attempt that was begun anew may have put more."""
        there = {name: known for name, known in self.hashes.items() if self._has(name)}
        return KeptCopy(self.directory, there)

    def moved(self) -> tuple[int, int]:
        """How many files no earlier copy had, and their bytes."""
        sizes = [size for name, size in self.fresh.items() if self._has(name)]
        return len(sizes), sum(sizes)

    def _has(self, name: str) -> bool:
        return (self.directory / name).exists()


def hash_of(file: Path) -> str:
    """The hash of what a file holds."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


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


def _is_same(file: Path, kept: Path, known: str, *, fixed: bool) -> bool:
    """Whether the kept file is whole, and what the file is."""
    if not kept.is_file() or kept.stat().st_size != file.stat().st_size:
        return False
    return _holds(kept, known) and (fixed or hash_of(file) == known)


def _holds(file: Path, known: str) -> bool:
    return file.is_file() and hash_of(file) == known


def _copied(file: Path, to: Path) -> str:
    """Copies a file, and gives the hash of what was read."""
    found = hashlib.sha256()
    with file.open("rb") as content, to.open("wb") as target:
        while chunk := content.read(_CHUNK):
            found.update(chunk)
            target.write(chunk)
    shutil.copystat(file, to)
    return found.hexdigest()
