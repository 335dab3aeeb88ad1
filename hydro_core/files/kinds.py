"""Files at a location: kinds, partition values in names, and errors where one cannot be read."""

from __future__ import annotations

import glob
import gzip
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path, PurePath
from typing import Any, NoReturn
from urllib.parse import unquote

import pyarrow as pa

from hydro_core.errors import DataError
from hydro_core.machine.faults import raise_outage, refuse_path
from hydro_core.storage.delta import delta_table
from hydro_core.storage.places import WILD, fixed_part, matching
from hydro_core.storage.remote import DataPlace, RemotePath, name_below
from hydro_core.types.item import ItemType
from hydro_core.types.values import ValueProblem

UNREADABLE = (
    *(pa.ArrowException, ValueProblem, UnicodeDecodeError),
    *(OSError, EOFError, zlib.error),
)
"""What reading a damaged file raises."""
_SIXTEEN = (b"\xff\xfe", b"\xfe\xff")
"""What texts of UTF-16 begin with."""
NOT_UTF8 = "save it as UTF-8, for example with `iconv -f LATIN1 -t UTF-8`"
_SIGNS = {
    b"\x1f\x8b": "data packed by gzip",
    b"(\xb5/\xfd": "data packed by zstd",
    b"BZh": "data packed by bzip2",
    b"PK\x03\x04": "a zip archive",
    b"PAR1": "Parquet",
}
"""What files of other kinds begin with."""
CUT_OFF = "it is cut off or damaged: write it again, as a whole, or leave it out"
DAMAGED = "write it again, or leave it out"
_UNPACK = "unpack it; texts may stay packed by gzip, if their names end in `.gz`"
_OF_A_TABLE = "it is cut off or damaged: restore it from a copy, or land the table's rows again"
_ACCESS = "see that it is there, and that the user who runs this may read it"


def refuse(message: str, cure: str) -> NoReturn:
    """Raises an error of the data (code `input`)."""
    raise DataError.of("input", message, help=cure)


@contextmanager
def opened_text(file: DataPlace) -> Iterator[Any]:
    """The bytes of a file of text, unpacked where its name ends in `.gz`, behind UTF-8's mark.

    Raises:
        DataError: the file is of another kind, or in UTF-16 (code `input`).
    """
    with file.open("rb") as raw, _unpacked(raw, file) as stream:
        begin = stream.peek(4)[:4]
        _refuse_other_kind(file, begin)
        if begin[:2] in _SIXTEEN:
            refuse(f"`{file}`, line 1 is not UTF-8", NOT_UTF8.replace("LATIN1", "UTF-16"))
        if begin.startswith(BOM_UTF8):
            stream.read(len(BOM_UTF8))
        yield stream


def _unpacked(raw: Any, file: DataPlace) -> Any:
    return gzip.GzipFile(fileobj=raw) if file.suffix == ".gz" else nullcontext(raw)


def is_utf8(content: bytes) -> bool:
    """Whether bytes are text in UTF-8."""
    try:
        return content.isascii() or bool(content.decode())
    except UnicodeDecodeError:
        return False


def _begin(file: DataPlace) -> bytes:
    with file.open("rb") as opened:
        return opened.read(4)


def _refuse_other_kind(file: DataPlace, begin: bytes) -> None:
    """Refuses a file that is of another kind than its name says."""
    for sign, kind in _SIGNS.items():
        if begin.startswith(sign) and not (sign == b"\x1f\x8b" and file.suffix == ".gz"):
            cure = "give it a name that ends in `.parquet`" if kind == "Parquet" else _UNPACK
            refuse(f"`{file}` is {kind}, which its name does not say", cure)


def refuse_delta(path: DataPlace, problem: Exception, version: int | None = None) -> NoReturn:
    """Refuses a Delta table; one of another form than is read is told by the names of that form."""
    raise_outage(problem, str(path))
    features = _unread_features(path, version)
    if features:
        named = " and ".join(f"`{feature}`" for feature in features)
        drop = ", ".join(f"`ALTER TABLE delta.`{path}` DROP FEATURE {f}`" for f in features)
        refuse(
            f"the Delta table `{path}` has the feature {named}, and is not read with it",
            f"land the rows in a table without it; Spark takes it out of this one by {drop}",
        )
    first_line = str(problem).strip().partition("\n")[0]
    at = "" if version is None else f" at version {version}"
    refuse(f"the Delta table `{path}` cannot be read{at}: {first_line}", "land its data again")


