"""The entry of an operator: one `OpSpec`, whose columns are all that analyses and rules rely on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from hydro_core.catalog.classes import OpClass
from hydro_core.errors import TypeProblem as TypeProblem  # noqa: PLC0414 - found here by the type rules
from hydro_core.functions.lineage import FieldMap, InputField
from hydro_core.functions.tree import Fn
from hydro_core.types.item import UNKNOWN, FieldPath, ItemType, Order

# Entries of operators: one `OpSpec` each, whose columns are all that others may rely on.
#
# The columns are those of the language page's operator table, and the class (`classes.py`). Only
# the catalogue, the definitions and the lowerings ask for an operator by its name.


class Barrier(Enum):
    """The readiness that an input needs: none, a complete earlier stratum, or the tick before."""

    NONE = "none"
    STRATUM = "stratum"
    TICK = "tick"


class OrderRule(Enum):
    """The order of the output, by the order of the first input."""

    KEEPS = "keeps"
    KEEPS_IF_ALL = "keeps if all inputs have it"
    GIVES = "gives"
    LOSES = "loses"


class State(Enum):
    """The part of the past that an operator needs."""

    NONE = "none"
    HISTORY = "all additions"
    WINDOW = "the additions of the last n ticks"
    LAST = "the tick before"
    RESULT = "its own result at the tick before"
    RECENT = "the additions whose time is not long ago"


@dataclass(frozen=True, slots=True)
class Port:
    """An input: `linear` means op(x + y) = op(x) + op(y) in it, with the others fixed."""

    name: str
    barrier: Barrier = Barrier.NONE
    linear: bool = False
    needs: Order = Order.NONE
    aliases: tuple[str, ...] = ()
    keyword: str = ""
    """The argument that may name this input's stream instead: `join(right=customers)`."""
    elided: bool = False
    """True if a stream without a label enters here, although there are other ports."""
    cure: str = ""
    """Help for an input without the order that is needed, besides imposing one."""


@dataclass(frozen=True, slots=True)
class Always:
    """Shards may be cut anywhere."""


@dataclass(frozen=True, slots=True)
class Never:
    """The operator needs its whole input on one shard.

    An input in which it is linear may still be cut, if every shard has the other inputs as a whole.
    """

    why: str


@dataclass(frozen=True, slots=True)
class OnKey:
    """Equal keys must be on one shard.

    The key is the columns of the argument `by` or `on`, else the fields `at`, a path for each
    input. The output has those columns too, or has the key at `gives`.
    """

    at: tuple[FieldPath, ...] = (("0",), ("0",))
    gives: FieldPath = ("0",)


@dataclass(frozen=True, slots=True)
class OnAnyField:
    """Equal items must be on one shard: any field serves, the same one on every input.

    Where the item is wrapped, the fields are those below `at`; in the output below `gives`.
    """

    at: FieldPath = ()
    gives: FieldPath = ()


@dataclass(frozen=True, slots=True)
class Replicated:
    """The input at `port` must be whole on every shard; the others may be cut anywhere."""

    port: str


@dataclass(frozen=True, slots=True)
class HeldByAll:
    """Every shard has the whole stream; one emits it."""


PartitionRule = Always | Never | OnKey | OnAnyField | Replicated | HeldByAll

ArgKind = Literal[
    "function",  # Fn
    "condition",  # Fn of an item of each input: true, false or null
    "distance",  # timedelta, int, float or Decimal, not negative
    "value",  # an item: a constant Python expression, evaluated once
    "items",  # tuple of items
    "schema",  # ItemType, written as Spark DDL
    "name",  # str
    "integer",  # int
    "flag",  # bool
    "columns",  # tuple[str, ...]; one string is a tuple of one
    "key",  # as columns; tuple[tuple[left, right], ...] where the two sides name some otherwise
    "order",  # tuple[str, ...] or Fn
    "ports",  # tuple[str, ...]; numbers become their digits
    "choice",  # str out of `choices`
    "duration",  # timedelta, not negative
    "fds",  # tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    "computed",  # the open keywords: tuple[tuple[str, Fn], ...]
    "renames",  # the open keywords: tuple[tuple[new, old], ...]
    "aggregates",  # the open keywords: tuple[tuple[str, Aggregate], ...]
    "over_functions",  # the open keywords: tuple[tuple[str, OverFunction], ...]
    "named_columns",  # the open positionals: tuple[str, ...]
    "aggregate",  # of a function of `over`: Aggregate
    "operand",  # of one: a column, or a function of the row
]


@dataclass(frozen=True, slots=True)
class Arg:
    """An argument of an operator; `positional` ones may be given without name, in the entry's
    order.
    """

    name: str
    kind: ArgKind
    summary: str = ""
    """The meaning of the argument, for the pages."""
    required: bool = False
    default: Any = None
    positional: bool = True
    choices: tuple[str, ...] = ()
    least: int = 0
    """For an integer: the smallest that makes sense."""
    leading: int = 0
    """For a function: the number of parameters before the item (1: an accumulator)."""

    @property
    def is_open(self) -> bool:
        """True if it is all keywords of a call that name no argument."""
        return self.kind in ("computed", "renames", "aggregates", "over_functions")


