"""Work that leaves all as it was when it fails is done again where Spark's JVM has ended in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hydro_core.errors import EngineEndedError

T = TypeVar("T")
AGAIN = "Spark's JVM ended in the middle of the work: it begins again, with another one"


def with_another_jvm(work: Callable[[], T], say: Callable[[str], None]) -> T:
    """What the work gives; it is tried a second time, where the process that computes has ended.

    One that ends again is not given a third: it is too small for the work.
    """
    try:
        return work()
    except EngineEndedError:
        say(AGAIN)
        return work()
