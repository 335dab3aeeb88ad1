"""Operator classes: the behaviour of an operator over time, keys and order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeGuard, assert_never, final

if TYPE_CHECKING:
    from hydro_core.functions.tree import Fn


# Words by which operators of one class differ.


class ItemEffect(Enum):
    """The output of a row-wise operator for one item."""

    SAME = "the item"
    SOME = "the item, or nothing"
    ROUTED = "the item, where this is its way, one of several"
    ONE = "another item"
    UP_TO_ONE = "another item, or nothing"
    SEVERAL = "any number of items"
    RESULT = "the result of which the item holds the parts"


class PairedItems(Enum):
    """The items of two inputs that a product pairs."""

    ALL = "each with each"
    KEY = "those of one key"
    SINGLE = "each of the first with the single item of the second"


class MatchCondition(Enum):
    """The parts of two items that are equal in a match."""

    ITEMS = "the items"
    KEYS = "the keys of both"
    BARE_KEYS = "the keys of the first with the items of the second"
    NOTHING = "nothing: a condition over both alone decides"


class Summary(Enum):
    """The result computed from the items of a key."""

    FOLD = "the accumulator of a function, from a start"
    REDUCTION = "an item, by a function of two"
    LATEST = "the greatest item"
    AGGREGATES = "named aggregates"


class Places(Enum):
    """The output of a positional operator."""

    EACH = "an item for each"
    FIRST = "the first items"
    FIRST_OF_KEY = "the first item of each key"
    PAIRS = "pairs of the items at one place"
    PADDED_PAIRS = "pairs of the items at one place, as long as either input has one"


# Properties that every class of operators has.


class PassedItems(Enum):
    """The items of its inputs that an operator gives."""

    ALL = "all of this tick's, some perhaps once only"
    SOME = "some of the first input's, of this tick"
    SO_FAR = "all of this tick's, and earlier ones"
    EARLIER = "some of the first input's, of this tick or earlier"
    NONE = "none but what it makes itself"


class PastExtent(Enum):
    """How much of the past an operator's output has."""

    INPUTS = "what its inputs hold"
    HISTORY = "the items of all ticks so far"
    WINDOW = "the items of the last ticks"
    RESULT = "what is made of all that its input holds, which is less"
    STATE = "a result that it stores itself, and of which it knows what changes"

    @property
    def condenses(self) -> bool:
        """True if the output is a result, not the rows that it is derived from."""
        return self in (PastExtent.RESULT, PastExtent.STATE)


# Classes of operators: how an operator treats time, keys and order.
#
# Every operator has one class. From it follow the representation of its output, its cost, its
# stored state, the rows to read again, and the rules that hold. The union is closed: every analysis
# matches all classes, so a new class must be handled everywhere, and a new operator of a class is
# handled everywhere at once.
#
# The words are those of incremental view maintenance. *Linear* operators treat an insertion and a
# retraction alike (`PerItem`, `Projection`, `Sum`); *bilinear* ones are linear in each input while
# the other is fixed (`Product`). The others are *keyed* (`KeyMatch`, `AsOf`, `DistinctItems`,
# `ByKey`, `OrderedByKey`), *positional* (`PositionalOrder`, `Ordering`), or work *over time*. Each
# of these words is a base class (`Linear`, `PerKey`, `PerPosition`, `OverTime`), for analyses that
# treat all its classes alike.
#
# Every class has the properties that many analyses need: the items of its inputs that it `passes`,
# and how much of the past its output `holds`.


class ClassFacts:
    """Properties of a class of operators, with their defaults."""

    __slots__ = ()
    hands_on: ClassVar[bool] = False
    """True if the operator forwards updates: it treats them as it treats items."""
    takes_changes: ClassVar[bool] = False
    """True if the changelog of an input serves the operator as well as its values, or better; then
    the stored table of a changelog stream is its changelog.
    """

    @property
    def reads_changes(self) -> bool:
        """True if the operator reads only the updates of a changelog stream."""
        return False


class StreamEnd(ClassFacts):
    """The beginning or the end of a stream."""

    __slots__ = ()
    passes: ClassVar[PassedItems] = PassedItems.NONE
    holds: ClassVar[PastExtent] = PastExtent.INPUTS


