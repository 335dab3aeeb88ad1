"""Functions for tests: of a text program, and live ones with a source that can be read."""

from __future__ import annotations

import ast
import linecache
from typing import Any

from hydro_core.functions.read import read_callable, read_function
from hydro_core.functions.tree import Fn


def text(source: str, **bindings: Any) -> Fn:
    """The function of a text program's argument."""
    return read_function(ast.parse(source, mode="eval").body, bindings)


def live(source: str, **names: Any) -> Fn:
    """The Python function `f` that a text defines, or the lambda that it is."""
    whole = source if "def f" in source else f"f = {source}\n"
    file = f"<test {hash(source)}>"
    linecache.cache[file] = (len(whole), None, whole.splitlines(keepends=True), file)
    scope: dict[str, Any] = dict(names)
    exec(compile(whole, file, "exec"), scope)
    return read_callable(scope["f"])
