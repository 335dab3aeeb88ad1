"""What the methods of all families stand on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hydro_core.catalog.spec import OpSpec

if TYPE_CHECKING:
    from hydro_core.lang.stream import Stream

UserFunction = Callable[..., Any]
"""A lambda, or a `def`."""

ColumnNames = str | list[str] | tuple[str, ...]
"""A column or several."""


class Methods(ABC):
    """A stream that operators can be applied to."""

    @abstractmethod
    def apply(self, op: OpSpec, *arguments: Any, **keywords: Any) -> Stream:
        """The stream that an operator makes of this one; keywords that are None do not count."""