class Linear(ClassFacts):
    """Linear: treats retractions as it treats items."""

    __slots__ = ()
    hands_on: ClassVar[bool] = True
    holds: ClassVar[PastExtent] = PastExtent.INPUTS


class PerKey(ClassFacts):
    """Keyed: the output for a key depends only on the items of that key."""

    __slots__ = ()


class PerPosition(ClassFacts):
    """Positional: an item's position decides, or is decided."""

    __slots__ = ()


class OverTime(ClassFacts):
    """Over time: the output depends on items of other ticks, too."""

    __slots__ = ()


@final
@dataclass(frozen=True, slots=True)
class ExternalItems(StreamEnd):
    """A source: its items arrive with the tick."""


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
    """Linear: row-wise, one item at a time."""

    gives: ItemEffect

    @property
    def passes(self) -> PassedItems:
        """The items of its inputs that it gives."""
        match self.gives:
            case ItemEffect.SAME:
                return PassedItems.ALL
            case ItemEffect.SOME | ItemEffect.ROUTED:
                return PassedItems.SOME
            case ItemEffect.ONE | ItemEffect.UP_TO_ONE | ItemEffect.SEVERAL | ItemEffect.RESULT:
                return PassedItems.NONE


MadeColumns = Callable[[Mapping[str, Any], Sequence[str]], Mapping[str, "str | Fn"]]
"""From the arguments and the row's columns to the content of each output column: the column of that
name, or the function's value for the row.
"""


@final
@dataclass(frozen=True, slots=True)
class Projection(Linear):
    """Linear: a row for each row, of its columns and computed ones."""

    passes: ClassVar[PassedItems] = PassedItems.NONE
    gives: ClassVar[ItemEffect] = ItemEffect.ONE
    columns: MadeColumns
    only: bool = False
    """True if the output has only the columns that the arguments name."""


@final
@dataclass(frozen=True, slots=True)
class Sum(Linear):
    """Linear in all inputs together: the sum of their items."""

    widens: bool = False
    """True if the sum coerces items to one common type."""

    @property
    def passes(self) -> PassedItems:
        """The items of its inputs that it gives."""
        return PassedItems.NONE if self.widens else PassedItems.ALL


@final
@dataclass(frozen=True, slots=True)
class Product(ClassFacts):
    """Bilinear: pairs of the items of two inputs."""

    passes: ClassVar[PassedItems] = PassedItems.NONE
    holds: ClassVar[PastExtent] = PastExtent.INPUTS
    meets: PairedItems
    keeps: frozenset[int] = frozenset()
    """The inputs whose items stay, padded, where they have no match; the product is not linear in
    these.
    """


@final
@dataclass(frozen=True, slots=True)
class KeyMatch(PerKey):
    """Keyed: the items of the first input that have a match in the second, or those that have
    none.
    """

    passes: ClassVar[PassedItems] = PassedItems.SOME
    holds: ClassVar[PastExtent] = PastExtent.INPUTS
    wanted: bool
    """True if the items with a match stay."""
    compares: MatchCondition


@final
@dataclass(frozen=True, slots=True)
class AsOf(PerKey):
    """Keyed: each item of the first input with the nearest item of the second."""

    passes: ClassVar[PassedItems] = PassedItems.NONE
    holds: ClassVar[PastExtent] = PastExtent.INPUTS
    keyed: bool = True
    """True if columns of both inputs are the key; else all items have one key."""


@final
@dataclass(frozen=True, slots=True)
class DistinctItems(PerKey):
    """Keyed by the whole item: each item once."""

    passes: ClassVar[PassedItems] = PassedItems.ALL
    holds: ClassVar[PastExtent] = PastExtent.INPUTS


@final
@dataclass(frozen=True, slots=True)
class ByKey(PerKey):
    """Keyed: one result is computed from the items of a key."""

    holds: ClassVar[PastExtent] = PastExtent.RESULT
    summary: Summary
    keyed: bool = True
    """True for one result per key; else there is one global result."""

    @property
    def is_fold(self) -> bool:
        """True if a function of the program is folded over the items."""
        return self.summary in (Summary.FOLD, Summary.REDUCTION)

    @property
    def passes(self) -> PassedItems:
        """The items of its inputs that it gives."""
        return PassedItems.SOME if self.summary is Summary.LATEST else PassedItems.NONE


