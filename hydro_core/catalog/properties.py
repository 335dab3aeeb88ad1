"""What every class of operators says of itself, for all who ask."""

from __future__ import annotations

from enum import Enum


class Passes(Enum):
    """Which of its inputs' items an operator gives."""

    ALL = "all of this tick's, some perhaps once only"
    SOME = "some of the first input's, of this tick"
    SO_FAR = "all of this tick's, and earlier ones"
    EARLIER = "some of the first input's, of this tick or earlier"
    NONE = "none but what it makes itself"


class Holds(Enum):
    """How much of the past an operator's output holds."""

    INPUTS = "what its inputs hold"
    HISTORY = "the items of all ticks so far"
    WINDOW = "the items of the last ticks"
    RESULT = "what is made of all that its input holds, which is less"
    STATE = "a result that it stores itself, and of which it knows what changes"

    @property
    def condenses(self) -> bool:
        """Whether it is a result, not the rows that it is made of."""
        return self in (Holds.RESULT, Holds.STATE)
