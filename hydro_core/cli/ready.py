"""`hydrotick ready`: what Spark needs is made ready ahead, once for each environment."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from hydro_core.cli.output import print_text
from hydro_core.spark.session.jars import STORES
from hydro_core.spark.session.ready import ready_ahead


def command(words: Sequence[str]) -> int:
    """Makes ready what Spark needs, once: a Java, jars, an archive of its classes."""
    parser = argparse.ArgumentParser(prog="hydrotick ready", description=command.__doc__)
    parser.add_argument(
        "--store",
        action="append",
        default=[],
        choices=sorted(STORES),
        help="also what Spark needs to read this kind of object store (repeatable)",
    )
    arguments = parser.parse_args(words)
    print_text("\n".join(ready_ahead(arguments.store)))
    return 0
