"""The words after a command that is about one flow."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TextIO

from assets.spec import FlowAsset
from hydro_core.errors import DataError, Diagnostic


def flow_parser(
    command: str, says: str | None, flows: Sequence[FlowAsset]
) -> argparse.ArgumentParser:
    """The parser of `hydrotick COMMAND FLOW`, to which the command adds its own options."""
    parser = argparse.ArgumentParser(prog=f"hydrotick {command}", description=says)
    parser.add_argument("flow", choices=[flow.name for flow in flows])
    return parser


def flow_named(name: str, flows: Sequence[FlowAsset]) -> FlowAsset:
    """The flow of that name, which is one of those that the parser has let through."""
    return next(flow for flow in flows if flow.name == name)


def agreed(to: TextIO) -> bool:
    """Asks whether to go on, and gives the answer.

    Raises:
        DataError: there is nobody to ask (code `config`).
    """
    if not sys.stdin.isatty():
        raise DataError(
            Diagnostic(
                "config",
                "this is asked before it is done, and there is no terminal to ask at",
                help="give `--yes` to do it without a question",
            )
        )
    to.write("Go on? [y/N] ")
    to.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
