"""The type of a function's result, said beside the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hydro_core.catalog.usage import TYPED
from hydro_core.functions.fn import Fn
from hydro_core.lang.constant_arguments import read_schema
from hydro_core.lang.values import ValueReader


def typed(returns: str, f: Callable[..., Any]) -> Fn:
    """The function `f` with the type of what it gives, where that cannot be read from it.

    Args:
        returns: The type as Spark DDL: `"long"`, `"array<string>"`, `"(long, string)"`.
        f: A function of the row.

    Returns:
        What `select`, `with_columns`, `aggregate` and `latest` take in the place of a function.
        Operators of one function have the argument `returns=` for it.

    >>> import re
    >>> from hydro_core import Flow
    >>> flow = Flow("names")
    >>> names = flow.source("names", "name string")
    >>> names.select(short=typed("string", lambda r: re.sub("a", "", r.name))).sink("out")
    >>> list(flow.run([{"names": [{"name": "ada"}]}]))
    [{'out': [{'short': 'd'}]}]
    """
    return ValueReader().function(f, read_schema(TYPED, returns, f))