def _unread_features(path: DataPlace, version: int | None) -> Sequence[str]:
    """What a reader of the table would have to know that the library in use does not."""
    from deltalake.exceptions import DeltaError
    from deltalake.table import SUPPORTED_READER_FEATURES

    try:
        features = delta_table(path, version).protocol().reader_features
    except (DeltaError, OSError):
        return ()
    return sorted({*(features or ())} - SUPPORTED_READER_FEATURES)


def refuse_untyped(place: DataPlace, problem: Exception) -> NoReturn:
    """Refuses data that tell no type of their items."""
    cure = 'declare its type: `name = source("…")`, or `--schema`'
    refuse(f"`{place}`: {str(problem).splitlines()[0]}", cure)


def refuse_file(file: DataPlace, problem: Exception, cure: str | None = None) -> NoReturn:
    """Refuses a file of any kind; what helps follows from the problem where it is not given.

    Raises:
        InfrastructureError: the disk or the store does not answer.
    """
    raise_outage(problem, str(file))
    refuse(f"`{file}` cannot be read: {_said(problem)}", cure or _cure(problem))


def refuse_parquet(file: DataPlace, problem: Exception, base: DataPlace) -> NoReturn:
    """Refuses a file of Parquet; one of a Delta table at `base` is not to be left out."""
    raise_outage(problem, str(file))
    has_errno = isinstance(problem, OSError) and problem.errno is not None
    if has_errno or "not in range" in str(problem):
        refuse_file(file, problem)
    begin = _begin(file)
    if begin != b"PAR1":
        _refuse_other_kind(file, begin)
    cure = _OF_A_TABLE if (base / "_delta_log").is_dir() else CUT_OFF
    refuse_file(file, problem, cure)


def _said(problem: Exception) -> str:
    """What a library says, in one line that does not name the file again."""
    lines = (line.strip() for line in str(problem).splitlines())
    first = next((line for line in lines if line), type(problem).__name__)
    last = first.rpartition("': ")[2].partition(". Is this a ")[0]
    return "".join(filter(str.isprintable, last)).rstrip(" :.")


def _cure(problem: Exception) -> str:
    if isinstance(problem, EOFError | zlib.error) or "compressed" in str(problem).lower():
        return CUT_OFF
    if isinstance(problem, OSError) and problem.errno is not None:
        return _ACCESS
    if "not in range" in str(problem):
        return "write the column as a decimal or as text, or leave it out of the schema"
    return DAMAGED


Declared = Mapping[str, ItemType]
"""The columns that a program declares, where it does."""
ReadNames = frozenset[str | None] | None
"""The names of the columns to be read; None: all."""

JSON_LINES = "JSON lines"
_KINDS = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".csv": "CSV",
    ".json": JSON_LINES,
    ".jsonl": JSON_LINES,
    ".ndjson": JSON_LINES,
}


def is_delta(path: DataPlace) -> bool:
    """Whether a Delta table is there.

    Raises:
        DataError: there is one, in a path that its library cannot take (code `config`).
    """
    there = (path / "_delta_log").is_dir()
    if there:
        refuse_path(path)
    return there


def files_at(path: DataPlace) -> tuple[str, list[DataPlace]]:
    """The files at a path and what they all are: Parquet, CSV or JSON lines."""
    files = _files(path)
    kinds = {_kind_of(file) for file in files}
    if len(kinds) > 1:
        refuse(
            f"`{path}` holds files of several kinds: {', '.join(sorted(kinds))}",
            "take a glob that matches those of one kind, such as `*.csv`",
        )
    return kinds.pop(), files


def is_pattern(path: DataPlace) -> bool:
    """Whether the path is a glob and not the name of something that is there."""
    return bool(WILD & set(str(path))) and not path.exists()


