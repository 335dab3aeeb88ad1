"""The only printer: a command returns one record, which is printed here as text or as JSON."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, cast

from hydro_core.errors import Diagnostic, HydroError, visible
from hydro_core.types.json import json_text
from hydro_core.types.records import as_record

_PIECE = 1_000
"""So many lines are written at once, where there may be any number."""
UNREAD = 128 + signal.SIGPIPE
"""Exit code that a shell reports of a program whose reader has left."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a command: one record, its text, and the exit code.

    Args:
        record: JSON's own values, a frozen dataclass, or a value with `as_json()`. An iterator as
            the last member of a mapping becomes a list of any length.
        text: its text or its lines, evaluated only where they are printed; None: people get JSON.
        code: the exit code.
        aside: lines for people on standard error, before the text.
    """

    record: Any = None
    text: str | Iterable[str] | None = ()
    code: int = 0
    aside: Iterable[str] = ()


def print_result(result: Result, style: str) -> int:
    """Prints a result in a style, `json` or for people; gives the exit code."""
    if result.text is None or (style == "json" and result.record is not None):
        print_json(result.record)
        return result.code
    for line in result.aside:
        print_error(line)
    text = result.text
    print_lines(([text.rstrip()] if text.strip() else []) if isinstance(text, str) else text)
    return result.code


def print_json(record: Any) -> None:
    """Prints a record for programs, on one line, at once."""
    last = next(reversed(record.values()), None) if isinstance(record, dict) else None
    if isinstance(last, Iterator):
        _print_streamed(record)
    else:
        write(f"{json_text(_json_value(record))}\n")


def _json_value(record: Any) -> Any:
    if record is None or isinstance(record, dict | list):
        return record
    return record.as_json() if hasattr(record, "as_json") else as_record(record)


def _print_streamed(record: Mapping[str, Any]) -> None:
    *_, (name, rows) = record.items()
    write(f"{json_text({**record, name: []})[:-2]}")
    between = ""
    while piece := list(islice(rows, _PIECE)):
        write(between + ", ".join(map(json_text, piece)))
        between = ", "
    write("]}\n")


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines as they come; how many they are does not matter."""
    pieces = iter(lines)
    while piece := list(islice(pieces, _PIECE)):
        write("\n".join(piece) + "\n")


def print_error(text: str) -> None:
    """Prints what is no result: progress, warnings, errors."""
    write(f"{text}\n", sys.stderr)


def print_problem(error: HydroError, style: str) -> None:
    """Prints an error: JSON on standard output if asked for, else text on standard error."""
    if style == "json":
        print_json({"error": error.as_json()})
    else:
        print_error(str(error))


def warning_lines(warnings: Iterable[Diagnostic]) -> Iterator[str]:
    return (f"{warning.render()}\n" for warning in warnings)


def print_warnings(warnings: Iterable[Diagnostic]) -> None:
    for line in warning_lines(warnings):
        print_error(line)


def write(text: str, stream: TextIO | None = None) -> None:
    """Writes a text at once. Names and values in it are of anybody: no terminal obeys them.

    Args:
        text: with its ends of lines.
        stream: where to; None: standard output.

    Raises:
        SystemExit: nobody reads it any more (`| head`): the command ends, silently.
    """
    to = cast("TextIO | None", sys.stdout if stream is None else stream)
    if to is None:
        return  # it was closed by whoever started this (`>&-`)
    # Only what we write ourselves goes back to the beginning of a line.
    begin = "\r" if text.startswith("\r") else ""
    try:
        to.write(begin + visible(text.removeprefix(begin)))
        to.flush()
    except BrokenPipeError:
        # Only a stream's own error: a socket's is no reader's, and tells of a defect.
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), to.fileno())  # or Python complains when it closes the stream
        raise SystemExit(UNREAD) from None
