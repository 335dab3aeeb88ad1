"""Operator classes: the behaviour of an operator over time, keys and order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeGuard, assert_never, final

if TYPE_CHECKING:
    from hydro_core.functions.tree import Fn


# In what the operators of one class differ: the words that stand in their classes.


class ItemEffect(Enum):
    """What an operator that goes item by item gives for an item."""

    SAME = "the item"
    SOME = "the item, or nothing"
    ROUTED = "the item, where this is its way, one of several"
    ONE = "another item"
    UP_TO_ONE = "another item, or nothing"
    SEVERAL = "any number of items"
    RESULT = "the result of which the item holds the parts"


class PairedItems(Enum):
    """Which items of two inputs a product brings together."""

    ALL = "each with each"
    KEY = "those of one key"
    SINGLE = "each of the first with the single item of the second"


class MatchCondition(Enum):
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


# What every class of operators says of itself, for all who ask.


class PassedItems(Enum):
    """Which of its inputs' items an operator gives."""

    ALL = "all of this tick's, some perhaps once only"
    SOME = "some of the first input's, of this tick"
    SO_FAR = "all of this tick's, and earlier ones"
    EARLIER = "some of the first input's, of this tick or earlier"
    NONE = "none but what it makes itself"


class PastExtent(Enum):
    """How much of the past an operator's output holds."""

    INPUTS = "what its inputs hold"
    HISTORY = "the items of all ticks so far"
    WINDOW = "the items of the last ticks"
    RESULT = "what is made of all that its input holds, which is less"
    STATE = "a result that it stores itself, and of which it knows what changes"

    @property
    def condenses(self) -> bool:
        """Whether it is a result, not the rows that it is made of."""
        return self in (PastExtent.RESULT, PastExtent.STATE)


# What an operator is to time, keys and order: its class.
#
# Every operator has one, and how a stream's rows come and go, what it costs, what is stored, what
# must be read again, and which rules hold follow from it. The union is closed: whoever asks
# matches every class, so that a new one is looked at everywhere, and an operator that is added to
# a class is known everywhere.
#
# The words are those of incremental view maintenance. *Linear* operators do the same with an item
# that comes as with one that goes (`PerItem`, `Projection`, `Sum`); *bilinear* ones do so with
# each input while the other stays (`Product`); the others work *by key* (`KeyMatch`, `AsOf`,
# `DistinctItems`, `ByKey`, `OrderedByKey`), *by position* (`PositionalOrder`, `Ordering`), or
# *over time*. Such a word is a base of its classes (`Linear`, `PerKey`, `PerPosition`,
# `OverTime`), for who says the same of all of them.
#
# What many ask of a class each of them says itself (`properties.py`): which of its inputs' items
# it `passes` on, and how much of the past its output `holds`.


class ClassFacts:
    """What holds of a class of operators unless it says otherwise."""

    __slots__ = ()
    hands_on: ClassVar[bool] = False
    """It does the same with changes as with items."""
    takes_changes: ClassVar[bool] = False
    """The changes of its input serve it as well as its values, or better: what is stored of a
    stream that is told by its changes is a log of them.
    """

    @property
    def reads_changes(self) -> bool:
        """Whether it looks at the changes of its input alone, where it is told by them."""
        return False


class StreamEnd(ClassFacts):
    """Where streams begin and end."""

    __slots__ = ()
    passes: ClassVar[PassedItems] = PassedItems.NONE
    holds: ClassVar[PastExtent] = PastExtent.INPUTS


class Linear(ClassFacts):
    """The same with items that come as with items that go."""

    __slots__ = ()
    hands_on: ClassVar[bool] = True
    holds: ClassVar[PastExtent] = PastExtent.INPUTS


class PerKey(ClassFacts):
    """What becomes of a key's items depends on that key's alone."""

    __slots__ = ()


class PerPosition(ClassFacts):
    """An item's place among all decides, or is decided."""

    __slots__ = ()


class OverTime(ClassFacts):
    """The items of other ticks decide, too."""

    __slots__ = ()


@final
@dataclass(frozen=True, slots=True)
class ExternalItems(StreamEnd):
    """Has no input: its items come with the tick."""


@final
@dataclass(frozen=True, slots=True)
class EmptyStream(StreamEnd):
    """A stream without items."""


@final
@dataclass(frozen=True, slots=True)
class Output(StreamEnd):
    """The end of a stream."""

    hands_on: ClassVar[bool] = True
    takes_changes: ClassVar[bool] = True


