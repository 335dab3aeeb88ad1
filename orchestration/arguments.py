"""The words after a command that is about one flow."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from assets.spec import FlowAsset


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
