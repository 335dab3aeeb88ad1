"""Entries of the library: arguments, result, meaning, nulls, limits of cost, Spark's expression."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import wraps
from typing import Any, Literal, TypeVar

from hydro_core.errors import TypeProblem
from hydro_core.functions.kinds import ANY, ExprType, Place, elements, is_open, number
from hydro_core.functions.tree import Expr, Op, constant_of
from hydro_core.types.item import DOUBLE, LONG, STRING, Tuple

# Limits of the cost of a constant: steps, bytes that are built or read, and the size of its
# numbers.
#
# Every operation declares an upper bound of its result before it runs, and is refused where that is
# too large: no text of a program takes more than a moment, or more memory than `MOST_BYTES`.


MOST_BITS = 10_000
"""Bits of an integer: Python writes no text of an integer with more than 4,300 digits."""
MOST_STEPS = 300_000
"""Nodes of the tree that are evaluated."""
MOST_BYTES = 100_000_000
"""Bytes of all values that are built or read; a shared part counts each time that it occurs."""
MOST_PLACES = 6_000
"""Digits before or after the point of a decimal."""
MOST_WIDTH = 9_999
"""A width or precision in a format."""
MOST_FORMAT = 10_000
"""Characters of a format of times."""
GROWTH = 12
"""The ratio of bytes of a text that shows a value to the value's own bytes: escapes are the
longest.
"""

MOST_MADE = 100_000_000
"""Characters, or elements, of one value that a program computes at run time."""


class LimitError(Exception):
    """A limit is exceeded; the message is a predicate of the constant."""


class Budget:
    """The remaining budget during the computation of one constant."""

    def __init__(self) -> None:
        self.steps = 0
        self.bytes = 0
        self._weights: dict[int, tuple[Any, int]] = {}

    def step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise LimitError(f"takes more than {MOST_STEPS:,} steps")

    def charge(self, size: int) -> None:
        """Counts bytes before they are built or read."""
        self.bytes += size
        if self.bytes > MOST_BYTES:
            raise LimitError(f"makes or reads more than {MOST_BYTES // 1_000_000} MB")

    def foresee(self, size: int) -> None:
        """Refuses bytes before they are built if they are too many; they are counted afterwards."""
        if self.bytes + size > MOST_BYTES:
            self.charge(size)

    def made(self, value: Any) -> Any:
        self.charge(self.weight(value))
        return value

    def weight(self, value: Any) -> int:
        """The bytes of a value; a part counts each time that it occurs."""
        match value:
            case bool():
                return sys.getsizeof(value)
            case int():
                check_bits(value.bit_length())
            case Decimal():
                places = len(value.as_tuple().digits) if value.is_finite() else 0
                check_places(max(abs(value.adjusted()), places) if value.is_finite() else 0)
            case list() | tuple() | set() | dict():
                return self._parts(value)
        return sys.getsizeof(value)

    def _parts(self, value: Any) -> int:
        known = self._weights.get(id(value))
        if known is not None:
            return known[1]
        total = sys.getsizeof(value)
        parts = (p for pair in value.items() for p in pair) if isinstance(value, dict) else value
        for part in parts:
            total += self.weight(part)
            if total > MOST_BYTES:
                break
        self._weights[id(value)] = (
            value,
            total,
        )  # The value is held, so that no other object gets its id.
        return total

    def read(self, *values: Any) -> None:
        """Counts values that are read whole."""
        self.charge(sum(map(self.weight, values)))

    def before(self, op: str, left: Any, right: Any) -> None:
        """Refuses an operator whose result would be too large."""
        if isinstance(left, int) and isinstance(right, int):
            if op == "**":
                check_bits(left.bit_length() * max(0, right))
            elif op == "<<":
                check_bits(left.bit_length() + max(0, right))
        elif op == "*":
            for a, b in ((left, right), (right, left)):
                if isinstance(a, str | bytes | list | tuple) and isinstance(b, int):
                    self.foresee(self.weight(a) * max(0, b))
        elif op == "%" and isinstance(left, str | bytes):
            form = left if isinstance(left, str) else left.decode("latin-1")
            if "*" in form:
                raise LimitError("has a format whose width is computed")
            self.foresee(check_format(form) + GROWTH * (self.weight(right) + len(form)))
        else:
            self.read(left, right)


def check_made(size: int, by: str) -> None:
    """Refuses an operation on computed values whose result would take all memory."""
    if size > MOST_MADE:
        raise OverflowError(f"more than {MOST_MADE:,} characters or elements, by `{by}`")


def check_bits(bits: int) -> None:
    if bits > MOST_BITS:
        raise LimitError(f"has an integer of more than {MOST_BITS:,} bits")


def check_places(places: int) -> None:
    if places > MOST_PLACES:
        raise LimitError(f"has a decimal of more than {MOST_PLACES:,} places")


def check_format(form: str) -> int:
    """Refuses a format with a wide field; gives the sum of the widths of all fields."""
    numbers = _numbers_in(form)
    if any(len(digits.lstrip("0")) > len(str(MOST_WIDTH)) for digits in numbers):
        raise LimitError(f"has a format wider than {MOST_WIDTH:,}")
    return sum(map(int, numbers))


def width_of(form: str) -> int:
    """The sum of the widths of the fields of a computed format."""
    numbers = _numbers_in(form)
    is_vast = any(len(digits) > len(str(MOST_MADE)) for digits in numbers)
    return MOST_MADE + 1 if is_vast else sum(map(int, numbers))


def _numbers_in(form: str) -> list[str]:
    return "".join(c if c.isdecimal() else " " for c in form).split()


# An entry of the library: arguments, result, meaning, nulls, cost, Spark's expression.
#
# An entry defines all of an operation, be it a function, an operator, a method or a property: from
# it follow the allowed spellings, the checks of a call, its type, its column, and the page of
# functions. Spark is not imported here: an expression gets Spark's functions as `F`.


_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class CallSite:
    """A typed call; for a method, the arguments are those in the parentheses."""

    name: str
    args: tuple[ExprType, ...]
    exprs: tuple[Expr, ...]
    keywords: Mapping[str, ExprType]
    apply: Callable[[str | int, tuple[ExprType, ...]], ExprType]
    place: Place
    value_of: Callable[[Expr], Any] = constant_of
    """The value of a constant expression, `...` of another."""
    base: ExprType = ANY
    """For a method, the type of the value before the point."""

    def problem(
        self,
        message: str,
        help: str | None = None,  # noqa: A002
        place: Place | None = None,
    ) -> TypeProblem:
        return TypeProblem(message, help, place=place or self.place)

    def count(self, least: int, most: int) -> None:
        given = len(self.args)
        if not least <= given <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            noun = "argument" if wanted == "1" else "arguments"
            raise self.problem(f"`{self.name}` takes {wanted} {noun}, not {given}")

    def some(self) -> None:
        if not self.args:
            raise self.problem(f"`{self.name}` takes at least one argument")

    def elements(self, position: int = 0) -> ExprType:
        """The type of the items of a loop over an argument."""
        found = elements(self.args[position])
        if found is None:
            raise self.problem(
                f"`{self.name}` goes through the parts of a value; {self.args[position]} has none"
            )
        return found

    def constant(self, position: int) -> Any:
        """The value of a constant argument; `...` if it is not constant or absent."""
        return self.value_of(self.exprs[position]) if position < len(self.exprs) else ...

    def check(self, parameters: tuple[Parameter, ...]) -> None:
        """Refuses arguments that do not fit the parameters."""
        least = 0 if self.keywords else sum(not p.optional for p in parameters)
        self.count(least, len(parameters))
        for parameter, kind in zip(parameters, self.args, strict=False):
            if not is_open(kind) and not parameter.fits(kind):
                raise self.problem(f"`{self.name}` takes {parameter.wanted}, not {kind}")


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument in the parentheses of a call."""

    wanted: str
    fits: Callable[[ExprType], bool]
    given_as: Literal["column", "constant", "columns", "strings"] = "column"
    """The form in which Spark's expression gets the argument: a column, its value at planning time,
    the columns of one or several values, or a column of arrays of strings.
    """
    optional: bool = False


