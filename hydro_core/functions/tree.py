"""The tree of a function's body: a closed set of pure expressions, Python's in meaning.

A lambda, or a `def` whose body is assignments, conditionals and returns, is read into one `Expr`
over its parameters. Each node has its place, and its type once the function is bound to what it is
applied to. The tree is what is traced and compiled, to Python and to columns of Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeGuard

from hydro_core.functions.kinds import ANY, ExprType, Place

OpFamily = Literal[
    "unary",
    "binary",
    "comparison",
    "and",
    "or",
    "index",
    "slice",
    "text",
    "format",
    "method",
    "call",
    "unread",
]
"""How an operation is written."""
UNARY: Mapping[str, str] = {"-x": "-", "+x": "+", "~x": "~", "not": "not"}
"""Operators of one operand, and their symbols."""
BINARY = ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>")
SLICES = ("[:]", "[l:]", "[:h]", "[l:h]", "[::s]", "[l::s]", "[:h:s]", "[l:h:s]")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not")
UNBOUND = "?(unbound)"
"""The value of a variable that may not be bound, or may have another value."""
RAISE = "?(raise)"
FORMAT = "?(format)"
"""An f-string whose format is computed: a text."""
SEQUENCE = "?(sequence)"
"""Whether a value is a tuple or list with as many parts as a pattern names."""
UNPACK = "(unpack)"
MATCHED = "(matched)"
"""As an unpacking; it has a value only where the value has as many parts."""
FLATTEN = "(flatten)"
_PREFIXES: Mapping[str, OpFamily] = {".": "method", "?": "unread"}


class _Families(dict[str, OpFamily]):
    """How operations are written, by their names."""

    def __missing__(self, name: str) -> OpFamily:
        found = _PREFIXES.get(name[:1]) or ("comparison" if "," in name else "call")
        self[name] = found
        return found


_FAMILIES = _Families(
    {
        **dict.fromkeys(UNARY, "unary"),
        **dict.fromkeys(BINARY, "binary"),
        **dict.fromkeys(COMPARISONS, "comparison"),
        **dict.fromkeys(SLICES, "slice"),
        "and": "and",
        "or": "or",
        "[]": "index",
        "f-string": "text",
        "{}": "format",
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """A constant: None, a scalar, a timedelta, or a tuple, list or dict of them.

    Equal by type and value, as far as a function may see: 1, 1.0, True and Decimal(1) are four, and
    -0.0 is not 0.0.
    """

    value: Any
    place: Place = field(default=(0, 0), compare=False)
    type: ExprType = field(default=ANY, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Const) or type(self.value) is not type(other.value):
            return False
        if type(self.value) in _PLAIN:
            return bool(self.value == other.value)
        return exact(self.value) == exact(other.value)

    def __hash__(self) -> int:
        return hash(self.value if type(self.value) in _PLAIN else exact(self.value))


_PLAIN = (str, int, bool, type(None))
"""Of one such type, what is equal is the same."""


def exact(value: Any) -> tuple[Any, ...]:
    """A constant as what only the very same constant is equal to."""
    match value:
        case dict():
            return ("dict", *((exact(k), exact(v)) for k, v in value.items()))
        case tuple() | list():
            return (type(value).__name__, *map(exact, value))
        case _:
            return (type(value).__name__, repr(value))


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of the function, or a variable of a `Bind` around it."""

    name: str
    place: Place = field(default=(0, 0), compare=False)
    type: ExprType = field(default=ANY, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Part:
    """`base.step`, `base["step"]`, `base[0]`: what a constant names of a value.

    Mostly it is a field (`fields` says which); else a property, an element, a character, or an
    entry of a constant dict.
    """

    base: Expr
    step: int | str
    by_name: bool = False
    """It is written `base.step`."""
    place: Place = field(default=(0, 0), compare=False)
    type: ExprType = field(default=ANY, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Op:
    """An operation on values, by the name of its entry in the library, however it is written.

    Operators have their symbol as a name, of one operand "-x", "+x" and "~x"; methods begin with a
    point, what is called has the name that it is called by. `a < b <= c` is "<,<=" of three
    operands, `x[i]` is "[]" where i is no constant, and `x[a:b:c]` is "[l:h:s]" without the letters
    of the bounds that are not given. An f-string is "f-string" of its texts and of "{}" of a value,
    its conversion and its format. "(unpack)" of a value, a number of targets n and the place of the
    starred one (or None) is `a, b, *c = value`: a tuple of the n targets, and an error unless the
    value has so many; "(flatten)" of a list of lists is one list.

    What begins with "?" has no entry: it is known by its name and what it is computed from only.
    Mostly it is the call of a function that the caller bound and that cannot be read; it may change
    arrays among its arguments. A name in parentheses is no call and changes nothing: "?(raise)"
    never has a value, "?(loop)" is what a loop computes, and so on. A tree with any of these says
    less than the function does: it is typed and traced, but only the function itself computes.
    """

    name: str
    args: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...] = ()
    place: Place = field(default=(0, 0), compare=False)
    type: ExprType = field(default=ANY, compare=False, repr=False)

    @property
    def family(self) -> OpFamily:
        return _FAMILIES[self.name]

    @property
    def bounds(self) -> tuple[Expr | None, Expr | None, Expr | None]:
        """Of a slice: from where, to where, and in which steps."""
        given = iter(self.args[1:])
        low, high, step = (next(given) if letter in self.name else None for letter in "lhs")
        return low, high, step

    @property
    def operands(self) -> tuple[Expr, ...]:
        """What it is computed from: its arguments, then those that are given by name."""
        return (*self.args, *(value for _, value in self.keywords))


@dataclass(frozen=True, slots=True)
class IfElse:
    """`then if test else otherwise`."""

    test: Expr
    then: Expr
    otherwise: Expr
    place: Place = field(default=(0, 0), compare=False)
    type: ExprType = field(default=ANY, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Spread:
    """`*x` in a tuple or list, `**x` in a row: the parts of x in its place."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Make:
    """`(a, b, *c)`, `[a, *b]`, `{a, b}` or, of a row, `{"a": x, **r}`.

    A later field of a row replaces an earlier one of its name, in that one's place.
    """

    kind: Literal["tuple", "list", "set", "row"]
    parts: tuple[Expr | Spread, ...]
    names: tuple[str | None, ...] = ()
    """Of the parts of a row; a part that is spread has none."""
    place: Place = field(default=(0, 0), compare=False)
    type: ExprType = field(default=ANY, compare=False, repr=False)

    @property
    def fields(self) -> Mapping[int | str | None, Expr] | None:
        """What it is made of, by place or name; None where a part is spread."""
        whole = [part for part in self.parts if not isinstance(part, Spread)]
        if len(whole) < len(self.parts):
            return None
        return dict(zip(self.names or range(len(whole)), whole, strict=True))


BindKind = Literal["let", "list", "set", "generator", "function"]


@dataclass(frozen=True, slots=True)
class Bind:
    """Variables, and what is computed with them: all nodes that have any.

    "let" is `name = value` followed by the body; the value is computed even if nobody reads it. A
    loop, "list", "set" or "generator", is `[body for names in value if c1 if c2]`; several names
    unpack the item. "function" is a lambda inside the function (a `key=` of `sorted`, `min`,
    `max`); nothing is given to it yet, so its value is None.
    """

    kind: BindKind
    names: tuple[str, ...]
    value: Expr
    body: Expr
    conditions: tuple[Expr, ...] = ()
    place: Place = field(default=(0, 0), compare=False)
    type: ExprType = field(default=ANY, compare=False, repr=False)

    @property
    def is_loop(self) -> bool:
        """Whether the body is computed for each item of the value."""
        return self.kind in LOOPS


LOOPS = ("list", "set", "generator")


def function_node(params: tuple[str, ...], body: Expr, place: Place) -> Bind:
    return Bind("function", params, Const(None), body, place=place)


def is_function(node: Expr | None) -> TypeGuard[Bind]:
    return isinstance(node, Bind) and node.kind == "function"


def constant_of(expr: Expr | None) -> Any:
    """The value of a constant expression, `...` of another."""
    return expr.value if isinstance(expr, Const) else ...


@dataclass(frozen=True, slots=True, eq=False)
class SameTree:
    """A tree as a key: equal to itself alone, whatever other trees say."""

    tree: Expr

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameTree) and other.tree is self.tree

    def __hash__(self) -> int:
        return id(self.tree)


Expr = Const | Param | Part | Op | IfElse | Make | Bind
