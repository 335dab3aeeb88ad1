"""A question about functions is a fold over trees: it has an answer for every node there is.

Types, lineage, normal forms, Python's syntax and Spark's columns are such questions. A new node is
a new method here, and the type checker names the questions that have no answer for it. What asks
for some nodes only goes over all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import is_
from typing import Generic, TypeVar, assert_never

from hydro_core.functions.tree import Bind, Const, Expr, IfElse, Make, Op, Param, Part, Spread

Answer = TypeVar("Answer")
Around = TypeVar("Around")
"""What is known around a node: what names stand for, or a scope."""


class Fold(ABC, Generic[Around, Answer]):
    """A question; an answer is made of those for the node's parts, which it asks for by `of`."""

    def of(self, node: Expr, around: Around) -> Answer:
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
    def _const(self, node: Const, around: Around) -> Answer: ...

    @abstractmethod
    def _param(self, node: Param, around: Around) -> Answer: ...

    @abstractmethod
    def _part(self, node: Part, around: Around) -> Answer: ...

    @abstractmethod
    def _op(self, node: Op, around: Around) -> Answer: ...

    @abstractmethod
    def _if_else(self, node: IfElse, around: Around) -> Answer: ...

    @abstractmethod
    def _make(self, node: Make, around: Around) -> Answer: ...

    @abstractmethod
    def _bind(self, node: Bind, around: Around) -> Answer: ...


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
    if all(map(is_, parts, children(node))):
        return node
    match node:
        case Op(name, args, keywords):
            given = zip((key for key, _ in keywords), parts[len(args) :], strict=True)
            return Op(name, parts[: len(args)], tuple(given), node.place, node.type)
        case IfElse():
            test, then, otherwise = parts
            return IfElse(test, then, otherwise, node.place, node.type)
        case Bind("function", names, value):
            return Bind(node.kind, names, value, parts[0], (), node.place, node.type)
        case Bind(kind, names):
            conditions = parts[1:-1]
            return Bind(kind, names, parts[0], parts[-1], conditions, node.place, node.type)
        case Part(_, step, by_name):
            return Part(parts[0], step, by_name, node.place, node.type)
        case Make(kind, old, names):
            pairs = zip(old, parts, strict=True)
            spread = (Spread(new) if isinstance(part, Spread) else new for part, new in pairs)
            return Make(kind, tuple(spread), names, node.place, node.type)
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