CallTyping = Callable[[CallSite], ExprType]
Cost = Callable[[Budget, list[Any]], None]
"""Refuses a call on constants that would build or read too much; a method's first argument is its
base.
"""
Column = Any
Expression = Callable[..., Column | tuple[Column, ...] | None]
"""Spark's expression, of `F`, the value and the arguments, none of them null; optional arguments
may be absent. It must read all of its arguments: where one is null, the job fails as it is read.
None: there is no expression for arguments like these.
"""
TotalityRule = Callable[[Op, Sequence[bool]], bool]
"""True if an operation has a value for all values of its operands, by their types and by which of
them may be null.
"""
AggregateStep = Literal["plus", "minus", "least", "greatest"]
"""The aggregate that applies an operation to an accumulator and a value."""
NullRule = Literal["python", "strict", "own"]
"""The result for a null argument: Python's error, null, or a result that the function defines."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, identified by its name; a method or property, by the type and the name."""

    gives: ExprType | CallTyping
    takes: tuple[Parameter, ...] | None = None
    """The parameters of a call; None: it is a property, or the type depends on the call."""
    function: Any = None
    """The meaning in Python; a method has it from its type."""
    column: Expression | None = None
    """Spark's expression, if it depends on the arguments' columns alone."""
    may_fail: bool = False
    """The expression is null where Python fails or must compute the value."""
    cost: Cost | None = None
    nulls: NullRule = "python"
    functions: frozenset[str | int] = frozenset()
    """The arguments that are functions, by index or name."""
    defaults: tuple[tuple[str, Any], ...] = ()
    """Its parameters, where they may be given by name: each with its default, `...` for none."""
    has_value: TotalityRule | None = None
    """The condition under which it has a value, a truth value, without failing; None if unknown."""
    syntax: type[ast.AST] | None = None
    """For an operator, the node of Python's syntax trees."""
    step: AggregateStep | None = None
    """The aggregate whose step it is; a comparison as the test that selects its left operand where
    it is true, and its right one elsewhere.
    """

    def result(self, site: CallSite) -> ExprType:
        if self.defaults and site.keywords:
            raise self._not_these(site)
        if self.takes is not None:
            site.check(self.takes)
        return self.gives(site) if callable(self.gives) else self.gives

    def _not_these(self, site: CallSite) -> TypeProblem:
        names = ", ".join(name for name, _ in self.defaults)
        known = [name for name, _ in self.defaults[len(site.args) :]]
        wrong = next((name for name in site.keywords if name not in known), None)
        if wrong is None:
            return site.problem(f"`{site.name}` lacks an argument", f"it takes {names}")
        return site.problem(f"`{site.name}` takes no such `{wrong}`", f"it takes {names}")