option = partial(Arg, positional=False)
"""An argument that is given by its name alone."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A named aggregate over columns or functions of the row: `max_by("status", "at")`."""

    function: str
    arguments: tuple[str | Fn, ...] = ()


@dataclass(frozen=True, slots=True)
class OverFunction:
    """A function of a row's position among the rows of its key: `lag("price", 1)`.

    The arguments are those of its entry (`ordered.FUNCTIONS`), all of them, in its order.
    """

    function: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Args(Mapping[str, Any]):
    """The arguments of one node, with defaults; 1, 1.0 and True are three values."""

    entries: tuple[tuple[str, Any], ...] = ()

    def __getitem__(self, name: str) -> Any:
        for key, value in self.entries:
            if key == name:
                return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Args) and _exactly(self.entries) == _exactly(other.entries)

    def __hash__(self) -> int:
        return hash(_exactly(self.entries))

    def with_(self, **changes: Any) -> Args:
        """A copy with some arguments replaced or added."""
        merged = {**dict(self.entries), **changes}
        return Args(tuple(merged.items()))


NO_ARGS = Args()


def functions_of(value: Any) -> Iterator[Fn]:
    """The functions among arguments, in their order."""
    match value:
        case Fn():
            yield value
        case Args():
            yield from functions_of(tuple(value.values()))
        case Aggregate(arguments=arguments) | OverFunction(arguments=arguments):
            yield from functions_of(arguments)
        case tuple():
            for part in value:
                yield from functions_of(part)
        case _:
            return


def _exactly(value: Any) -> Hashable:
    """A hashable value that is equal only for values of the same type and content."""
    match value:
        case list() | tuple():
            return (type(value).__name__, *map(_exactly, value))
        case Mapping():
            return ("row", *((name, _exactly(item)) for name, item in value.items()))
        case float():
            return ("float", repr(value))
        case bool() | int() | str() | bytes() | None:
            return (type(value).__name__, value)
        case _:
            return (type(value).__name__, str(value)) if value.__hash__ is None else value


TypeRule = Callable[[Args, tuple[ItemType, ...]], ItemType]
"""From the arguments and the inputs' item types to the output's; raises `TypeProblem`."""


def first(args: Args, types: tuple[ItemType, ...]) -> ItemType:
    """The first input's items."""
    return types[0] if types else UNKNOWN


LineageRule = Callable[[Args, tuple[ItemType, ...]], FieldMap]
"""From the arguments and the inputs' item types to the lineage of the output's fields."""


@dataclass(frozen=True, slots=True)
class Example:
    """A program with ticks and outputs that shows the operator; a test runs it on every engine."""

    program: str
    ticks: tuple[Mapping[str, list[Any]], ...]
    gives: tuple[Mapping[str, list[Any]], ...]
    schemas: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, program: str, schema: str, items: list[Any], gives: list[Any]) -> Example:
        """One tick: items of an input `a`, and those of the output `out`."""
        return cls(program, ({"a": items},), ({"out": gives},), {"a": schema})


class FailureMode(Enum):
    """When an operator fails on an item, apart from a function that fails."""

    NEVER = "never"
    ON_RESULTS = "on some results of its functions"
    ON_ITEMS = "on some items"


Family = Literal["io", "itemwise", "combine", "group", "order", "state"]