@final
@dataclass(frozen=True, slots=True)
class OrderedByKey(PerKey):
    """Keyed: many items are computed from those of a key, by their order."""

    gives: Literal[Places.EACH, Places.FIRST]
    keyed: bool = True
    """True if columns of the items are the key; else there is none, or a function gives it."""

    @property
    def passes(self) -> PassedItems:
        """The items of its inputs that it gives."""
        return PassedItems.SOME if self.gives is Places.FIRST else PassedItems.NONE

    @property
    def holds(self) -> PastExtent:
        """How much of the past its output has."""
        return PastExtent.RESULT if self.gives is Places.FIRST else PastExtent.INPUTS


@final
@dataclass(frozen=True, slots=True)
class RunningResult(PerKey):
    """Keyed: an incremental result; it is stored, and updated for the keys of new items."""

    holds: ClassVar[PastExtent] = PastExtent.STATE
    of: ByKey | OrderedByKey
    """The result that it is over all items."""
    changes: bool = False
    """True if it is the result of its input at the tick and reads the input's updates; else it is
    the result of all items so far and reads the new items.
    """

    @property
    def passes(self) -> PassedItems:
        """The items of its inputs that it gives."""
        return PassedItems.NONE if self.of.passes is PassedItems.NONE else PassedItems.EARLIER

    @property
    def reads_changes(self) -> bool:
        """True if the operator reads only the updates of a changelog stream."""
        return self.changes


@final
@dataclass(frozen=True, slots=True)
class Ordering(PerPosition):
    """Gives the items an order, or removes it."""

    passes: ClassVar[PassedItems] = PassedItems.ALL
    holds: ClassVar[PastExtent] = PastExtent.INPUTS
    sorts: bool = True


@final
@dataclass(frozen=True, slots=True)
class PositionalOrder(PerPosition):
    """Positional: an item's position among all items decides."""

    gives: Places

    @property
    def passes(self) -> PassedItems:
        """The items of its inputs that it gives."""
        cut = self.gives in (Places.FIRST, Places.FIRST_OF_KEY)
        return PassedItems.SOME if cut else PassedItems.NONE

    @property
    def holds(self) -> PastExtent:
        """How much of the past its output has."""
        return PastExtent.INPUTS if self.passes is PassedItems.NONE else PastExtent.RESULT


@final
@dataclass(frozen=True, slots=True)
class History(OverTime):
    """Over time: the items of all ticks so far."""

    holds: ClassVar[PastExtent] = PastExtent.HISTORY
    before: bool = False
    """True if the items of this tick are left out."""

    @property
    def passes(self) -> PassedItems:
        """The items of its inputs that it gives."""
        return PassedItems.EARLIER if self.before else PassedItems.SO_FAR


@final
@dataclass(frozen=True, slots=True)
class Window(OverTime):
    """Over time: the items of the last ticks."""

    holds: ClassVar[PastExtent] = PastExtent.WINDOW
    timed: bool = False
    """True if each item leaves by a time of its own; else all stay for the same number of ticks."""

    @property
    def passes(self) -> PassedItems:
        """The items of its inputs that it gives."""
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
    """Over time: the difference between a stream and the same stream in the tick before."""

    holds: ClassVar[PastExtent] = PastExtent.INPUTS
    takes_changes: ClassVar[bool] = True
    reads_changes = True
    signed: bool
    """True if it emits insertions and deletions, with counts; else insertions only."""

    @property
    def passes(self) -> PassedItems:
        """The items of its inputs that it gives."""
        return PassedItems.NONE if self.signed else PassedItems.SOME


@final
@dataclass(frozen=True, slots=True)
class Commands(OverTime):
    """Over time: the items after all commands so far."""

    passes: ClassVar[PassedItems] = PassedItems.NONE
    holds: ClassVar[PastExtent] = PastExtent.STATE
    keyed: bool
    """True if there is one value for each key."""


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
    """True if the operator forwards its input unchanged."""
    return isinstance(cls, PerItem) and cls.gives is ItemEffect.SAME


def is_itemwise(cls: OpClass) -> TypeGuard[PerItem | Projection]:
    """True if the operator is row-wise, so that it treats updates as it treats items."""
    match cls:
        case PerItem() | Projection():
            return True
        case StreamEnd() | Sum() | Product() | PerKey() | PerPosition() | OverTime():
            return False
        case _:
            assert_never(cls)
