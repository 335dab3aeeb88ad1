"""`hydrotick ready`: what Spark needs is made ready ahead, once for each environment."""

from __future__ import annotations

import argparse

from hydro_core.cli.output import print_text
from hydro_core.spark.session.ready import ready_ahead


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of `hydrotick ready`."""


def run(_arguments: argparse.Namespace) -> int:
    """Makes ready what is missing, and says what is there."""
    print_text("\n".join(ready_ahead()))
    return 0
