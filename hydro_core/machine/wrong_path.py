"""What keeps a file or folder that somebody named from being read or written, in words."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hydro_core.errors import DataError
from hydro_core.machine.faults import fault_of


def why_not(path: Path, problem: OSError) -> str:
    """Why a path was neither read nor written, as the end of a sentence.

    >>> why_not(Path("none/x"), FileNotFoundError(errno.ENOENT, "No such file or directory"))
    'there is no folder `none`'
    """
    above = next((p for p in path.parents if p.exists()), path)
    if problem.errno in (errno.ENOTDIR, errno.EEXIST, errno.ENOENT):
        if above.is_file():
            return f"`{above}` is a file, and no folder"
        if path.is_file():
            return "it is a file, and no folder"
        absent = [p for p in path.parents if not p.exists()]
        return f"there is no folder `{absent[-1]}`" if absent else "there is no such file"
    if problem.errno == errno.EISDIR:
        return "it is a folder"
    if problem.errno in (errno.EACCES, errno.EPERM):
        return "this user has not the right to it"
    return (problem.strerror or type(problem).__name__).lower()


def refuse_unwritable(path: Path, option: str) -> None:
    """Refuses a file that cannot be written, before what is written there has been computed.

    Raises:
        HydroError: why it cannot, as `written_at` says it.
    """
    is_new = not path.exists()
    with written_at(path, option), path.open("a", encoding="utf-8"):
        pass
    if is_new:
        path.unlink()


def refuse_below_file(path: Path) -> None:
    """Refuses a folder that is to be made where a file is above it.

    Raises:
        DataError: the file (code `config`).
    """
    if any(above.is_file() for above in path.parents):
        problem = NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        message = f"no folder can be made at `{path}`: {why_not(path, problem)}"
        raise DataError.of("config", message, help="name a folder that is new or empty")


@contextmanager
def written_at(path: Path, option: str) -> Iterator[None]:
    """What keeps a place that an option names from being written becomes an error for people.

    Raises:
        DataError: the place is wrong (code `config`).
        InfrastructureError: the machine is at fault: a full disk, missing rights.
    """
    try:
        yield
    except OSError as problem:
        told = fault_of(problem, str(path))
        if told is not None:
            raise told from None
        raise _unwritable(path, problem, option) from None


def _unwritable(path: Path, problem: OSError, option: str) -> DataError:
    message = f"{option}: `{path}` cannot be written: {why_not(path, problem)}"
    return DataError.of("config", message, help=f"name another place with {option}")
