"""A question about functions is a fold over trees: it has an answer for every node there is.

Types, lineage, normal forms, Python's syntax and Spark's columns are such questions. A new node is
a new method here, and the type checker names the questions that have no answer for it. What asks
for some nodes only goes over all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Generic, TypeVar, assert_never

from hydro_core.functions.tree import Bind, Const, Expr, IfElse, Make, Op, Param, Part, Spread

Answer = TypeVar("Answer")
Around = TypeVar("Around")
"""What is known around a node: what names stand for, or a scope."""


class Fold(ABC, Generic[Around, Answer]):
    """A question; an answer is made of those for the node's parts, which it asks for by `of`."""

    def of(self, node: Expr, around: Around) -> Answer:
        """The answer for a node."""
        match node:
            case Part():
                return self._part(node, around)
            case Param():
                return self._param(node, around)
            case Const():
                return self._const(node, around)
            case Op():
                return self._op(node, around)
            case Make():
                return self._make(node, around)
            case IfElse():
                return self._if_else(node, around)
            case Bind():
                return self._bind(node, around)
            case _:
                assert_never(node)

    @abstractmethod
    def _const(self, node: Const, around: Around) -> Answer:
        """The answer for a constant."""

    @abstractmethod
    def _param(self, node: Param, around: Around) -> Answer:
        """The answer for a parameter or a variable."""

    @abstractmethod
    def _part(self, node: Part, around: Around) -> Answer:
        """The answer for what a constant names of a value."""

    @abstractmethod
    def _op(self, node: Op, around: Around) -> Answer:
        """The answer for an operation."""

    @abstractmethod
    def _if_else(self, node: IfElse, around: Around) -> Answer:
        """The answer for one of two values."""

    @abstractmethod
    def _make(self, node: Make, around: Around) -> Answer:
        """The answer for a tuple, list, set or row."""

    @abstractmethod
    def _bind(self, node: Bind, around: Around) -> Answer:
        """The answer for what has variables."""


def children(node: Expr) -> Iterator[Expr]:
    """The direct parts of an expression, in the order in which Python comes to them."""
    match node:
        case Op():
            yield from node.operands
        case IfElse(test, then, otherwise):
            yield from (test, then, otherwise)
        case Bind("function", body=body):
            yield body
        case Bind(_, _, value, body, conditions):
            yield from (value, *conditions, body)
        case Part(base):
            yield base
        case Make(parts=parts):
            yield from (part.value if isinstance(part, Spread) else part for part in parts)
        case Const() | Param():
            return
        case _:
            assert_never(node)


def with_children(node: Expr, made: Iterable[Expr]) -> Expr:
    """The expression with other direct parts, in the order of `children`."""
    parts = tuple(made)
    if all(new is old for new, old in zip(parts, children(node), strict=True)):
        return node
    match node:
        case Op(args=args, keywords=keywords):
            named = zip((name for name, _ in keywords), parts[len(args) :], strict=True)
            return replace(node, args=parts[: len(args)], keywords=tuple(named))
        case IfElse():
            return replace(node, test=parts[0], then=parts[1], otherwise=parts[2])
        case Bind("function"):
            return replace(node, body=parts[0])
        case Bind():
            return replace(node, value=parts[0], conditions=parts[1:-1], body=parts[-1])
        case Part():
            return replace(node, base=parts[0])
        case Make(parts=old):
            pairs = zip(old, parts, strict=True)
            spread = (Spread(new) if isinstance(part, Spread) else new for part, new in pairs)
            return replace(node, parts=tuple(spread))
        case Const() | Param():
            return node
        case _:
            assert_never(node)


def substituted(
    tree: Expr, known: Mapping[str, Expr], simplified: Callable[[Expr], Expr] = lambda node: node
) -> Expr:
    """The expression with others in the place of names; each node is simplified as it is made."""
    match tree:
        case Param(name):
            return known.get(name, tree)
        case Bind(kind, names):
            inner = {name: of for name, of in known.items() if name not in names}
            made = [
                substituted(part, known if i == 0 and kind != "function" else inner, simplified)
                for i, part in enumerate(children(tree))
            ]
            return with_children(tree, made)
        case _:
            parts = [substituted(part, known, simplified) for part in children(tree)]
            return simplified(with_children(tree, parts))


def nodes(tree: Expr) -> Iterator[Expr]:
    """All nodes of a tree, beginning with the tree itself."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        todo += children(node)


def always(node: Expr) -> Iterator[Expr]:
    """The direct parts that Python comes to wherever it comes to the whole."""
    match node:
        case IfElse(test):
            yield test
        case Op("and" | "or", values):
            yield values[0]
        case Op(family="comparison"):
            yield from node.args[:2]
        case Bind("function"):
            return
        case Bind(value=value) if node.is_loop:
            yield value
        case _:
            yield from children(node)


def mentions(node: Expr, name: str) -> bool:
    """Whether a name is read anywhere in the expression."""
    return any(isinstance(part, Param) and part.name == name for part in nodes(node))


def surely_reads(node: Expr, name: str) -> bool:
    """Whether the expression evaluates the name whatever the item is."""
    if isinstance(node, Param):
        return node.name == name
    return any(surely_reads(part, name) for part in always(node))
