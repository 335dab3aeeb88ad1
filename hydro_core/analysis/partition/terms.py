"""Location terms: a value of an item by which the item's shard is known.

A term is a field, or an expression of fields in normal form, whose fields are `FieldAt`. Terms are
equal if their values are, for every item. All inputs of a choice are routed by one function h of a
value; an item that lies at the term t has the shard h(t(item)).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product
from typing import Any

from hydro_core.functions.forms import StoredText, path_of
from hydro_core.functions.tree import Const, Expr, Make, Op, Param, children, nodes, with_children
from hydro_core.types.item import (
    BOOLEAN,
    DATE,
    STRING,
    FieldPath,
    ItemType,
    Row,
    Tuple,
    at,
    is_integer,
    leaves,
)
from hydro_core.types.item import children as fields_in

MOST_TERMS = 32
"""Most terms that are stored of a stream, and most ways to write one; fewer terms are sound."""
LARGEST = 40
"""Most fields and operations of a term; around a cycle a larger one would grow without end."""


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class FieldAt(Param):
    """The field at a path, a parameter of terms; it is a leaf of the item's type."""

    path: FieldPath = ()

    def __init__(self, path: FieldPath) -> None:
        super(FieldAt, self).__init__("")
        object.__setattr__(self, "path", path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldAt) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        return f"FieldAt(path={self.path!r})"


KeyTerm = Expr
"""A `FieldAt`, or an expression that contains some."""
TermTable = Mapping[KeyTerm, tuple[KeyTerm, ...]]
"""For terms over one item, the ways to write them over another, where there are any."""

UNKNOWN, DETERMINED = "?(unknown)", "?(determined)"
"""Functions whose definition is unknown: an input's routing of its whole items, and one that exists
by a functional dependency. Each is identified by the input's name.
"""
HOLE = FieldAt(("(hole)",))


def opaque_term(kind: str, known_by: Iterable[str | int], paths: Iterable[FieldPath]) -> KeyTerm:
    """A function of fields whose definition is unknown."""
    return Op(kind, (*map(Const, known_by), *map(FieldAt, paths)))


@lru_cache(maxsize=1 << 14)
def fields_of(term: KeyTerm) -> frozenset[FieldPath]:
    """The fields that a term reads."""
    return frozenset(node.path for node in nodes(term) if isinstance(node, FieldAt))


def is_determined(term: KeyTerm) -> bool:
    """True if the term contains a function that is only known to exist; such a term cannot be
    computed.
    """
    return any(isinstance(node, Op) and node.name == DETERMINED for node in nodes(term))


@lru_cache(maxsize=1 << 14)
def size_of(term: KeyTerm) -> int:
    """The number of fields and operations of a term."""
    return sum(1 for _ in nodes(term))


def rewritten(term: KeyTerm, table: TermTable) -> tuple[KeyTerm, ...]:
    """The ways to write a term over the other item: whole, or part by part."""
    if isinstance(term, FieldAt):
        return table.get(term, ())[:MOST_TERMS]
    found = dict.fromkeys(table.get(term, ()))
    if fields_of(term):
        ways = [rewritten(part, table) if fields_of(part) else (part,) for part in children(term)]
        made = (with_children(term, parts) for parts in product(*ways))
        found.update(dict.fromkeys(islice(made, MOST_TERMS)))
    return tuple(islice(found, MOST_TERMS))


def all_rewritten(terms: Iterable[KeyTerm], table: TermTable) -> frozenset[KeyTerm]:
    """All terms over the other item that these terms of the one imply."""
    return fewest({new for term in terms for new in rewritten(term, table)})


def fewest(terms: Iterable[KeyTerm]) -> frozenset[KeyTerm]:
    """The terms; of too many, the simplest."""
    found = frozenset(terms)
    if len(found) <= MOST_TERMS:
        return found
    return frozenset(sorted(found, key=simplicity)[:MOST_TERMS])


def simplicity(term: KeyTerm) -> tuple[int, str]:
    """The sort key of terms from simple to complex."""
    return (size_of(term), text_of(term))


@lru_cache(maxsize=1 << 14)
def text_of(term: KeyTerm) -> str:
    """The sort key of terms in a fixed order."""
    return repr(_TEXT.of(term, None))


class _TextOfTerm(StoredText):
    def _param(self, node: Param, around: None) -> Any:
        return node if isinstance(node, FieldAt) else super()._param(node, around)


_TEXT = _TextOfTerm()


def text_of_choice(choice: Mapping[str, KeyTerm]) -> str:
    """The sort key of choices in a fixed order."""
    return repr(sorted((name, text_of(term)) for name, term in choice.items()))


def whole(item: ItemType, path: FieldPath = ()) -> KeyTerm:
    """The term that is the value at a path: of a tuple or row all of its leaves."""
    found = at(item, path)
    if found is None:
        raise ValueError(f"{item} has no field {path}")
    if not isinstance(found, Tuple | Row):
        return FieldAt(path)
    names = tuple(name for name, _ in fields_in(found))
    parts = tuple(whole(item, (*path, name)) for name in names)
    return Make("row", parts, names) if isinstance(found, Row) else Make("tuple", parts)


def of_tree(tree: Expr, item: ItemType) -> KeyTerm | None:
    """The term of an expression of the item in normal form; None where the item has too little
    structure.
    """
    steps = path_of(tree)
    if steps is not None:
        path = tuple(map(str, steps))
        return None if at(item, path) is None else whole(item, path)
    parts = [of_tree(part, item) for part in children(tree)]
    known = [part for part in parts if part is not None]
    return with_children(tree, known) if len(known) == len(parts) else None


def keeps_value(a: ItemType | None, b: ItemType | None) -> bool:
    """True if a value is unchanged by a conversion from one type to the other.

    Integers of any width are unchanged; a double or a decimal may lose digits.
    """
    return a is not None and b is not None and (a == b or (is_integer(a) and is_integer(b)))


def is_exact(item: ItemType | None) -> bool:
    """True if equal values of the type have equal results of every function: −0.0 is not 0.0."""
    return item is not None and (is_integer(item) or item in (STRING, BOOLEAN, DATE))


def is_computable(term: KeyTerm, item: ItemType) -> bool:
    """True if equal items have equal values of the term: true of a field, and of most functions."""
    return isinstance(term, FieldAt) or all(is_exact(at(item, path)) for path in fields_of(term))


def leaf_paths(item: ItemType) -> tuple[FieldPath, ...]:
    return tuple(path for path, _ in leaves(item))
