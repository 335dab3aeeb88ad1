"""Trees of functions: a closed set of pure expressions with Python's meaning, and folds.

A question about functions is a fold: it has an answer for every kind of node.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import is_
from typing import Any, Generic, Literal, NamedTuple, TypeGuard, TypeVar, assert_never

from hydro_core.errors import Span
from hydro_core.functions.kinds import ANY, ExprType, Place
from hydro_core.types.item import ItemType, Row, Tuple

# The tree of a function's body: a closed set of pure expressions with Python's meaning.
#
# A lambda, or a `def` whose body is assignments, conditionals and returns, is read into one `Expr`
# over its parameters. Each node has its location, and its type once the function is bound to
# argument types. The tree is traced, and compiled to Python and to columns of Spark.


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
"""True if a value is a tuple or list with as many parts as a pattern names."""
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

    Constants are equal by type and value, as far as a function may see: 1, 1.0, True and Decimal(1)
    are four, and -0.0 is not 0.0.
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
"""Types whose equal values are identical."""


def exact(value: Any) -> tuple[Any, ...]:
    """A key of a constant; only the very same constant has an equal one."""
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
    """`base.step`, `base["step"]`, `base[0]`: the part of a value that a constant names.

    It mostly is a field (see `field_in`); else a property, an element, a character, or an entry of
    a constant dict.
    """

    base: Expr
    step: int | str
    by_name: bool = False
    """The part is written `base.step`."""
    place: Place = field(default=(0, 0), compare=False)
    type: ExprType = field(default=ANY, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Op:
    """An operation on values, by the name of its entry in the library, however it is written.

    Operators have their symbol as a name, with one operand "-x", "+x" and "~x"; methods begin with
    a point; a call has the name of its function. `a < b <= c` is "<,<=" of three operands, `x[i]`
    is "[]" where i is no constant, and `x[a:b:c]` is "[l:h:s]" without the letters of absent
    bounds. An f-string is "f-string" of its texts and of "{}" of a value, its conversion and its
    format. "(unpack)" of a value, a number of targets n and the position of the starred one (or
    None) is `a, b, *c = value`: a tuple of the n targets, and an error unless the value has so
    many; "(flatten)" of a list of lists is one list.

    A name that begins with "?" has no entry: the operation is identified by its name and operands.
    It mostly is the call of an unreadable function that the caller bound; it may change arrays
    among its arguments. A name in parentheses is no call and changes nothing: "?(raise)" never has
    a value, "?(loop)" is the result of a loop, and so on. A tree with any of these says less than
    the function: it can be typed and traced, but only the function itself computes its result.
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
        """The bounds of a slice: start, end and step."""
        given = iter(self.args[1:])
        low, high, step = (next(given) if letter in self.name else None for letter in "lhs")
        return low, high, step

    @property
    def operands(self) -> tuple[Expr, ...]:
        """All operands: the positional arguments, then those that are given by name."""
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
    """`*x` in a tuple or list, `**x` in a row: the parts of x in its position."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Make:
    """`(a, b, *c)`, `[a, *b]`, `{a, b}` or, of a row, `{"a": x, **r}`.

    A later field of a row replaces an earlier one of its name, in that one's position.
    """

    kind: Literal["tuple", "list", "set", "row"]
    parts: tuple[Expr | Spread, ...]
    names: tuple[str | None, ...] = ()
    """The names of the parts of a row; a spread part has none."""
    place: Place = field(default=(0, 0), compare=False)
    type: ExprType = field(default=ANY, compare=False, repr=False)

    @property
    def fields(self) -> Mapping[int | str | None, Expr] | None:
        """The parts, by index or name; None if a part is spread."""
        whole = [part for part in self.parts if not isinstance(part, Spread)]
        if len(whole) < len(self.parts):
            return None
        return dict(zip(self.names or range(len(whole)), whole, strict=True))


BindKind = Literal["let", "list", "set", "generator", "function"]


@dataclass(frozen=True, slots=True)
class Bind:
    """Variables, and an expression that uses them: the only node that binds variables.

    "let" is `name = value` followed by the body; the value is computed even if the body does not
    read it. A loop, "list", "set" or "generator", is `[body for names in value if c1 if c2]`;
    several names unpack the item. "function" is a lambda inside the function (a `key=` of `sorted`,
    `min`, `max`); it has no argument yet, so its value is None.
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
        """True if the body is computed for each item of the value."""
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
    """A tree as a key: equal to itself alone, never to another tree with equal nodes."""

    tree: Expr

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameTree) and other.tree is self.tree

    def __hash__(self) -> int:
        return id(self.tree)


