"""Operator classes: the behaviour of an operator over time, keys and order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeGuard, assert_never, final

if TYPE_CHECKING:
    from hydro_core.functions.tree import Fn


# In what the operators of one class differ: the words that stand in their classes.


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


# What every class of operators says of itself, for all who ask.


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


# What an operator is to time, keys and order: its class.
#
# Every operator has one, and how a stream's rows come and go, what it costs, what is stored, what
# must be read again, and which rules hold follow from it. The union is closed: whoever asks
# matches every class, so that a new one is looked at everywhere, and an operator that is added to
# a class is known everywhere.
#
# The words are those of incremental view maintenance. *Linear* operators do the same with an item
# that comes as with one that goes (`PerItem`, `Projection`, `Sum`); *bilinear* ones do so with
# each input while the other stays (`Product`); the others work *by key* (`Matching`, `AsOf`,
# `Distinct`, `ByKey`, `OrderedByKey`), *by position* (`Positional`, `Ordering`), or *over time*.
# Such a word is a base of its classes (`Linear`, `PerKey`, `PerPosition`, `OverTime`), for who
# says the same of all of them.
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


class Ends(ClassFacts):
    """Where streams begin and end."""

    __slots__ = ()
    passes: ClassVar[Passes] = Passes.NONE
    holds: ClassVar[Holds] = Holds.INPUTS


class Linear(ClassFacts):
    """The same with items that come as with items that go."""

    __slots__ = ()
    hands_on: ClassVar[bool] = True
    holds: ClassVar[Holds] = Holds.INPUTS


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
class Given(Ends):
    """Has no input: its items come with the tick."""


@final
@dataclass(frozen=True, slots=True)
class Empty(Ends):
    """A stream without items."""


@final
@dataclass(frozen=True, slots=True)
class Output(Ends):
    """The end of a stream."""

    hands_on: ClassVar[bool] = True
    takes_changes: ClassVar[bool] = True


@final
@dataclass(frozen=True, slots=True)
class PerItem(Linear):
    """Linear: looks at one item at a time."""

    gives: Gives

    @property
    def passes(self) -> Passes:
        """Which of its inputs' items it gives."""
        match self.gives:
            case Gives.SAME:
                return Passes.ALL
            case Gives.SOME | Gives.ROUTED:
                return Passes.SOME
            case Gives.ONE | Gives.UP_TO_ONE | Gives.SEVERAL | Gives.RESULT:
                return Passes.NONE


MadeColumns = Callable[[Mapping[str, Any], Sequence[str]], Mapping[str, "str | Fn"]]
"""From the arguments and the row's columns to what stands in each column of the output: the column
of that name, or what the function gives for the row.
"""


@final
@dataclass(frozen=True, slots=True)
class Projection(Linear):
    """Linear: a row for each row, of its columns and computed ones."""

    passes: ClassVar[Passes] = Passes.NONE
    gives: ClassVar[Gives] = Gives.ONE
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
    def passes(self) -> Passes:
        """Which of its inputs' items it gives."""
        return Passes.NONE if self.widens else Passes.ALL


@final
@dataclass(frozen=True, slots=True)
class Product(ClassFacts):
    """Bilinear: pairs of the items of two inputs."""

    passes: ClassVar[Passes] = Passes.NONE
    holds: ClassVar[Holds] = Holds.INPUTS
    meets: Meets
    keeps: frozenset[int] = frozenset()
    """The inputs whose items stay, padded, where they meet none: these are not linear."""


@final
@dataclass(frozen=True, slots=True)
class Matching(PerKey):
    """By key: the items of the first input that have a match in the second, or that have none."""

    passes: ClassVar[Passes] = Passes.SOME
    holds: ClassVar[Holds] = Holds.INPUTS
    wanted: bool
    """Whether those with a match stay."""
    compares: Compares


@final
@dataclass(frozen=True, slots=True)
class AsOf(PerKey):
    """By key: each item of the first input with the item of the second that is nearest to it."""

    passes: ClassVar[Passes] = Passes.NONE
    holds: ClassVar[Holds] = Holds.INPUTS
    keyed: bool = True
    """Columns of both are the key; else there is none, and one key is all there is."""


@final
@dataclass(frozen=True, slots=True)
class Distinct(PerKey):
    """By key, which is the whole item: each once."""

    passes: ClassVar[Passes] = Passes.ALL
    holds: ClassVar[Holds] = Holds.INPUTS


@final
@dataclass(frozen=True, slots=True)
class ByKey(PerKey):
    """By key: one item is made of those of a key."""

    holds: ClassVar[Holds] = Holds.RESULT
    summary: Summary
    keyed: bool = True
    """Results stand by keys; else there is one, that of everything."""

    @property
    def is_fold(self) -> bool:
        """Whether a function of the program goes from item to item."""
        return self.summary in (Summary.FOLD, Summary.REDUCTION)

    @property
    def passes(self) -> Passes:
        """Which of its inputs' items it gives."""
        return Passes.SOME if self.summary is Summary.LATEST else Passes.NONE