def is_empty(path: DataPlace) -> bool:
    """Whether it is a folder in which no data lies; a store has no such folders."""
    if isinstance(path, RemotePath) or not path.is_dir() or is_delta(path):
        return False
    return not any(_within(path))


def _files(path: DataPlace) -> list[DataPlace]:
    files = _files_in_store(path) if isinstance(path, RemotePath) else _files_here(path)
    if not files:
        refuse(
            f"there is nothing to read at `{path}`",
            "name a file, a folder, a glob or a Delta table",
        )
    return files


def _files_in_store(place: RemotePath) -> list[DataPlace]:
    if is_pattern(place):
        return list[DataPlace](sorted(matching(place)))
    found = list(place.files())
    for file in found:
        if "_delta_log" in file.relative_to(place).parts[:-1]:
            _refuse_inner(file.parent.parent)
    if not found and place.is_file():
        return [place]
    return list[DataPlace](sorted(f for f in found if not _is_hidden(f, place)))


def _files_here(path: Path) -> list[DataPlace]:
    # Path.glob knows no absolute patterns.
    matched = glob.glob(str(path), recursive=True) if is_pattern(path) else [path]  # noqa: PTH207
    return list[DataPlace](sorted(file for place in map(Path, matched) for file in _within(place)))


def _is_hidden(file: DataPlace, below: DataPlace) -> bool:
    """Whether it is not data: its name, or that of a folder of its, begins with `_` or `.`."""
    return any(part[0] in "_." for part in PurePath(name_below(file, below)).parts)


def _within(place: Path) -> Iterator[Path]:
    """The files of a place."""
    if place.is_file():
        yield place
        return
    if not place.exists() and place.is_symlink():
        _refuse_link(place)
    inner = next(place.rglob("_delta_log"), None)
    if inner is not None:
        _refuse_inner(inner.parent)
    for file in place.rglob("*"):
        if _is_hidden(file, place):
            continue
        if file.is_file():
            yield file
        elif file.is_symlink():
            _refuse_link(file)


def _refuse_link(place: Path) -> NoReturn:
    """Refuses a link whose rows would be missing, as if nobody had meant them to be there."""
    if place.is_dir():
        refuse(
            f"`{place}` is a link to a folder, of which no file would be read",
            "move the files here, or link to each of them",
        )
    refuse(
        f"`{place}` is a link to what is not there: {place.readlink()}",
        "bring back the file, or remove the link",
    )


def _refuse_inner(table: DataPlace) -> NoReturn:
    refuse(
        f"there is a Delta table at `{table}`, some of whose files count no more",
        "name the table by itself",
    )


def _kind_of(file: DataPlace) -> str:
    suffixes = [s for s in file.suffixes if s != ".gz"]
    kind = _KINDS.get(suffixes[-1].lower()) if suffixes else None
    if kind is None:
        refuse(
            f"`{file}` is of no known kind",
            f"known are {', '.join(_KINDS)}, each also with .gz, and Delta tables",
        )
    return kind


def among(names: Iterable[str], wanted: ReadNames) -> list[str]:
    """The columns that are read."""
    return [name for name in names if wanted is None or name in wanted]


def base_of(path: DataPlace) -> DataPlace:
    """The folder itself, or the one that a glob begins with: `a=1` below it names a column."""
    if path.is_dir():
        return path
    if isinstance(path, RemotePath):
        return fixed_part(path)
    parts = []
    for part in path.parent.parts:
        if WILD & set(part):
            break
        parts.append(part)
    return Path(*parts) if parts else Path()


def folder_texts(file: DataPlace, base: DataPlace) -> dict[str, str | None]:
    """What the names of the folders of a file say of columns: `k=5` below `base`; None: null."""
    texts: dict[str, str | None] = {}
    for folder in PurePath(name_below(file, base)).parts[:-1]:
        name, equals, value = folder.partition("=")
        if equals and name:
            texts[unquote(name)] = None if value == _NULL else unquote(value)
    return texts


_NULL = "__HIVE_DEFAULT_PARTITION__"
