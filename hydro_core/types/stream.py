"""Stream types: the type of the items, and whether they come in an order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hydro_core.types.item import ItemType


class Order(Enum):
    """Whether the items of a tick stand in an order that may be observed."""

    NONE = "NoOrder"
    TOTAL = "TotalOrder"


@dataclass(frozen=True, slots=True)
class StreamType:
    """What a stream carries; `single` where every tick has at most one item."""

    item: ItemType
    order: Order = Order.NONE
    single: bool = False

    def __str__(self) -> str:
        return f"{self.item} {self.order.value}"