Expr = Const | Param | Part | Op | IfElse | Make | Bind


# A question about functions is a fold over trees: it has an answer for every kind of node.
#
# Types, lineage, normal forms, Python's syntax and Spark's columns are such questions. A new node
# is a new method here, and the type checker names the questions that have no answer for it. A
# question about some nodes only iterates over all of them.


Answer = TypeVar("Answer")
Around = TypeVar("Around")
"""The context of a node: meanings of names, or a scope."""


class Fold(ABC, Generic[Around, Answer]):
    """A question; an answer is built from the answers for the node's parts, by `of`."""

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
    """The direct parts of an expression, in the order of evaluation."""
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
    """The expression with names replaced by expressions; each new node is simplified."""
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
    """The direct parts that are evaluated whenever the whole is."""
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
    """True if a name is read anywhere in the expression."""
    return any(isinstance(part, Param) and part.name == name for part in nodes(node))


def surely_reads(node: Expr, name: str) -> bool:
    """True if the expression evaluates the name for every item."""
    if isinstance(node, Param):
        return node.name == name
    return any(surely_reads(part, name) for part in always(node))


# Fields of a value: `x.a`, `x["a"]`, `x._1` or `x[0]` are resolved here, and nowhere else.


_POSITION = re.compile(r"_([1-9][0-9]*)")


def position(part: Part) -> int | None:
    """The position that it names in a tuple, from 0, or below 0 from the end; None if it names
    none.
    """
    step = part.step
    if isinstance(step, int):
        return step
    return position_of(step) if part.by_name else None


def position_of(name: str) -> int | None:
    """The position of the field of a tuple with the name; None for another name.

    >>> position_of("_1"), position_of("user")
    (0, None)
    """
    found = _POSITION.fullmatch(name)
    return int(found[1]) - 1 if found else None


def step_in(kind: str | None, part: Part) -> int | str | None:
    """The position or the name of the field that it names in a tuple or row; None if it is no
    field.
    """
    if kind == "tuple":
        return position(part)
    return column_of(part) if kind == "row" else None


def column_of(part: Part) -> str | None:
    """The column that it names, if its base is a row."""
    return part.step if isinstance(part.step, str) else None


class FieldOf(NamedTuple):
    """A field of a tuple or row."""

    step: int | str
    """Its position in the tuple, from 0, or its name."""
    place: int
    """Its position, in a tuple or a row."""
    type: ItemType


def field_in(whole: object, part: Part) -> FieldOf | None:
    """The field that it names in a value of that type; None if it is no field."""
    match whole:
        case Tuple(fields):
            place = position(part)
            if place is not None and -len(fields) <= place < len(fields):
                place %= len(fields)
                return FieldOf(place, place, fields[place])
        case Row() if (name := column_of(part)) is not None:
            found = whole.column(name)
            return None if found is None else FieldOf(name, whole.names.index(name), found)
    return None


# A function of a program, as every part of the system sees it.


@dataclass(frozen=True, slots=True)
class Algebra:
    """Declarations by the author of a function; the rewrites that need them rely on them."""

    commutative: bool = False
    associative: bool = False
    idempotent: bool = False
    neutral: bool = False


@dataclass(frozen=True, slots=True)
class Fn:
    """A pure, deterministic function of items.

    Two functions are equal if their text, the values that they close over, and the types of their
    arguments are equal: `source` is canonical text, or, for an unreadable function, a name that is
    unique to it.
    """

    name: str
    source: str
    params: tuple[str, ...]
    call: Callable[..., Any] = field(compare=False, repr=False)
    tree: Expr | None = field(default=None, compare=False, repr=False)
    algebra: Algebra = Algebra()
    returns: ItemType | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    pure: bool = field(default=False, compare=False, repr=False)
    """The function is known to change none of its arguments (true of every function of a text
    program).
    """
    closed: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The values that it closes over: each name in `source`, and the text of its value."""
    unrepeatable: tuple[tuple[str, Span | None], ...] = field(default=(), compare=False, repr=False)
    """Its uses that may differ between calls, with their locations: the clock, randomness, the
    machine.
    """
    over: tuple[ItemType, ...] = field(default=(), repr=False)
    """The types of its arguments, where they are settled: equal text over other types is another
    function wherever types matter.
    """

    @property
    def whole(self) -> str:
        """Its text with the values that it closes over, for people to read."""
        return whole(self.source, self.closed)

    def __str__(self) -> str:
        return self.name


def whole(source: str, closed: Iterable[tuple[str, str]]) -> str:
    """The text of a function with the values that it closes over."""
    return "\nwhere ".join((source, *(f"{name} = {text}" for name, text in closed)))
