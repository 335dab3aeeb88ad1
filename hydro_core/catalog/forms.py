"""Representations of a stream over ticks, and the representations that operators need and give.

A stream is represented by its items at each tick (*values*), or by its updates from one tick to the
next (*changelog*). A history has updates that only insert, its *growth*. A reader of updates never
reads the unchanged rows, which may be many, except for those with the keys of updates: these are
*looked up*.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import assert_never

from hydro_core.catalog.classes import (
    AsOf,
    ByKey,
    Commands,
    DistinctItems,
    History,
    ItemEffect,
    KeyMatch,
    Linear,
    OpClass,
    OrderedByKey,
    Output,
    OverTime,
    PairedItems,
    PerItem,
    PerPosition,
    PreviousTick,
    Product,
    Projection,
    RunningResult,
    StreamEnd,
    Sum,
    TickDifference,
    Window,
)


class Form(Enum):
    """The representation of a stream over ticks."""

    VALUES = "its items at each tick"
    CHANGES = "what comes and what goes at each tick"
    GROWTH = "what comes at each tick, where nothing goes"
    LOOKED_UP = "its items of the keys that are asked for, as at each tick"

    @property
    def stored(self) -> str:
        """The name of the representation in stored plans and tables."""
        return next(name for name, form in _STORED.items() if form is self)

    @staticmethod
    def of_stored(name: str) -> Form:
        return _STORED[name]

    def serves(self, wanted: Form) -> bool:
        """True if a reader that wants another representation can read this one."""
        match wanted:
            case Form.CHANGES:
                return self in (Form.CHANGES, Form.GROWTH)
            case Form.VALUES:
                return self is not Form.LOOKED_UP
            case Form.GROWTH | Form.LOOKED_UP:
                return self is wanted


_STORED = {"append": Form.GROWTH, "last": Form.VALUES, "changes": Form.CHANGES}


def needed(cls: OpClass, wanted: Form) -> Form | None:  # noqa: C901, PLR0911, PLR0912 - a closed set of cases
    """The representation in which an operator needs its inputs, to give its result as `wanted`.

    None if it cannot. The inputs have no order.
    """
    if wanted is Form.VALUES:
        return Form.CHANGES if isinstance(cls, RunningResult) and cls.changes else Form.VALUES
    if wanted is Form.LOOKED_UP:
        return _looked_up_in(cls)
    grows = wanted is Form.GROWTH
    match cls:
        case PerItem() | Projection() | Sum() | Output():
            return wanted
        case History():
            return Form.VALUES if not cls.before or grows else None
        case Window() | Commands():
            return None if grows else Form.VALUES
        case RunningResult(changes=changes):
            return None if grows else Form.CHANGES if changes else Form.VALUES
        case Product(meets, keeps):
            takes_back = grows and bool(keeps)
            return None if takes_back or meets is PairedItems.SINGLE else wanted
        case KeyMatch(wanted=matched):
            return wanted if matched or not grows else None
        case DistinctItems():
            return wanted
        case PreviousTick():
            return Form.GROWTH if grows else None
        case AsOf(keyed) | ByKey(keyed=keyed) | OrderedByKey(keyed=keyed):
            return Form.CHANGES if keyed and not grows else None
        case StreamEnd() | PerPosition() | TickDifference():
            return None
        case _:
            assert_never(cls)


def _looked_up_in(cls: OpClass) -> Form | None:
    """The representation of inputs from which an operator can give the items of some keys; None if
    it cannot.

    A stored stream is looked up in its table, any other in the streams that it is derived from.
    """
    match cls:
        case PerItem(gives):
            # the result of a function does not determine the item that it is computed from
            return (
                Form.LOOKED_UP
                if gives in (ItemEffect.SAME, ItemEffect.SOME, ItemEffect.ROUTED)
                else None
            )
        case Projection() | Sum() | KeyMatch() | DistinctItems():
            return Form.LOOKED_UP
        case AsOf(keyed) | ByKey(keyed=keyed) | OrderedByKey(keyed=keyed):
            return Form.LOOKED_UP if keyed else None
        case Product(PairedItems.KEY):
            return Form.LOOKED_UP
        case History():
            return Form.VALUES
        case StreamEnd() | Product() | RunningResult() | PerPosition() | OverTime():
            return None
        case _:
            assert_never(cls)


def given(cls: OpClass, inputs: Iterable[Form]) -> Form:
    """The best representation in which an operator gives its result, for inputs in these."""
    forms = tuple(inputs)
    for wanted in (Form.GROWTH, Form.CHANGES):
        of = needed(cls, wanted)
        if of is not None and all(form.serves(of) for form in forms):
            return wanted
    return Form.VALUES


def looks_up(cls: OpClass) -> bool:
    """True if an operator needs, for the updates of its result, also rows of its inputs by key."""
    match cls:
        case Product() | KeyMatch() | DistinctItems():
            return True
        case AsOf(keyed) | ByKey(keyed=keyed) | OrderedByKey(keyed=keyed):
            return keyed
        case StreamEnd() | Linear() | RunningResult() | PerPosition() | OverTime():
            return False
        case _:
            assert_never(cls)