@final
@dataclass(frozen=True, slots=True)
class OrderedByKey(PerKey):
    """By key: many items are made of those of a key, by their order."""

    gives: Literal[Places.EACH, Places.FIRST]
    keyed: bool = True
    """Columns of the items are the key; else there is none, or a function gives it."""

    @property
    def passes(self) -> Passes:
        """Which of its inputs' items it gives."""
        return Passes.SOME if self.gives is Places.FIRST else Passes.NONE

    @property
    def holds(self) -> Holds:
        """How much of the past its output holds."""
        return Holds.RESULT if self.gives is Places.FIRST else Holds.INPUTS


@final
@dataclass(frozen=True, slots=True)
class Running(PerKey):
    """By key: a result that it stores, and makes anew where its input is new."""

    holds: ClassVar[Holds] = Holds.STATE
    of: ByKey | OrderedByKey
    """What it is over all items."""
    changes: bool = False
    """It is the result of its input, of which it reads the changes; else of all that came so far,
    of which it gets what is new.
    """

    @property
    def passes(self) -> Passes:
        """Which of its inputs' items it gives."""
        return Passes.NONE if self.of.passes is Passes.NONE else Passes.EARLIER

    @property
    def reads_changes(self) -> bool:
        """Whether it looks at the changes of its input alone, where it is told by them."""
        return self.changes


@final
@dataclass(frozen=True, slots=True)
class Ordering(PerPosition):
    """Gives the items an order, or takes it away."""

    passes: ClassVar[Passes] = Passes.ALL
    holds: ClassVar[Holds] = Holds.INPUTS
    sorts: bool = True


@final
@dataclass(frozen=True, slots=True)
class Positional(PerPosition):
    """By position: an item's place among all decides."""

    gives: Places

    @property
    def passes(self) -> Passes:
        """Which of its inputs' items it gives."""
        cut = self.gives in (Places.FIRST, Places.FIRST_OF_KEY)
        return Passes.SOME if cut else Passes.NONE

    @property
    def holds(self) -> Holds:
        """How much of the past its output holds."""
        return Holds.INPUTS if self.passes is Passes.NONE else Holds.RESULT


@final
@dataclass(frozen=True, slots=True)
class History(OverTime):
    """Over time: the items of all ticks so far."""

    holds: ClassVar[Holds] = Holds.HISTORY
    before: bool = False
    """This tick apart."""

    @property
    def passes(self) -> Passes:
        """Which of its inputs' items it gives."""
        return Passes.EARLIER if self.before else Passes.SO_FAR


@final
@dataclass(frozen=True, slots=True)
class Window(OverTime):
    """Over time: the items of the last ticks."""

    holds: ClassVar[Holds] = Holds.WINDOW
    timed: bool = False
    """A time of its own says of each item until which tick it is there; else all stay as long."""

    @property
    def passes(self) -> Passes:
        """Which of its inputs' items it gives."""
        return Passes.EARLIER if self.timed else Passes.SO_FAR


@final
@dataclass(frozen=True, slots=True)
class Before(OverTime):
    """Over time: the items of the tick before."""

    passes: ClassVar[Passes] = Passes.EARLIER
    holds: ClassVar[Holds] = Holds.INPUTS
    takes_changes: ClassVar[bool] = True


@final
@dataclass(frozen=True, slots=True)
class Growth(OverTime):
    """Over time: how a stream differs from what it was in the tick before."""

    holds: ClassVar[Holds] = Holds.INPUTS
    takes_changes: ClassVar[bool] = True
    reads_changes = True
    signed: bool
    """What goes is told, too, with a count; else only what comes."""

    @property
    def passes(self) -> Passes:
        """Which of its inputs' items it gives."""
        return Passes.NONE if self.signed else Passes.SOME


@final
@dataclass(frozen=True, slots=True)
class Commands(OverTime):
    """Over time: what all commands so far leave there."""

    passes: ClassVar[Passes] = Passes.NONE
    holds: ClassVar[Holds] = Holds.STATE
    keyed: bool
    """One value for each key."""


OpClass = (
    Given
    | Empty
    | Output
    | PerItem
    | Projection
    | Sum
    | Product
    | Matching
    | AsOf
    | Distinct
    | ByKey
    | Running
    | OrderedByKey
    | Ordering
    | Positional
    | History
    | Window
    | Before
    | Growth
    | Commands
)


def passes_on(cls: OpClass) -> bool:
    """Whether the operator passes its input on as it is."""
    return isinstance(cls, PerItem) and cls.gives is Gives.SAME


def is_itemwise(cls: OpClass) -> TypeGuard[PerItem | Projection]:
    """Whether the operator goes item by item, so that it does the same with changes."""
    match cls:
        case PerItem() | Projection():
            return True
        case Ends() | Sum() | Product() | PerKey() | PerPosition() | OverTime():
            return False
        case _:
            assert_never(cls)
