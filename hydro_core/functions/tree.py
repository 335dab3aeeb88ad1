"""The tree of a function's body: a closed set of pure expressions, Python's in meaning.

A lambda, or a `def` whose body is assignments, conditionals and returns, is read into one `Expr`
over its parameters. The tree is what is typed, traced and compiled to columns; the reference
interpreter calls the Python function itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Place = tuple[int, int]
"""Line and column of an expression within the program's file, from 1; (0, 0) where unknown."""


ComparisonOperator = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"]


@dataclass(frozen=True, slots=True)
class Const:
    """A constant: None, a scalar, a timedelta, or a tuple, list or dict of them."""

    value: Any
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of the function, or a variable of a comprehension, lambda or `Let` around it."""

    name: str
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Attribute:
    """`base.name`: a field of a row, or `_1 … _n` of a tuple."""

    base: Expr
    name: str
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Index:
    """`base[index]`: a field, an element of an array, a character, an entry of a constant dict."""

    base: Expr
    index: Expr
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Slice:
    """`base[low:high:step]`, of a string, array or tuple."""

    base: Expr
    low: Expr | None
    high: Expr | None
    step: Expr | None
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """`-x`, `+x`, `~x` or `not x`."""

    op: Literal["-", "+", "~", "not"]
    operand: Expr
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """An arithmetic operator between two values."""

    op: Literal["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"]
    left: Expr
    right: Expr
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Compare:
    """A chain `first op1 x1 op2 x2 …`: each operand is evaluated once, up to the first False."""

    first: Expr
    rest: tuple[tuple[ComparisonOperator, Expr], ...]
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class BoolOp:
    """`a and b and …` or `a or b or …`: gives an operand, as Python does, not a boolean."""

    op: Literal["and", "or"]
    values: tuple[Expr, ...]
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class IfElse:
    """`then if test else otherwise`."""

    test: Expr
    then: Expr
    otherwise: Expr
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a visible builtin by its name: `len`, `datetime`, "date.fromisoformat" and so on.

    Two names are no builtins: "(unpack)" of a value, a number of targets n and the place of the
    starred one (or None) is `a, b, *c = value`: a tuple of the n targets, and an error unless the
    value has so many; "(flatten)" of a list of lists is one list.
    """

    name: str
    args: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...] = ()
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a value: `base.name(args)`."""

    base: Expr
    name: str
    args: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...] = ()
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that is known by its name and what it is computed from only.

    Mostly the call of a function that the caller bound and that cannot be read; it may change
    arrays among its arguments. A name in parentheses is no call and changes nothing: "(raise)"
    never has a value, "(loop)" is what a loop computes, and so on. A tree with any of these says
    less than the function does: it is typed and traced, but only the function itself computes.
    """

    name: str
    args: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...] = ()
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Spread:
    """`*x` in a tuple or list, `**x` in a row: the parts of x in its place."""

    value: Expr


@dataclass(frozen=True, slots=True)
class MakeTuple:
    """`(a, b, *c)`."""

    parts: tuple[Expr | Spread, ...]
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class MakeRow:
    """`{"a": x, **r}`: names are constant; a later field replaces an earlier one in its place."""

    parts: tuple[tuple[str, Expr] | Spread, ...]
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class MakeList:
    """`[a, b, *c]` ("list") or `{a, b}` ("set")."""

    parts: tuple[Expr | Spread, ...]
    kind: Literal["list", "set"] = "list"
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Comprehension:
    """`[element for targets in source if c1 if c2]`; several targets unpack the item."""

    kind: Literal["list", "set", "generator"]
    element: Expr
    targets: tuple[str, ...]
    source: Expr
    conditions: tuple[Expr, ...]
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class FString:
    """`f"…{x!r:>5}…"`: text parts are `str`, values are (expression, conversion, format spec)."""

    parts: tuple[str | tuple[Expr, str, str], ...]
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Inner:
    """A lambda inside the function (a `key=` of `sorted`, `min`, `max`)."""

    params: tuple[str, ...]
    body: Expr
    place: Place = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Let:
    """`name = value` followed by `body`; the value is computed even if `body` does not read it."""

    name: str
    value: Expr
    body: Expr
    place: Place = field(default=(0, 0), compare=False)


Expr = (
    Const
    | Param
    | Attribute
    | Index
    | Slice
    | Unary
    | Binary
    | Compare
    | BoolOp
    | IfElse
    | Call
    | Method
    | Opaque
    | MakeTuple
    | MakeRow
    | MakeList
    | Comprehension
    | FString
    | Inner
    | Let
)
