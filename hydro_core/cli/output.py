"""The only printer: everything that a command says goes through here."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, cast

from hydro_core.errors import Diagnostic, HydroError, visible
from hydro_core.types.json import json_text

_PIECE = 1_000
"""So many lines are written at once, where there may be any number."""
UNREAD = 128 + signal.SIGPIPE
"""What a shell says of a program whose reader has left."""


def print_text(text: str) -> None:
    """Prints a result for people."""
    write(f"{text}\n")


def print_json(value: Any) -> None:
    """Prints a result for programs, on one line, at once."""
    write(f"{json_text(value)}\n")


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines as they come; how many they are does not matter."""
    pieces = iter(lines)
    while piece := list(islice(pieces, _PIECE)):
        write("\n".join(piece) + "\n")


def print_json_rows(head: Mapping[str, Any], name: str, rows: Iterable[Any]) -> None:
    """Prints an object for programs, on one line, whose last member is a list of any length."""
    pieces = iter(rows)
    write(f"{json_text({**head, name: []})[:-2]}")
    between = ""
    while piece := list(islice(pieces, _PIECE)):
        write(between + ", ".join(map(json_text, piece)))
        between = ", "
    write("]}\n")


def print_error(text: str) -> None:
    """Prints what is no result: progress, warnings, errors."""
    write(f"{text}\n", sys.stderr)


def print_problem(error: HydroError, style: str) -> None:
    """Prints an error: JSON on standard output if asked for, else text on standard error."""
    if style == "json":
        print_json({"error": error.as_json()})
    else:
        print_error(str(error))


def print_warnings(warnings: Sequence[Diagnostic]) -> None:
    """Prints warnings for people, on standard error."""
    for warning in warnings:
        print_error(warning.render() + "\n")


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