Members = Mapping[str, Operation]
"""The methods and properties of values of one type."""


def method(
    gives: ExprType | CallTyping,
    *takes: Parameter,
    column: Expression | None = None,
    may_fail: bool = False,
    cost: Cost | None = None,
) -> Operation:
    """A method; Python computes it where it has no expression."""
    return Operation(gives, takes, column=column, may_fail=may_fail, cost=cost)


def several(names: str, entry: Operation) -> Members:
    """Several entries that differ in the name only."""
    return dict.fromkeys(names.split(), entry)


def read(gives: ExprType | CallTyping, column: Expression | None = None) -> Operation:
    return Operation(gives, column=column)


def strict(function: Callable[..., _Made]) -> Callable[..., _Made | None]:
    """The function with null as its result for a null argument, except where null is the default.

    >>> strict(len)(None), strict(len)("ab")
    (None, 2)
    """
    signature = inspect.signature(function)
    parameters = enumerate(signature.parameters.values())
    free = frozenset(i for i, p in parameters if p.default is None)

    @wraps(function)
    def of_known(*args: Any, **keywords: Any) -> _Made | None:
        if keywords:
            bound = signature.bind(*args, **keywords)
            bound.apply_defaults()
            args = bound.args
        if any(a is None and i not in free for i, a in enumerate(args)):
            return None
        return function(*args)

    return of_known


class Library(dict[str, Operation]):
    """Functions by their names, which are entered where they are defined."""

    def __init__(self, prefix: str = "") -> None:
        super().__init__()
        self._prefix = prefix

    def strict(
        self,
        gives: ExprType | CallTyping,
        *takes: Parameter,
        column: Expression | None = None,
        may_fail: bool = False,
        cost: Cost | None = None,
        functions: frozenset[str | int] = frozenset(),
    ) -> Callable[[Callable[..., _Made]], Callable[..., _Made | None]]:
        """Enters a strict function; its arguments may be given by the names of its parameters."""

        def entered(function: Callable[..., _Made]) -> Callable[..., _Made | None]:
            parameters = inspect.signature(function).parameters.values()
            names = ((p.name, ... if p.default is p.empty else p.default) for p in parameters)
            found = strict(function)
            self[self._prefix + function.__name__] = Operation(
                *(gives, takes, found, column, may_fail, cost),
                nulls="strict",
                functions=functions,
                defaults=tuple(names),
            )
            return found

        return entered

    def own(self, gives: CallTyping) -> Callable[[Callable[..., _Made]], Callable[..., _Made]]:
        """Enters a function that defines its result for nulls."""

        def entered(function: Callable[..., _Made]) -> Callable[..., _Made]:
            self[function.__name__] = Operation(gives, None, function, nulls="own")
            return function

        return entered


