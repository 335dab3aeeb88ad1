"""What an operator is to time, keys and order: its class.

Every operator has one, and how a stream's rows come and go, what it costs, what is stored, what
must be read again, and which rules hold follow from it. The union is closed: whoever asks matches
every class, so that a new one is looked at everywhere, and an operator that is added to a class is
known everywhere.

The words are those of incremental view maintenance. *Linear* operators do the same with an item
that comes as with one that goes (`PerItem`, `Projection`, `Sum`); *bilinear* ones do so with each
input while the other stays (`Product`); the others work *by key* (`Matching`, `Distinct`, `ByKey`),
*by position* (`Positional`, `Ordering`), or *over time*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from hydro_core.catalog.spec import Args
    from hydro_core.functions.fn import Fn


@final
@dataclass(frozen=True, slots=True)
class Given:
    """Has no input: its items come with the tick."""


@final
@dataclass(frozen=True, slots=True)
class Nothing:
    """A stream without items."""


@final
@dataclass(frozen=True, slots=True)
class Output:
    """The end of a stream."""


class Gives(Enum):
    """What an operator that goes item by item gives for an item."""

    SAME = "the item"
    SOME = "the item, or nothing"
    ROUTED = "the item, where this is its way, one of several"
    ONE = "another item"
    UP_TO_ONE = "another item, or nothing"
    SEVERAL = "any number of items"
    RESULT = "the result of which the item holds the parts"


@final
@dataclass(frozen=True, slots=True)
class PerItem:
    """Linear: looks at one item at a time."""

    gives: Gives


@final
@dataclass(frozen=True, slots=True)
class Projection:
    """Linear: a row for each row, of its columns and computed ones."""

    columns: Callable[[Args, Sequence[str]], Mapping[str, str | Fn]]
    """From the arguments and the row's columns to what stands in each column of the output: the
    column of that name, or what the function gives for the row.
    """
    only: bool = False
    """The output has the columns that the arguments name, whatever else the row has."""


@final
@dataclass(frozen=True, slots=True)
class Sum:
    """Linear in all inputs together: their items."""

    widens: bool = False
    """Items change their type, so that all have one."""


class Meets(Enum):
    """Which items of two inputs a product brings together."""

    ALL = "each with each"
    KEY = "those of one key"
    SINGLE = "each of the first with the single item of the second"


@final
@dataclass(frozen=True, slots=True)
class Product:
    """Bilinear: pairs of the items of two inputs."""

    meets: Meets
    keeps: frozenset[int] = frozenset()
    """The inputs whose items stay, padded, where they meet none: these are not linear."""


class Compares(Enum):
    """What of the items of two inputs must be equal for a match."""

    ITEMS = "the items"
    KEYS = "the keys of both"
    BARE_KEYS = "the keys of the first with the items of the second"


@final
@dataclass(frozen=True, slots=True)
class Matching:
    """By key: the items of the first input that have a match in the second, or that have none."""

    wanted: bool
    """Whether those with a match stay."""
    compares: Compares


@final
@dataclass(frozen=True, slots=True)
class Distinct:
    """By key, which is the whole item: each once."""


class Summary(Enum):
    """What is made of the items of a key."""

    FOLD = "the accumulator of a function, from a start"
    REDUCTION = "an item, by a function of two"
    LATEST = "the greatest item"
    AGGREGATES = "named aggregates"


@final
@dataclass(frozen=True, slots=True)
class ByKey:
    """By key: one item is made of those of a key."""

    summary: Summary
    keyed: bool = True
    """Results stand by keys; else there is one, that of everything."""

    @property
    def is_fold(self) -> bool:
        """Whether a function of the program goes from item to item."""
        return self.summary in (Summary.FOLD, Summary.REDUCTION)


@final
@dataclass(frozen=True, slots=True)
class Running:
    """By key: a result that it stores, and makes anew where its input is new."""

    of: ByKey
    """What it is over all items."""
    changes: bool = False
    """It is the result of its input, of which it reads the changes; else of all that came so far,
    of which it gets what is new.
    """


@final
@dataclass(frozen=True, slots=True)
class Ordering:
    """Gives the items an order, or takes it away."""

    sorts: bool = True


class Places(Enum):
    """What an operator that goes by the place of an item in its stream gives."""

    EACH = "an item for each"
    FIRST = "the first items"
    FIRST_OF_KEY = "the first item of each key"
    PAIRS = "pairs of the items at one place"
    PADDED_PAIRS = "pairs of the items at one place, as long as either input has one"


@final
@dataclass(frozen=True, slots=True)
class Positional:
    """By position: an item's place among all decides."""

    gives: Places


@final
@dataclass(frozen=True, slots=True)
class History:
    """Over time: the items of all ticks so far."""

    before: bool = False
    """This tick apart."""


@final
@dataclass(frozen=True, slots=True)
class Window:
    """Over time: the items of the last ticks."""


@final
@dataclass(frozen=True, slots=True)
class Before:
    """Over time: the items of the tick before."""


@final
@dataclass(frozen=True, slots=True)
class Growth:
    """Over time: how a stream differs from what it was in the tick before."""

    signed: bool
    """What goes is told, too, with a count; else only what comes."""


@final
@dataclass(frozen=True, slots=True)
class Commands:
    """Over time: what all commands so far leave there."""

    keyed: bool
    """One value for each key."""


OpClass = (
    Given
    | Nothing
    | Output
    | PerItem
    | Projection
    | Sum
    | Product
    | Matching
    | Distinct
    | ByKey
    | Running
    | Ordering
    | Positional
    | History
    | Window
    | Before
    | Growth
    | Commands
)
ClassOf = Callable[["Args"], OpClass]
"""From the arguments to the class."""


def passes_on(cls: object) -> bool:
    """Whether the operator passes its input on as it is."""
    return isinstance(cls, PerItem) and cls.gives is Gives.SAME


def is_itemwise(cls: object) -> bool:
    """Whether the operator goes item by item, so that it does the same with changes."""
    return isinstance(cls, PerItem | Projection)


def keeps_first(cls: object) -> bool:
    """Whether the operator keeps an item of its first input or not, in the same tick."""
    match cls:
        case PerItem(gives):
            return gives in (Gives.SAME, Gives.SOME, Gives.ROUTED)
        case Matching() | Distinct():
            return True
        case _:
            return False


def aggregates(cls: object) -> bool:
    """Whether the operator makes named aggregates, of items or of what is new."""
    match cls:
        case ByKey(Summary.AGGREGATES) | Running(ByKey(Summary.AGGREGATES)):
            return True
        case _:
            return False
