"""What the methods of all families stand on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from hydro_core.catalog.spec import OpSpec

UserFunction = Callable[..., Any]
"""A lambda, or a `def`."""

ColumnNames = str | list[str] | tuple[str, ...]
"""A column or several."""

StreamT = TypeVar("StreamT")
"""The stream that has the methods of all families."""


class Methods(ABC, Generic[StreamT]):
    """A stream that operators can be applied to."""

    @abstractmethod
    def apply(self, op: OpSpec, *arguments: Any, **keywords: Any) -> StreamT:
        """The stream that an operator makes of this one; keywords that are None do not count."""
