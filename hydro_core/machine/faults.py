"""Faults of a machine in words: full disks, read-only file systems, missing rights, wrong paths."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from hydro_core.errors import Code, DataError, HydroError, InfrastructureError
from hydro_core.storage.problems import is_of_store, problem
from hydro_core.storage.remote import DataPlace
from hydro_core.storage.settings import KINDS

# Which directories can hold Delta tables: the tables' library makes URLs of paths.


_NOT_IN_PATHS = re.compile(r"[\[\]|^\\%]")
"""What delta-rs makes another path of, or panics at."""


def refuse_path(directory: DataPlace) -> None:
    """Refuses a directory whose name the library of the tables cannot take.

    Raises:
        DataError: which characters there are (code `config`).
    """
    found = sorted(set(_NOT_IN_PATHS.findall(str(directory.absolute()))))
    if found:
        signs = " ".join(f"`{sign}`" for sign in found)
        raise DataError.of(
            "config",
            f"there can be no Delta table in {directory}: its path has {signs}",
            help="choose another directory",
        )


# What keeps a file or folder that somebody named from being read or written, in words.


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


# What a machine does to a run, in words: a full disk, a read-only file system, missing rights.
#
# Such faults come as errors of many libraries, each with the words of the operating system in it.
# The program and its data are not at fault, so the same run may succeed later.


_LIBRARIES = frozenset(
    {"_internal", "alembic", "dagster", "deltalake", "py4j", "pyarrow", "pyspark", "sqlalchemy"}
    | {"sqlite3"}
)
"""Whose errors have the operating system's words in their text; `_internal` is delta-rs."""
_PLACE = re.compile(rf"\b(?:{'|'.join(KINDS)})://([^/\s]+)\S*")
"""The URL of a place in a store, and its bucket."""
_REQUEST = re.compile(r"\bhttps?://[^/\s]+/([^/?\s]+)[^?\s]*")
"""The URL that a library has asked, without what may be secret in it, and the bucket."""


@dataclass(frozen=True, slots=True)
class _Fault:
    numbers: frozenset[int]
    words: re.Pattern[str]
    says: str
    cure: str
    code: Code = "runtime"


def _fault(numbers: set[int], words: str, says: str, cure: str, code: Code = "runtime") -> _Fault:
    by_number = "|".join(rf"os error {number}\b|\[Errno {number}\]" for number in sorted(numbers))
    pattern = re.compile(f"{by_number}|{words}", re.IGNORECASE)
    return _Fault(frozenset(numbers), pattern, says, cure, code)


_AGAIN = "then run it again; what was committed stands"
_FULL = _fault(
    {errno.ENOSPC, errno.EFBIG},
    "No space left on device|database or disk is full",
    "the disk is full",
    f"make room on it, {_AGAIN}",
)
_FAULTS = (
    _FULL,
    _fault(
        {errno.EDQUOT}, "Disk quota exceeded", "the disk quota is used up", f"make room, {_AGAIN}"
    ),
    _fault(
        {errno.EROFS},
        "Read-only file system|readonly database",
        "the file system is read-only",
        "mount it for writing, or name another directory",
        "config",
    ),
    _fault(
        {errno.EACCES, errno.EPERM},
        "Permission denied|Operation not permitted",
        "this user has not the right to it",
        "give the right to the user that runs this, or name another directory",
        "config",
    ),
    _fault(
        {errno.EIO, errno.ESTALE, errno.ENODEV, errno.ENXIO},
        "Input/output error|Stale file handle",
        "the disk does not answer",
        f"see that it is there and mounted, {_AGAIN}",
    ),
    _fault(
        {errno.EMFILE, errno.ENFILE},
        "Too many open files",
        "too many files are open",
        f"raise the limit (`ulimit -n 65536`), {_AGAIN}",
    ),
)
_VANISHED = _fault(
    {errno.ENOENT},
    "No such file or directory|FILE_NOT_EXIST",
    "a file went away while it was read",
    f"see that nothing removes files that are in use, {_AGAIN}",
)


