"""What the environment says of Spark, the same for `run` and for flows; whoever reads the
environment passes it in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hydro_core.errors import DataError, Diagnostic
from hydro_core.settings import Settings, size_in_bytes

MASTER, MEMORY = "HYDROTICK_SPARK_MASTER", "HYDROTICK_SPARK_MEMORY"

_MASTERS = re.compile(r"local(\[\s*(\d+|\*)\s*(,\s*\d+\s*)?\])?|yarn|(local-cluster\[|\w+://).+")


def settings_of(environ: Mapping[str, str]) -> Settings:
    """The settings as the environment changes them.

    Raises:
        DataError: a variable has a value that nothing can be made of (code `config`).
    """
    master, memory = environ.get(MASTER), environ.get(MEMORY)
    wanted = {}
    if master:
        if _MASTERS.fullmatch(master) is None:
            raise wrong_variable(
                MASTER, master, "no master of Spark", "write `local[2]`, `local[*]` or a URL"
            )
        wanted["master"] = master
    if memory:
        try:
            size_in_bytes(memory)
        except ValueError:
            cure = "write a whole number with k, m, g or t, such as `2g`"
            raise wrong_variable(MEMORY, memory, "no size", cure) from None
        wanted["memory"] = memory
    return Settings().with_(**wanted)


def wrong_variable(name: str, value: str, problem: str, cure: str) -> DataError:
    """The error that says what is wrong with a variable of the environment."""
    return DataError(
        Diagnostic(
            code="config",
            message=f"{name} is `{value}`, which is {problem}",
            help=f"{cure}, or leave it out",
        )
    )