def optional(parameter: Parameter) -> Parameter:
    return replace(parameter, optional=True)


def constant(parameter: Parameter) -> Parameter:
    """The parameter, whose value Spark must know at planning time."""
    return replace(parameter, given_as="constant")


TEXT = Parameter("a string", lambda kind: kind == STRING)
TEXTS = Parameter(
    "a string, or a tuple of strings",
    lambda kind: (
        kind == STRING
        or (isinstance(kind, Tuple) and all(f == STRING or is_open(f) for f in kind.fields))
    ),
    "columns",
)
WHOLE = Parameter("a whole number", lambda kind: number(kind) == LONG)
REAL = Parameter("a number", lambda kind: number(kind) in (LONG, DOUBLE))
NUMBER = Parameter("a number", lambda kind: number(kind) is not None)
ANYTHING = Parameter("a value", lambda _: True)
MANY = Parameter("a value with parts", lambda kind: elements(kind) is not None, "strings")
KNOWN_TEXT, KNOWN_WHOLE = constant(TEXT), constant(WHOLE)
"""Parameters whose value Spark must know at planning time."""
MODULES = {"math": "such as `math.sqrt(x)`", "re": 'such as `re.search(r"\\d+", x)`'}
"""Names that programs see as modules, with an example of their use."""


def no_call(site: CallSite) -> ExprType:
    """Refuses a call of a module."""
    raise site.problem(f"`{site.name}` is no function", MODULES[site.name])


def same(site: CallSite) -> ExprType:
    """Typing rule of a call whose result has the type of its base."""
    return site.base


# Bounds of results of calls, for constants and at run time; a method's first argument is its base.
# Bounds that follow from numbers and lengths alone also apply to computed values.


_PER_PART = 60
"""Bytes of a short text that is a part of another one."""


def content(limits: Budget, args: list[Any]) -> None:
    """Charges all arguments as read."""
    limits.read(*args)


def shown(limits: Budget, args: list[Any]) -> None:
    """Charges a text that shows the first argument."""
    limits.foresee(GROWTH * limits.weight(args[0]))


def per_character(size: int = _PER_PART) -> Cost:
    """Charges so many bytes for each character."""

    def made(limits: Budget, args: list[Any]) -> None:
        limits.foresee(size * sum(len(a) for a in args if isinstance(a, str | bytes)))

    return made


ResultSize = Callable[[list[Any]], int]
_SIZES: dict[Cost, ResultSize] = {}
_PER_CHARACTER = 4


def cost_of_size(size: ResultSize, each: int = _PER_CHARACTER) -> Cost:
    """Charges a result of so many characters or elements, each of so many bytes."""

    def cost(limits: Budget, args: list[Any]) -> None:
        limits.foresee(each * size(args))

    _SIZES[cost] = size
    return cost


def bounded(name: str, function: Callable[..., Any], cost: Cost | None) -> Callable[..., Any]:
    """The function with a check of its result's size, where its arguments determine that."""
    size = None if cost is None else _SIZES.get(cost)
    if size is None:
        return function

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        held = [list(arg) if isinstance(arg, Iterator) else arg for arg in args]
        check_made(size([*held, *keywords.values()]), name)
        return function(*held, **keywords)

    return call


def widest(args: list[Any]) -> int:
    """The largest number after the first argument."""
    return max((a for a in args[1:] if isinstance(a, int)), default=8)


width = cost_of_size(widest)
"""Charges a text whose width is an argument."""


def form(_: Budget, args: list[Any]) -> None:
    """Charges the parsing or formatting of times."""
    if any(isinstance(a, str) and len(a) > MOST_FORMAT for a in args):
        raise LimitError(f"has a format of more than {MOST_FORMAT:,} characters")


def digits(_: Budget, args: list[Any]) -> None:
    """Charges the parsing of a number from its digits."""
    if isinstance(args[0], str | bytes):
        check_places(len(args[0]))
