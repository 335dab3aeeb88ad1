"""Normal forms of tests: `not (x is None)` and `x is not None` are one.

Two functions with one such form give the same value, or both fail, whatever they are applied to, so
an equation stands here only if it is exact in Python: for None and NaN, for what `and` and `or`
give, and for what is not evaluated at all. `not (a < b)` is `b <= a` only for values of which one
is always less or equal, which NaN is not.

Stored state is known by `stored_form`, which stays what it is in every release; programs are
compared by these forms, which may get equations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from hydro_core.functions.fn import Fn
from hydro_core.functions.fold import children, nodes, with_children
from hydro_core.functions.forms.normal import declared, flat, normal_tree
from hydro_core.functions.forms.stored_form import printed, stored_form
from hydro_core.functions.tree import Bind, Const, Expr, IfElse, Op, Param, Part, SameTree
from hydro_core.types.item import BOOLEAN, INTEGERS, ItemType, Scalar

NULL, TRUE, FALSE = Const(None), Const(True, type=BOOLEAN), Const(False, type=BOOLEAN)
_OPPOSITE = {
    "is": "is not",
    "in": "not in",
    "==": "!=",
    "is not": "is",
    "not in": "in",
    "!=": "==",
}
_OPPOSITE_ORDER = {"<": "<=", "<=": "<"}
"""With the operands turned: `not (a < b)` is `b <= a`."""
_TURNED = {">": "<", ">=": "<="}
_OTHER = {"and": "or", "or": "and"}
_NEGATIVE = frozenset({"not", "is not", "not in", "!="})
_BOOLEAN_CALLS = frozenset({"bool", "all", "any"})
_ORDERED: Mapping[str, str] = {
    **dict.fromkeys((*INTEGERS, "boolean"), "integer"),
    **{name: name for name in ("string", "date", "timestamp", "timestamp_ntz")},
}
"""Types of which any two values are ordered; those of one name with each other."""


def known_by(fn: Fn, over: Sequence[ItemType]) -> tuple[Any, ...]:
    """What a function is known by over these types: if that of two is equal, they do the same."""
    tree = normal_tree(fn, over)
    if tree is None:
        return stored_form(fn, over)
    return ("function", _plain(SameTree(tree)), *declared(fn))


def plain_tests(tree: Expr) -> Expr:
    """The normal form in which tests stand in one of their spellings.

    >>> from hydro_core.functions.forms.normal import argument
    >>> x = Part(argument(0), "x")
    >>> plain_tests(Op("not", (Op("is", (x, NULL)),))) == Op("is not", (x, NULL))
    True
    """
    node = with_children(tree, map(plain_tests, children(tree)))
    match node:
        case Op(family="comparison", args=args) if len(args) > 1:
            return _compared(node)
        case Op("and" | "or", tests) if len(tests) > 1:
            return _joined(node.name, tests)
        case Op("not", (test,)):
            return _opposite(test)
        case Op("bool", (test,), ()):
            return _boolean(test)
        case IfElse():
            return _chosen(node, node.test, node.then, node.otherwise)
        case Bind(conditions=(_, *_)):
            return replace(node, conditions=tuple(map(_truth, node.conditions)))
        case _:
            return node


@lru_cache(maxsize=4096)
def _plain(of: SameTree) -> Expr:
    return plain_tests(of.tree)


def _truth(test: Expr) -> Expr:
    """The form of what is true of the same items, where nobody sees the value itself."""
    match test:
        case Op("bool", (inner,), ()):
            return _truth(inner)
        case Op("and" | "or" as op, tests):
            return _joined(op, map(_truth, tests))
        case IfElse(asked, then, otherwise):
            return _chosen(test, asked, _truth(then), _truth(otherwise))
        case _:
            return test


def _boolean(test: Expr) -> Expr:
    match _truth(test):
        case Op("and" | "or" as op, tests):
            return _joined(op, map(_boolean, tests))
        case IfElse(asked, then, otherwise) as choice:
            return _chosen(choice, asked, _boolean(then), _boolean(otherwise))
        case inner:
            return inner if _is_boolean(inner) else Op("bool", (inner,), type=BOOLEAN)


def _opposite(test: Expr) -> Expr:
    match _truth(test):
        case Op(op, (left, right)) if op in _OPPOSITE:
            return _test(_OPPOSITE[op], left, right)
        case Op(op, (left, right)) if op in _OPPOSITE_ORDER and _are_ordered(left, right):
            return _test(_OPPOSITE_ORDER[op], right, left)
        case Op("and" | "or" as op, tests):
            return _joined(_OTHER[op], map(_opposite, tests))
        case Op("not", (inner,)):
            return _boolean(inner)
        case IfElse(asked, then, otherwise) as choice:
            return _chosen(choice, asked, _opposite(then), _opposite(otherwise))
        case inner if inner in (TRUE, FALSE):
            return TRUE if inner == FALSE else FALSE
        case inner:
            return _test("not", inner)


def _chosen(choice: IfElse, test: Expr, then: Expr, otherwise: Expr) -> Expr:
    """`then if test else otherwise`, by the test or its opposite, whichever asks plainly."""
    plain = _truth(test)
    if (then, otherwise) == (TRUE, FALSE):
        return _boolean(plain)
    if (then, otherwise) == (FALSE, TRUE):
        return _opposite(plain)
    opposite = _truth(_opposite(plain))
    if _plainness(opposite) < _plainness(plain):
        return replace(choice, test=opposite, then=otherwise, otherwise=then)
    return replace(choice, test=plain, then=then, otherwise=otherwise)


def _are_ordered(left: Expr, right: Expr) -> bool:
    """Whether one is less or equal where both are there; with None, either order fails."""
    if not (isinstance(left.type, Scalar) and isinstance(right.type, Scalar)):
        return False
    one = _ORDERED.get(left.type.name)
    return one is not None and one == _ORDERED.get(right.type.name)


def _compared(node: Op) -> Expr:
    """A comparison; a chain of what is at hand is its comparisons, one after the other."""
    if len(node.args) > 2 and not all(map(_is_at_hand, node.args[1:-1])):
        return node
    ops = node.name.split(",")
    parts = [_comparison(a, op, b) for op, (a, b) in zip(ops, pairwise(node.args), strict=True)]
    return parts[0] if len(parts) == 1 else _joined("and", parts)


def _is_at_hand(node: Expr) -> bool:
    """Whether it may be computed once or twice: a field, an argument, a variable, a constant."""
    return isinstance(node, Const | Param) or (isinstance(node, Part) and not node.by_name)


def _comparison(left: Expr, op: str, right: Expr) -> Expr:
    """One comparison, its operands in one of their orders: None comes last."""
    if op in _TURNED:
        return _test(_TURNED[op], right, left)
    if op in ("is", "is not", "==", "!="):
        if left == NULL or (right != NULL and _text(right) < _text(left)):
            left, right = right, left
        if right == NULL:
            # no item is equal to None but None
            op = {"==": "is", "!=": "is not"}.get(op, op)
    return _test(op, left, right)


def _joined(op: str, tests: Iterable[Expr]) -> Op:
    """`a and b and …`; the parts of a part of one operator are its own."""
    whole = Op(op, tuple(tests))
    return replace(whole, args=tuple(flat(whole)))


def _test(op: str, *operands: Expr) -> Op:
    return Op(op, operands, type=BOOLEAN)


def _is_boolean(node: Expr) -> bool:
    """Whether the value is True or False, if there is one."""
    match node:
        case Op(family="comparison") | Op("not"):
            return True
        case Op("and" | "or", tests):
            return all(map(_is_boolean, tests))
        case Op(name, family="call"):
            return name in _BOOLEAN_CALLS
        case IfElse(_, then, otherwise):
            return _is_boolean(then) and _is_boolean(otherwise)
        case _:
            return node in (TRUE, FALSE)


def _plainness(node: Expr) -> tuple[int, str]:
    """How often a test says "not", then its text."""
    words = (word for part in nodes(node) if isinstance(part, Op) for word in part.name.split(","))
    return sum(word in _NEGATIVE for word in words), _text(node)


def _text(node: Expr) -> str:
    return repr(printed(node))
