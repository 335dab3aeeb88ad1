"""Which directories can hold Delta tables: the tables' library makes URLs of paths."""

from __future__ import annotations

import re

from hydro_core.errors import DataError
from hydro_core.storage.remote import DataPlace

_NOT_IN_PATHS = re.compile(r"[\[\]|^\\%]")
"""What delta-rs makes another path of, or panics at."""


def refuse_path(directory: DataPlace) -> None:
    """Refuses a directory whose name the library of the tables cannot take.

    Raises:
        DataError: which characters there are (code `config`).
    """
    found = sorted(set(_NOT_IN_PATHS.findall(str(directory.absolute()))))
    if found:
        signs = " ".join(f"`{sign}`" for sign in found)
        raise DataError.of(
            "config",
            f"there can be no Delta table in {directory}: its path has {signs}",
            help="choose another directory",
        )
