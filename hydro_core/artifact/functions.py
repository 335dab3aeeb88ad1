"""Stored functions: as trees; as checked syntax; or by name, where a tree says too little.

A function that is stored by name is looked up when it is first called, and must still be what it
was: a deployment does not change because a module does.
It stands apart from the codec, since Spark's workers load it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hydro_core.errors import DataError, ProgramError
from hydro_core.functions.call import TextCall
from hydro_core.functions.from_tree import LateCall, is_complete
from hydro_core.functions.read import read_callable
from hydro_core.functions.tree import Fn
from hydro_core.functions.views import ViewedCall


class ReferenceCall(LateCall):
    """A callable that is looked up by module and name when it is first called.

    Raises:
        DataError: the function is not there, or is another one (code `state`).
    """

    __slots__ = ("module", "name", "source")

    def __init__(self, module: str, name: str, source: str | None = None) -> None:
        self.module, self.name, self.source = module, name, source

    def __reduce__(self) -> tuple[type, tuple[str, str, str | None]]:
        return ReferenceCall, (self.module, self.name, self.source)

    def _make(self) -> Callable[..., Any]:
        try:
            function = resolved(self.module, self.name)
        except (ImportError, AttributeError) as problem:
            raise _changed(f"`{self.module}:{self.name}` is not there: {problem}") from None
        if self.source is not None and read_callable(function).whole != self.source:
            raise _changed(f"`{self.module}:{self.name}` is not what it was when it was deployed")
        return function


def resolved(module: str, name: str) -> Callable[..., Any]:
    """The function called so; raises `ImportError` or `AttributeError`."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def stored_call(fn: Fn) -> tuple[Any, ...]:
    """The form in which the function's call is stored: a kind, and its parts.

    Raises:
        ProgramError: it is neither read whole nor has it a name to find it by (code `config`).
    """
    match fn.call:
        case ViewedCall(inner, view):
            return ("view", inner, view)
        case ReferenceCall() as call:
            return ("reference", call.module, call.name)
        case _ if is_complete(fn.tree):
            return ("tree",)
        case TextCall() as call:
            return ("syntax", *call.__reduce__()[1])
        case call:
            module, name = getattr(call, "__module__", None), getattr(call, "__qualname__", None)
            if isinstance(module, str) and isinstance(name, str):
                with suppress(ImportError, AttributeError):
                    if resolved(module, name) is call:
                        return ("reference", module, name)
            raise ProgramError.of(
                "config",
                f"the function `{fn.name}` cannot be stored with a deployment: it is not read "
                "whole, and has no name in a module to find it by",
                span=fn.span,
                help="define it with `def` at the top of a module, or write it as an expression",
            )


def _changed(message: str) -> DataError:
    help_ = "deploy the flow again, or bring back the module as it was"
    return DataError.of("state", message, help=help_)
