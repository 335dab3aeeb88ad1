"""The only printer: everything that a command says goes through here."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from hydro_core.errors import Diagnostic, HydroError
from hydro_core.types.json import json_text


def add_format_argument(
    parser: argparse.ArgumentParser, formats: Sequence[str] = ("text", "json")
) -> None:
    """Declares `--format`, of which the first is the default."""
    parser.add_argument(
        "--format",
        choices=formats,
        default=formats[0],
        help=f"how it is printed (default: {formats[0]})",
    )


def print_text(text: str) -> None:
    """Prints a result for people."""
    _print(text, sys.stdout)


def print_json(value: Any) -> None:
    """Prints a result for programs, on one line, at once."""
    _print(json_text(value), sys.stdout)


def print_error(text: str) -> None:
    """Prints what is no result: progress, warnings, errors."""
    _print(text, sys.stderr)


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


def _print(text: str, stream: Any) -> None:
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        # The reader has left (`| head`): Python must not complain again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