@final
@dataclass(frozen=True, slots=True)
class PerItem(Linear):
    """Linear: looks at one item at a time."""

    gives: ItemEffect

    @property
    def passes(self) -> PassedItems:
        """Which of its inputs' items it gives."""
        match self.gives:
            case ItemEffect.SAME:
                return PassedItems.ALL
            case ItemEffect.SOME | ItemEffect.ROUTED:
                return PassedItems.SOME
            case ItemEffect.ONE | ItemEffect.UP_TO_ONE | ItemEffect.SEVERAL | ItemEffect.RESULT:
                return PassedItems.NONE


MadeColumns = Callable[[Mapping[str, Any], Sequence[str]], Mapping[str, "str | Fn"]]
"""From the arguments and the row's columns to what stands in each column of the output: the column
of that name, or what the function gives for the row.
"""


@final
@dataclass(frozen=True, slots=True)
class Projection(Linear):
    """Linear: a row for each row, of its columns and computed ones."""

    passes: ClassVar[PassedItems] = PassedItems.NONE
    gives: ClassVar[ItemEffect] = ItemEffect.ONE
    columns: MadeColumns
    only: bool = False
    """The output has the columns that the arguments name, whatever else the row has."""


@final
@dataclass(frozen=True, slots=True)
class Sum(Linear):
    """Linear in all inputs together: their items."""

    widens: bool = False
    """Items change their type, so that all have one."""

    @property
    def passes(self) -> PassedItems:
        """Which of its inputs' items it gives."""
        return PassedItems.NONE if self.widens else PassedItems.ALL


@final
@dataclass(frozen=True, slots=True)
class Product(ClassFacts):
    """Bilinear: pairs of the items of two inputs."""

    passes: ClassVar[PassedItems] = PassedItems.NONE
    holds: ClassVar[PastExtent] = PastExtent.INPUTS
    meets: PairedItems
    keeps: frozenset[int] = frozenset()
    """The inputs whose items stay, padded, where they meet none: these are not linear."""


@final
@dataclass(frozen=True, slots=True)
class KeyMatch(PerKey):
    """By key: the items of the first input that have a match in the second, or that have none."""

    passes: ClassVar[PassedItems] = PassedItems.SOME
    holds: ClassVar[PastExtent] = PastExtent.INPUTS
    wanted: bool
    """Whether those with a match stay."""
    compares: MatchCondition


@final
@dataclass(frozen=True, slots=True)
class AsOf(PerKey):
    """By key: each item of the first input with the item of the second that is nearest to it."""

    passes: ClassVar[PassedItems] = PassedItems.NONE
    holds: ClassVar[PastExtent] = PastExtent.INPUTS
    keyed: bool = True
    """Columns of both are the key; else there is none, and one key is all there is."""


@final
@dataclass(frozen=True, slots=True)
class DistinctItems(PerKey):
    """By key, which is the whole item: each once."""

    passes: ClassVar[PassedItems] = PassedItems.ALL
    holds: ClassVar[PastExtent] = PastExtent.INPUTS


@final
@dataclass(frozen=True, slots=True)
class ByKey(PerKey):
    """By key: one item is made of those of a key."""

    holds: ClassVar[PastExtent] = PastExtent.RESULT
    summary: Summary
    keyed: bool = True
    """Results stand by keys; else there is one, that of everything."""

    @property
    def is_fold(self) -> bool:
        """Whether a function of the program goes from item to item."""
        return self.summary in (Summary.FOLD, Summary.REDUCTION)

    @property
    def passes(self) -> PassedItems:
        """Which of its inputs' items it gives."""
        return PassedItems.SOME if self.summary is Summary.LATEST else PassedItems.NONE


@final
@dataclass(frozen=True, slots=True)
class OrderedByKey(PerKey):
    """By key: many items are made of those of a key, by their order."""

    gives: Literal[Places.EACH, Places.FIRST]
    keyed: bool = True
    """Columns of the items are the key; else there is none, or a function gives it."""

    @property
    def passes(self) -> PassedItems:
        """Which of its inputs' items it gives."""
        return PassedItems.SOME if self.gives is Places.FIRST else PassedItems.NONE

    @property
    def holds(self) -> PastExtent:
        """How much of the past its output holds."""
        return PastExtent.RESULT if self.gives is Places.FIRST else PastExtent.INPUTS