def fault_of(
    error: BaseException,
    where: str = "",
    *,
    vanished: bool = False,
    scratch: Mapping[Path, str] = MappingProxyType({}),
) -> InfrastructureError | None:
    """What the machine did, as an error for people; None where it did nothing.

    Args:
        error: what was raised, by whichever library.
        where: what was at work, and on which directory; else the place that the error names.
        vanished: whether a file that is not there was there before.
        scratch: the directories that what failed writes to beside, and what they are.
    """
    known = (*_FAULTS, _VANISHED) if vanished else _FAULTS
    for found in chain(error):
        if isinstance(found, HydroError):
            return None
        for fault in known:
            if _is(found, fault):
                place = _file(found) or where
                message = f"{fault.says}: {place}" if place else fault.says
                if where and place != where:
                    message = f"{message} ({where})"
                message += _rooms(_file(found), scratch) if fault is _FULL else ""
                told = InfrastructureError.of(fault.code, message, help=fault.cure)
                told.__cause__ = error
                return told
        of_files = isinstance(found, OSError) or _of_library(found)
        if of_files and is_of_store(str(found)):
            return _of_store(found, "\n".join(map(str, chain(error))), where)
    return None


def raise_outage(error: BaseException, where: str = "") -> None:
    """Raises what the machine or a store did, where that is behind an error; else does nothing.

    Whoever takes an error of files for damage, or for nothing there, asks this first.
    """
    told = fault_of(error, where)
    if told is not None:
        raise told from error


def _of_store(found: BaseException, said: str, where: str) -> InfrastructureError:
    """What a store has not done; where that was is said by who was at work, else by libraries."""
    place, doing = _PLACE.search(where), "write"
    if place is None:
        place = _PLACE.search(said) or _REQUEST.search(said)
        doing = "read" if "performing GET" in said else "write"
    url, bucket = (place[0], place[1]) if place else ("an object store", "")
    return problem(str(found), url, bucket, doing)


@contextmanager
def faults_as_errors(where: str, *, vanished: bool = False) -> Iterator[None]:
    """What the machine does within becomes an error for people; all else stays as it is."""
    try:
        yield
    except Exception as error:
        told = fault_of(error, where, vanished=vanished)
        if told is None:
            raise
        raise told from error


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, what it was raised from, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is(error: BaseException, fault: _Fault) -> bool:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in fault.numbers
    told = isinstance(error, OSError) or _of_library(error)
    return told and fault.words.search(str(error)) is not None


def _of_library(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in _LIBRARIES


def _rooms(file: str, scratch: Mapping[Path, str]) -> str:
    """How much room there is, by the mounts that a run writes to: of Spark, neither file nor mount
    is known, and its scratch files are in none of the project's directories.
    """
    places = [Path(file)] if file else [Path.cwd(), Path(tempfile.gettempdir())]
    found = dict.fromkeys(filter(None, map(_mount, places)), "")
    for place, what in {} if file else scratch.items():
        mount = _mount(place)
        if mount is not None:
            found[mount] = f" ({what})"
    rooms = [
        f"{mount}{what} has {_free(mount) // 2**20:,} MiB free" for mount, what in found.items()
    ]
    return f"; {', '.join(rooms)}" if rooms else ""


def _mount(place: Path) -> Path | None:
    """The file system that a path is on, by where it is mounted."""
    return next((p for p in (place.absolute(), *place.absolute().parents) if p.is_mount()), None)


def _free(mount: Path) -> int:
    room = os.statvfs(mount)
    return room.f_bavail * room.f_frsize


def _file(error: BaseException) -> str:
    """The file that an error names."""
    if isinstance(error, OSError) and error.filename:
        return str(Path(str(error.filename)))
    found = re.search(r"(?:local file|file:)\s*'?(/[^\s'\"]+)", str(error))
    return found[1] if found else ""
