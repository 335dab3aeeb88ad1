"""Normal forms of tests: `not (x is None)` and `x is not None` are one.

Two functions with one such form give the same value, or both fail, whatever they are applied to, so
an equation stands here only if it is exact in Python: for None and NaN, for what `and` and `or`
give, and for what is not evaluated at all. `not (a < b)` is `b <= a` only for values of which one
is always less or equal, which NaN is not.

Stored state is known by `normal_form`, which stays what it is in every release; programs are
compared by these forms, which may get equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hydro_core.functions.normal import NormalForm
from hydro_core.types.item import INTEGERS, ItemType, Row, Scalar, Tuple

NULL: NormalForm = ("constant", "NoneType", "None")
TRUE: NormalForm = ("constant", "bool", "True")
FALSE: NormalForm = ("constant", "bool", "False")
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
_AT_HAND = frozenset({"field", "argument", "variable", "constant"})
"""What may be computed once or twice."""
_BOOLEAN_CALLS = frozenset({"bool", "all", "any"})
_ORDERED: dict[str, str] = {
    **dict.fromkeys((*INTEGERS, "int"), "integer"),
    "string": "string",
    "str": "string",
    "boolean": "integer",
    "bool": "integer",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}
"""Types of which any two values are ordered; those of one name with each other."""


def boolean_form(form: NormalForm, over: Sequence[ItemType]) -> NormalForm:
    """The form in which tests stand in one of their spellings.

    Args:
        form: what `normal_form` gives of a function, or a part of it.
        over: the types that the function is applied to.

    >>> x = ("field", ("argument", 0), "x")
    >>> boolean_form(("unary", "not", ("compare", x, ("is", NULL))), ())
    ('compare', ('field', ('argument', 0), 'x'), ('is not', ('constant', 'NoneType', 'None')))
    """
    return form if form[0] == "source" else _Tests(tuple(over)).value(form)


class _Tests:
    """The equations, over arguments of known types."""

    def __init__(self, over: tuple[ItemType, ...]) -> None:
        self.over = over

    def value(self, form: Any) -> Any:
        """The form of what has the same value."""
        if not isinstance(form, tuple) or form[:1] == ("constant",):
            return form
        parts = tuple(map(self.value, form))
        match parts:
            case ("compare", first, *rest) if rest:
                return _compared(first, rest)
            case ("and" | "or" as op, *tests) if len(tests) > 1:
                return _joined(op, tests)
            case ("unary", "not", test):
                return self.opposite(test)
            case ("call", "bool", (test,), ()):
                return self.boolean(test)
            case ("if", test, then, otherwise):
                return self.chosen(test, then, otherwise)
            case ("comprehension", kind, count, source, conditions, made):
                asked = tuple(map(self.truth, conditions))
                return ("comprehension", kind, count, source, asked, made)
            case _:
                return parts

    def truth(self, test: NormalForm) -> NormalForm:
        """The form of what is true of the same items, where nobody sees the value itself."""
        match test:
            case ("call", "bool", (inner,), ()):
                return self.truth(inner)
            case ("and" | "or" as op, *tests):
                return _joined(op, list(map(self.truth, tests)))
            case ("if", asked, then, otherwise):
                return self.chosen(asked, self.truth(then), self.truth(otherwise))
            case _:
                return test

    def boolean(self, test: NormalForm) -> NormalForm:
        """`bool(test)`."""
        match self.truth(test):
            case ("and" | "or" as op, *tests):
                return _joined(op, list(map(self.boolean, tests)))
            case ("if", asked, then, otherwise):
                return self.chosen(asked, self.boolean(then), self.boolean(otherwise))
            case inner:
                return inner if _is_boolean(inner) else ("call", "bool", (inner,), ())

    def opposite(self, test: NormalForm) -> NormalForm:
        """`not test`."""
        match self.truth(test):
            case ("compare", left, (op, right)) if op in _OPPOSITE:
                return ("compare", left, (_OPPOSITE[op], right))
            case ("compare", left, (op, right)) if self._are_ordered(left, right, op):
                return ("compare", right, (_OPPOSITE_ORDER[op], left))
            case ("and" | "or" as op, *tests):
                return _joined(_OTHER[op], list(map(self.opposite, tests)))
            case ("unary", "not", inner):
                return self.boolean(inner)
            case ("if", asked, then, otherwise):
                return self.chosen(asked, self.opposite(then), self.opposite(otherwise))
            case inner if inner in (TRUE, FALSE):
                return TRUE if inner == FALSE else FALSE
            case inner:
                return ("unary", "not", inner)

    def chosen(self, test: NormalForm, then: NormalForm, otherwise: NormalForm) -> NormalForm:
        """`then if test else otherwise`, by the test or its opposite, whichever asks plainly."""
        plain = self.truth(test)
        if (then, otherwise) == (TRUE, FALSE):
            return self.boolean(plain)
        if (then, otherwise) == (FALSE, TRUE):
            return self.opposite(plain)
        opposite = self.truth(self.opposite(plain))
        if _plainness(opposite) < _plainness(plain):
            return ("if", opposite, otherwise, then)
        return ("if", plain, then, otherwise)

    def _are_ordered(self, left: NormalForm, right: NormalForm, op: str) -> bool:
        """Whether one is less or equal where both are there; with None, either order fails."""
        if op not in _OPPOSITE_ORDER:
            return False
        one, other = self._kind(left), self._kind(right)
        return one is not None and one == other

    def _kind(self, form: NormalForm) -> str | None:
        if form[:1] == ("constant",):
            return _ORDERED.get(form[1])
        found = self._type(form)
        return _ORDERED.get(found.name) if isinstance(found, Scalar) else None

    def _type(self, form: NormalForm) -> ItemType | None:
        match form:
            case ("argument", int() as number) if number < len(self.over):
                return self.over[number]
            case ("field", base, step):
                match self._type(base):
                    case Row() as row:
                        return row.column(step)
                    case Tuple(fields):
                        return fields[step]
        return None


def _compared(first: NormalForm, rest: Sequence[tuple[str, NormalForm]]) -> NormalForm:
    """A comparison; a chain of what is at hand is its comparisons, one after the other."""
    if len(rest) == 1:
        ((op, right),) = rest
        return _comparison(first, op, right)
    if any(right[0] not in _AT_HAND for _, right in rest[:-1]):
        return ("compare", first, *rest)
    lefts = (first, *(right for _, right in rest))
    return _joined("and", [_comparison(a, op, b) for a, (op, b) in zip(lefts, rest, strict=False)])


def _comparison(left: NormalForm, op: str, right: NormalForm) -> NormalForm:
    """One comparison, its operands in one of their orders: None comes last."""
    if op in _TURNED:
        return ("compare", right, (_TURNED[op], left))
    if op in ("is", "is not", "==", "!="):
        if left == NULL or (right != NULL and repr(right) < repr(left)):
            left, right = right, left
        if right == NULL:
            # no item is equal to None but None
            op = {"==": "is", "!=": "is not"}.get(op, op)
    return ("compare", left, (op, right))


def _joined(op: str, tests: Sequence[NormalForm]) -> NormalForm:
    """`a and b and …`; the parts of a part of one operator are its own."""
    parts = [part for test in tests for part in (test[1:] if test[0] == op else (test,))]
    return (op, *parts)


def _is_boolean(form: NormalForm) -> bool:
    """Whether the value is True or False, if there is one."""
    match form:
        case ("compare", *_) | ("unary", "not", _):
            return True
        case ("and" | "or", *tests):
            return all(map(_is_boolean, tests))
        case ("call", name, *_):
            return name in _BOOLEAN_CALLS
        case ("if", _, then, otherwise):
            return _is_boolean(then) and _is_boolean(otherwise)
        case _:
            return form in (TRUE, FALSE)


def _plainness(form: NormalForm) -> tuple[int, str]:
    """How often a test says "not", then its text."""
    return _negations(form), repr(form)


def _negations(form: Any) -> int:
    if not isinstance(form, tuple):
        return int(form in _NEGATIVE)
    return 0 if form[:1] == ("constant",) else sum(map(_negations, form))