@dataclass(frozen=True, slots=True, eq=False)
class OpSpec:
    """An operator. An entry has only the columns that differ from the defaults.

    Entries are equal when they are the same object. Columns that depend on the arguments (the ports
    of a padded join, the partition rule of `limit`) are those of `at(args)`.
    """

    name: str
    family: Family
    cls: OpClass
    """How the operator treats time, keys and order."""
    summary: str
    inputs: tuple[Port, ...]
    example: Example
    result: TypeRule = first
    args: tuple[Arg, ...] = ()
    variadic: bool = False
    """True if the one port of `inputs` takes any number of streams, under any labels (union)."""
    optional_input: bool = False
    """True if the operator may have no input (null)."""
    outputs: Literal["none", "one", "copies", "ports"] = "one"
    """`copies`: any labels, the same stream (tee); `ports`: the labels of the argument `ports`."""
    zero: bool = True
    """True if empty inputs give an empty output."""
    idempotent: bool = False
    """True if neither copies in the input nor a second application change the output."""
    monotone: bool = True
    """True if a larger input never removes an item from the output of the same tick."""
    time_invariant: bool = True
    """True if the output at a tick depends on the inputs only, not on the tick's number."""
    fails: FailureMode = FailureMode.ON_RESULTS
    order: OrderRule = OrderRule.KEEPS
    state: State = State.NONE
    partition: PartitionRule = Always()
    single: bool = False
    """True if the output has at most one item each tick."""
    stands_for: str = ""
    """For an operator that plans may have and programs cannot name: the one that a program has in
    its place, and that messages name.
    """
    keeps_single: bool = False
    """True if the output has at most one item each tick where every input has."""
    lineage: LineageRule | None = None
    """The lineage of the output's fields; None: every item is one of an input's."""
    aliases: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    """The arguments that are given together or not at all."""
    refine: Callable[[Args], Mapping[str, Any]] | None = None
    """The columns that differ under these arguments: `{"partition": OnKey()}`."""

    @property
    def called(self) -> str:
        """The name of the operator in programs."""
        return self.stands_for or self.name

    def class_of(self, args: Args) -> OpClass:
        """The class under these arguments."""
        found: OpClass = (self.refine(args) if self.refine else {}).get("cls", self.cls)
        return found

    def at(self, args: Args) -> OpSpec:
        """The entry under these arguments."""
        changes = self.refine(args) if self.refine else {}
        return replace(self, **changes, refine=None) if changes else self

    def lineage_of(self, args: Args, types: tuple[ItemType, ...]) -> FieldMap:
        """The lineage of the output's fields, for inputs of these types."""
        if self.lineage is not None:
            return self.lineage(args, types)
        whole = frozenset(InputField(i, ()) for i in range(len(types)))
        return FieldMap({(): whole} if types else {}, {} if types else {(): whole})

    def port(self, name: str) -> int | None:
        """The position of the input `name`, by its name or an alias; None if there is none."""
        for position, port in enumerate(self.inputs):
            if name == port.name or name in port.aliases:
                return position
        return None

    def arg(self, name: str) -> Arg | None:
        """The argument `name`; None if there is none."""
        return next((a for a in self.args if a.name == name), None)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


# Inputs and arguments that many operators have, and the sides of a join whose rows stay.


LINEAR = (Port("in", linear=True, aliases=("0",)),)
WHOLE = (Port("in", barrier=Barrier.STRATUM, aliases=("0",)),)
ORDERED = (Port("in", barrier=Barrier.STRATUM, needs=Order.TOTAL, aliases=("0",)),)

BY = option("by", "columns", "the key: a column of the rows, or a list of columns")
INIT = Arg("init", "value", "the accumulator over no item", required=True)
STEP = Arg(
    "f", "function", "the next accumulator, of the one before and an item", required=True, leading=1
)
KEPT: Mapping[str, frozenset[int]] = MappingProxyType(
    {
        "inner": frozenset(),
        "left": frozenset({0}),
        "right": frozenset({1}),
        "outer": frozenset({0, 1}),
        "semi": frozenset(),
        "anti": frozenset(),
    }
)
"""The sides of a join, by its `how`, whose items stay without a match, padded."""


def sides_of_key(
    on: tuple[str, ...] | tuple[tuple[str, str], ...],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of a join's key columns on the left, and on the right.

    >>> sides_of_key(("k",)), sides_of_key((("id", "ref"),))
    ((('k',), ('k',)), (('id',), ('ref',)))
    """
    pairs = [(name, name) if isinstance(name, str) else name for name in on]
    return tuple(left for left, _ in pairs), tuple(right for _, right in pairs)


COMPUTED = Arg("computed", "computed", "columns by functions of the row that came in", default=())


# Messages about data that operators cannot process, and the help: the same on both engines.


class Refusal(NamedTuple):
    """The reason why an operator fails a tick, and the help."""

    reason: str
    cure: str


MANY_SINGLES = Refusal(
    "more than one item arrived at [single], where one is allowed",
    "reduce them to one first, or use `cross`",
)
NO_COMMAND = Refusal("is not a command", 'commands are `("persist", x)` and `("delete", x)`')
NO_KEYED_COMMAND = NO_COMMAND._replace(
    cure='commands are `("persist", k, v)` and `("delete", k, None)`'
)


def undeclared(ports: Iterable[str]) -> Refusal:
    """For an item whose function names an unknown port."""
    return Refusal(
        "names a port that is not declared",
        f"the ports are {', '.join(ports)}: name one of them, or declare one more",
    )


def sum_beyond(total: object) -> Refusal:
    """For a sum of integers beyond 64 bits."""
    return Refusal(f"the sum {total} is beyond 64 bits", "sum decimals or doubles instead")


def digits_beyond(what: str, to: ItemType) -> Refusal:
    """For a sum or mean of decimals that has too many digits."""
    return Refusal(
        f"the {what} has more digits than {to}",
        "take doubles, or decimals of fewer digits after the point, instead",
    )


def endless_cycle(path: str, limit: str, setting: str) -> Refusal:
    """For a cycle that does not end."""
    return Refusal(
        f"the cycle {path} is not done after {limit} (`{setting}`)",
        "let it stop: `unique()` keeps items from going round again, a filter bounds new ones; "
        "or let it go on in the next tick, with `prev()`",
    )
