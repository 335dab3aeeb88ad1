"""Why a file cannot be read: what is wrong, in which line of it, and what helps."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

import pyarrow as pa

from hydro_core.errors import DataError, Diagnostic
from hydro_core.files.plain import item_type
from hydro_core.types.values import ValueProblem

UNREADABLE = (
    *(pa.ArrowException, ValueProblem, UnicodeDecodeError, csv.Error),
    *(OSError, EOFError, zlib.error),
)
"""What reading a damaged file raises."""
NOT_UTF8 = "save it as UTF-8, for example with `iconv -f LATIN1 -t UTF-8`"
_CUT_OFF = "it is cut off or damaged: write it again, as a whole, or leave it out"
DAMAGED = "write it again, or leave it out"
_ACCESS = "see that it is there, and that the user who runs this may read it"
MISFIT = re.compile(
    r"In CSV column #(?P<column>\d+):.*CSV conversion error to (?P<type>[^:]+)"
    r"(: invalid value '(?P<value>.*)')?"
)
"""What Arrow says of a field that is no value of its column's type."""


def refuse(message: str, cure: str) -> NoReturn:
    """Raises an error of the data (code `input`)."""
    raise DataError(Diagnostic("input", message, help=cure))


def text_of(file: Path, *, strict: bool = True) -> TextIO:
    """A file of UTF-8 with or without a mark at its start, unpacked where it ends in `.gz`.

    Args:
        file: where it lies.
        strict: whether to fail where it is not UTF-8; else `is_utf8` tells of a line.
    """
    opened = gzip.open if file.suffix == ".gz" else open
    errors = "strict" if strict else "surrogateescape"
    found: Any = opened(file, "rt", encoding="utf-8-sig", errors=errors, newline="")
    return found  # type: ignore[no-any-return]


def is_utf8(line: str) -> bool:
    """Whether a line of a text that was not read strictly is UTF-8."""
    return line.isascii() or not any("\udc80" <= c <= "\udcff" for c in line)


def refuse_not_utf8(file: Path, line: int) -> NoReturn:
    """Refuses a file for a line that is not UTF-8."""
    refuse(f"`{file}`, line {line} is not UTF-8", NOT_UTF8)


def refuse_delta(path: str, problem: Exception, version: int | None = None) -> NoReturn:
    """Refuses a Delta table; one of another form than is read is told by the names of that form."""
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


def _unread_features(path: str, version: int | None) -> Sequence[str]:
    """What a reader of the table would have to know that the library in use does not."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError
    from deltalake.table import SUPPORTED_READER_FEATURES

    try:
        features = DeltaTable(path, version=version).protocol().reader_features
    except (DeltaError, OSError):
        return ()
    return sorted({*(features or ())} - SUPPORTED_READER_FEATURES)


def refuse_bytes(file: Path, found: pa.Schema) -> None:
    """Refuses a CSV file with a column that is no text: bytes that are not UTF-8."""
    if any(pa.types.is_binary(field.type) for field in found):
        refuse_text(file, ValueProblem("not UTF8"))


def refuse_text(file: Path, problem: Exception) -> NoReturn:
    """Refuses a file of text; what is not UTF-8 is told by its line."""
    if isinstance(problem, UnicodeDecodeError) or "UTF8" in str(problem):
        with text_of(file, strict=False) as lines:
            for number, line in enumerate(lines, 1):
                if not is_utf8(line):
                    refuse_not_utf8(file, number)
    refuse_file(file, problem)


def refuse_untyped(place: str, problem: Exception) -> NoReturn:
    """Refuses data that tell no type of their items."""
    cure = 'declare its type: `name = source("…")`, or `--schema`'
    refuse(f"`{place}`: {str(problem).splitlines()[0]}", cure)


def refuse_file(file: Path, problem: Exception) -> NoReturn:
    """Refuses a file of any kind."""
    said = str(problem) or type(problem).__name__
    refuse(f"`{file}` cannot be read: {said.splitlines()[0]}", _cure(problem))


def _cure(problem: Exception) -> str:
    if isinstance(problem, EOFError | zlib.error) or "compressed" in str(problem).lower():
        return _CUT_OFF
    if isinstance(problem, OSError) and problem.errno is not None:
        return _ACCESS
    return DAMAGED


def refuse_csv(file: Path, problem: Exception) -> NoReturn:
    """Refuses a CSV file; a field that does not fit is told by its line and its column's name."""
    found = MISFIT.search(str(problem))
    if found is None or found["value"] is None:
        refuse_text(file, problem)
    place = int(found["column"])
    with text_of(file) as lines:
        rows = csv.reader(lines)
        header = next(rows, [])
        bad = (row for row in rows if len(row) > place and row[place] == found["value"])
        line = f"line {rows.line_num}, " if next(bad, None) is not None else ""
    # Arrow counts the columns that it reads; all of the file are read by their places.
    column = header[place] if place < len(header) else f"#{place}"
    alias: Any = found["type"].partition("[")[0]
    of = item_type(pa.type_for_alias(alias))
    refuse(
        f"`{file}`, {line}column `{column}`: {found['value']!r} is not of type {of}",
        "mend the file, or declare the type that the column has",
    )