@final
@dataclass(frozen=True, slots=True)
class RunningResult(PerKey):
    """By key: a result that it stores, and makes anew where its input is new."""

    holds: ClassVar[PastExtent] = PastExtent.STATE
    of: ByKey | OrderedByKey
    """What it is over all items."""
    changes: bool = False
    """It is the result of its input, of which it reads the changes; else of all that came so far,
    of which it gets what is new.
    """

    @property
    def passes(self) -> PassedItems:
        """Which of its inputs' items it gives."""
        return PassedItems.NONE if self.of.passes is PassedItems.NONE else PassedItems.EARLIER

    @property
    def reads_changes(self) -> bool:
        """Whether it looks at the changes of its input alone, where it is told by them."""
        return self.changes


@final
@dataclass(frozen=True, slots=True)
class Ordering(PerPosition):
    """Gives the items an order, or takes it away."""

    passes: ClassVar[PassedItems] = PassedItems.ALL
    holds: ClassVar[PastExtent] = PastExtent.INPUTS
    sorts: bool = True


@final
@dataclass(frozen=True, slots=True)
class PositionalOrder(PerPosition):
    """By position: an item's place among all decides."""

    gives: Places

    @property
    def passes(self) -> PassedItems:
        """Which of its inputs' items it gives."""
        cut = self.gives in (Places.FIRST, Places.FIRST_OF_KEY)
        return PassedItems.SOME if cut else PassedItems.NONE

    @property
    def holds(self) -> PastExtent:
        """How much of the past its output holds."""
        return PastExtent.INPUTS if self.passes is PassedItems.NONE else PastExtent.RESULT


@final
@dataclass(frozen=True, slots=True)
class History(OverTime):
    """Over time: the items of all ticks so far."""

    holds: ClassVar[PastExtent] = PastExtent.HISTORY
    before: bool = False
    """This tick apart."""

    @property
    def passes(self) -> PassedItems:
        """Which of its inputs' items it gives."""
        return PassedItems.EARLIER if self.before else PassedItems.SO_FAR


@final
@dataclass(frozen=True, slots=True)
class Window(OverTime):
    """Over time: the items of the last ticks."""

    holds: ClassVar[PastExtent] = PastExtent.WINDOW
    timed: bool = False
    """A time of its own says of each item until which tick it is there; else all stay as long."""

    @property
    def passes(self) -> PassedItems:
        """Which of its inputs' items it gives."""
        return PassedItems.EARLIER if self.timed else PassedItems.SO_FAR


@final
@dataclass(frozen=True, slots=True)
class PreviousTick(OverTime):
    """Over time: the items of the tick before."""

    passes: ClassVar[PassedItems] = PassedItems.EARLIER
    holds: ClassVar[PastExtent] = PastExtent.INPUTS
    takes_changes: ClassVar[bool] = True


@final
@dataclass(frozen=True, slots=True)
class TickDifference(OverTime):
    """Over time: how a stream differs from what it was in the tick before."""

    holds: ClassVar[PastExtent] = PastExtent.INPUTS
    takes_changes: ClassVar[bool] = True
    reads_changes = True
    signed: bool
    """What goes is told, too, with a count; else only what comes."""

    @property
    def passes(self) -> PassedItems:
        """Which of its inputs' items it gives."""
        return PassedItems.NONE if self.signed else PassedItems.SOME


@final
@dataclass(frozen=True, slots=True)
class Commands(OverTime):
    """Over time: what all commands so far leave there."""

    passes: ClassVar[PassedItems] = PassedItems.NONE
    holds: ClassVar[PastExtent] = PastExtent.STATE
    keyed: bool
    """One value for each key."""


OpClass = (
    ExternalItems
    | EmptyStream
    | Output
    | PerItem
    | Projection
    | Sum
    | Product
    | KeyMatch
    | AsOf
    | DistinctItems
    | ByKey
    | RunningResult
    | OrderedByKey
    | Ordering
    | PositionalOrder
    | History
    | Window
    | PreviousTick
    | TickDifference
    | Commands
)


def passes_on(cls: OpClass) -> bool:
    """Whether the operator passes its input on as it is."""
    return isinstance(cls, PerItem) and cls.gives is ItemEffect.SAME


def is_itemwise(cls: OpClass) -> TypeGuard[PerItem | Projection]:
    """Whether the operator goes item by item, so that it does the same with changes."""
    match cls:
        case PerItem() | Projection():
            return True
        case StreamEnd() | Sum() | Product() | PerKey() | PerPosition() | OverTime():
            return False
        case _:
            assert_never(cls)
