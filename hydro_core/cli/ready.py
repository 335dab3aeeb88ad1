"""`hydrotick ready`: what Spark needs is made ready ahead, once for each environment."""

from __future__ import annotations

from hydro_core.cli.command import Asked
from hydro_core.cli.output import print_text
from hydro_core.spark.session.ready import ready_ahead


def command(arguments: Asked) -> int:
    print_text("\n".join(ready_ahead(arguments.store)))
    return 0
