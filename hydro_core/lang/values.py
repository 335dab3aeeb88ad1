"""The arguments of the Python API: values and functions as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hydro_core.catalog.over_functions import FUNCTIONS
from hydro_core.catalog.registry import TYPED
from hydro_core.catalog.spec import Aggregate, OverFunction
from hydro_core.functions.fn import Fn
from hydro_core.functions.read import read_callable
from hydro_core.lang.arguments import check_count, with_returns
from hydro_core.lang.constant_arguments import ArgumentProblem, neither, read_schema
from hydro_core.lang.over_functions import bound_function, no_function
from hydro_core.lang.place import of_function
from hydro_core.types.item import ItemType


class ValueReader:
    """Reads Python values."""

    def constant(self, written: Any) -> Any:
        """The value; a function without parameters is called."""
        return written() if callable(written) and not isinstance(written, Fn) else written

    def is_function(self, written: Any) -> bool:
        """Whether it can be called."""
        return callable(written) or isinstance(written, Fn)

    def function(self, written: Any, returns: ItemType | None) -> Fn:
        """The function, read from its source where that is possible."""
        if isinstance(written, Fn):
            return with_returns(written, returns, written)
        fn = read_callable(written, returns=returns)
        return replace(fn, span=fn.span or of_function(written))

    def aggregate(self, written: Any) -> Aggregate:
        """The aggregate, its Python functions read."""
        if not isinstance(written, Aggregate):
            help_ = '`from hydro_core import agg`, then `agg.sum("v")`'
            raise ArgumentProblem(
                "type", f"an aggregate is needed, not {written!r}", help_, written
            )
        arguments = tuple(self.column_or_function(a) for a in written.arguments)
        return check_count(Aggregate(written.function, arguments), written)

    def over_function(self, written: Any) -> OverFunction:
        """The function of `over`, its Python functions read."""
        if isinstance(written, OverFunction):
            names = (p.name for p in FUNCTIONS[written.function].parameters)
            given = dict(zip(names, written.arguments, strict=True))
            return bound_function(written.function, (), given, self, written)
        raise no_function(getattr(written, "function", None), written)

    def column_or_function(self, written: Any) -> str | Fn:
        """A column, or a function of the row."""
        if isinstance(written, str):
            return written
        if self.is_function(written):
            return self.function(written, None)
        help_ = "name a column, or give a function of the row"
        raise neither(help_, written)


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
