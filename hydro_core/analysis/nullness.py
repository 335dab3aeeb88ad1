"""Which streams surely have no null among their items.

A null item is an item, but pairs, rows with computed columns and results by key are made as they
come, and whoever passes items on has a null only where one was. So what is asked of such a stream
never meets a null in the place of a row.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import assert_never

from hydro_core.catalog.classes import (
    AsOf,
    ByKey,
    Commands,
    Distinct,
    Empty,
    Ends,
    Growth,
    Matching,
    OrderedByKey,
    Ordering,
    OverTime,
    PerItem,
    Positional,
    Product,
    Projection,
    Running,
    Sum,
)
from hydro_core.catalog.properties import Passes
from hydro_core.catalog.variants import Gives, Places, Summary
from hydro_core.functions.totality import certainty
from hydro_core.functions.tree import SameTree
from hydro_core.ir.graph import Graph, Node, NodeId


def never_null(graph: Graph, given: Collection[NodeId] = ()) -> frozenset[NodeId]:
    """The nodes of whose outputs no item is null; those that are `given` are known to be such."""
    found = set(graph.nodes)
    while lost := {
        name for name in found if name not in given and not _is_never_null(graph[name], found)
    }:
        found -= lost
    return frozenset(found)


def _is_never_null(node: Node, found: set[NodeId]) -> bool:
    inputs = [e.node in found for e in node.inputs]
    match node.cls.passes:
        case Passes.ALL | Passes.SO_FAR:
            return all(inputs)
        case Passes.SOME | Passes.EARLIER:
            return inputs[0]
        case Passes.NONE:
            return _makes_items(node)


def _makes_items(node: Node) -> bool:
    """Whether an operator makes its items itself, none of them null."""
    cls, found = node.cls, False
    match cls:
        case PerItem(Gives.ONE):
            tree = node.args["f"].tree
            found = tree is not None and certainty(SameTree(tree)).not_null
        case PerItem(gives):
            found = gives in (Gives.UP_TO_ONE, Gives.RESULT)
        case ByKey(summary, keyed) | Running(ByKey(summary, keyed)):
            found = keyed or summary is Summary.AGGREGATES
        case Positional(gives=place):
            found = place in (Places.PAIRS, Places.PADDED_PAIRS)
        case Growth(made) | Commands(made):
            found = made
        case Empty() | Projection() | Product() | AsOf() | OrderedByKey() | Running():
            found = True
        case Ends() | Sum() | Matching() | Distinct() | Ordering() | OverTime():
            found = False
        case _:
            assert_never(cls)
    return found
