"""In what the operators of one class differ: the words that stand in their classes."""

from __future__ import annotations

from enum import Enum


class Gives(Enum):
    """What an operator that goes item by item gives for an item."""

    SAME = "the item"
    SOME = "the item, or nothing"
    ROUTED = "the item, where this is its way, one of several"
    ONE = "another item"
    UP_TO_ONE = "another item, or nothing"
    SEVERAL = "any number of items"
    RESULT = "the result of which the item holds the parts"


class Meets(Enum):
    """Which items of two inputs a product brings together."""

    ALL = "each with each"
    KEY = "those of one key"
    SINGLE = "each of the first with the single item of the second"


class Compares(Enum):
    """What of the items of two inputs must be equal for a match."""

    ITEMS = "the items"
    KEYS = "the keys of both"
    BARE_KEYS = "the keys of the first with the items of the second"
    NOTHING = "nothing: a condition over both alone decides"


class Summary(Enum):
    """What is made of the items of a key."""

    FOLD = "the accumulator of a function, from a start"
    REDUCTION = "an item, by a function of two"
    LATEST = "the greatest item"
    AGGREGATES = "named aggregates"


class Places(Enum):
    """What an operator that goes by the place of an item in its stream gives."""

    EACH = "an item for each"
    FIRST = "the first items"
    FIRST_OF_KEY = "the first item of each key"
    PAIRS = "pairs of the items at one place"
    PADDED_PAIRS = "pairs of the items at one place, as long as either input has one"
