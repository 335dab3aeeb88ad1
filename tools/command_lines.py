"""The argument parsers of the commands, and whether they take a command line.

A command makes its parser when it is called, and uses it before it does anything. So it is called
here with a parser that ends it at that moment.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hydro_core.cli.main import commands, main


class _Parsed(BaseException):
    """The arguments were taken; the command is not run."""


@contextmanager
def _instead_of_parsing(then: Any) -> Iterator[None]:
    parse = argparse.ArgumentParser.parse_args

    def parse_args(self: argparse.ArgumentParser, words: Sequence[str] | None = None) -> None:
        then(self, lambda: parse(self, words))
        raise _Parsed

    argparse.ArgumentParser.parse_args = parse_args  # type: ignore[method-assign,assignment]
    try:
        yield
    except _Parsed:
        pass
    finally:
        argparse.ArgumentParser.parse_args = parse  # type: ignore[method-assign]


def names() -> list[str]:
    """The commands that there are."""
    return sorted(commands())


def take(words: Sequence[str]) -> None:
    """Has `hydrotick` parse these words; misuse ends as it does for users, with `SystemExit`."""
    with _instead_of_parsing(lambda parser, parse: parse()):
        main(words)


def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser with which a command reads its arguments."""
    made: list[argparse.ArgumentParser] = []
    with _instead_of_parsing(lambda parser, parse: made.append(parser)):
        main([command])
    (parser,) = made
    return parser
