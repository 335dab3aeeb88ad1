"""What was read, held in memory up to a number of bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Held(Generic[T]):
    """Values up to so many bytes; those that were not asked for the longest go first."""

    def __init__(self, most: int, size: Callable[[T], int]) -> None:
        """`size` tells the bytes of a value."""
        self.most, self._size = most, size
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: Hashable) -> T | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: T) -> T:
        """Holds a value, and gives it; the last one is held however large it is."""
        with self._lock:
            if key not in self._values:
                self._values[key] = value
                self._bytes += self._size(value)
            while self._bytes > self.most and len(self._values) > 1:
                _, given_up = self._values.popitem(last=False)
                self._bytes -= self._size(given_up)
        return value
