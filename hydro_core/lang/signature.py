"""The arguments of an operator, bound to its entry's `args`: the same for text and Python.

An `ArgumentReader` knows what a written argument is (a tree of the text, a value of Python); all
that is asked of arguments otherwise (how many, which names, which values) is asked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar, get_args

from hydro_core.catalog.spec import (
    NO_ARGS,
    Aggregate,
    Arg,
    Args,
    OpSpec,
    OverFunction,
    TypeProblem,
)
from hydro_core.catalog.usage import ALGEBRA, usage
from hydro_core.errors import Code
from hydro_core.functions.fn import Algebra, Fn
from hydro_core.lang.foreign import cure_of_argument, cure_of_choice
from hydro_core.lang.similar import did_you_mean
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType
from hydro_core.types.moments import is_distance
from hydro_core.types.values import ValueProblem, check_string, to_item

Written = TypeVar("Written")
Read_contra = TypeVar("Read_contra", contravariant=True)

_OPEN_KEYWORDS = ("computed", "renames", "aggregates", "over_functions")
_OPEN_POSITIONALS = ("named_columns",)


class ArgumentProblem(Exception):  # noqa: N818 - it becomes a Diagnostic
    """What is wrong with a written argument: `written` is the one, None for the call as a whole."""

    def __init__(self, code: Code, message: str, help_: str | None, written: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.written = code, message, written
        self.help = help_ or ""


class ArgumentReader(Protocol[Read_contra]):
    """How written arguments are read."""

    def constant(self, written: Read_contra) -> Any:
        """The value; a function without parameters is called."""

    def is_function(self, written: Read_contra) -> bool:
        """Whether it is a function and not a value."""

    def function(self, written: Read_contra, returns: ItemType | None) -> Fn:
        """The function."""

    def aggregate(self, written: Read_contra) -> Aggregate:
        """An aggregate such as `sum("v")`."""

    def over_function(self, written: Read_contra) -> OverFunction:
        """A function of `over` such as `lag("v")`."""


@dataclass(frozen=True)
class Bound(Generic[Written]):
    """What a call says: arguments, and streams by the position of their port (None: further)."""

    args: Args
    streams: tuple[tuple[int | None, Written], ...]


def bind(
    op: OpSpec,
    positional: Sequence[Written],
    keywords: Sequence[tuple[str, Written]],
    reader: ArgumentReader[Written],
) -> Bound[Written]:
    """The arguments of a call of `op`; `ArgumentProblem` for the first that is wrong."""
    try:
        return _bind(op, positional, keywords, reader)
    except ArgumentProblem as problem:
        # Whatever is wrong, how the call should look is a cure.
        problem.help = problem.help or as_written(op)
        raise


def _bind(
    op: OpSpec,
    positional: Sequence[Written],
    keywords: Sequence[tuple[str, Written]],
    reader: ArgumentReader[Written],
) -> Bound[Written]:
    seen: set[str] = set()
    for name, written in keywords:
        if name in seen:
            raise ArgumentProblem("arity", f"`{name}` is given twice", "give it once", written)
        seen.add(name)
    rest, streams = _streams(op, positional, keywords)
    given = _by_name(op, rest, dict(keywords))
    returns, algebra = _promises(given, reader)
    entries: list[tuple[str, Any]] = []
    value: Any
    for arg in op.args:
        if arg.kind in _OPEN_KEYWORDS:
            mine = {other.name for other in op.args if other.kind not in _OPEN_KEYWORDS}
            value = _open(op, arg, {k: w for k, w in given.items() if k not in mine}, reader)
        elif arg.name in given:
            value = _value(op, arg, given[arg.name], reader, returns)
        else:
            value = arg.default
            if arg.required:
                raise _missing(op, arg)
        entries.append((arg.name, _with_algebra(value, algebra) if arg.leading else value))
    said = [name for name in op.together if given.get(name) is not None]
    if said and len(said) < len(op.together):
        raise _missing(op, next(a for a in op.args if a.name in {*op.together} - {*said}))
    args = Args(tuple(entries))
    # An operator that takes no arguments where none of them is given has none then.
    return Bound(args if op.at(args).args else NO_ARGS, tuple(streams))


def _with_algebra(fn: Fn, algebra: Algebra) -> Fn:
    return replace(fn, algebra=algebra) if algebra != Algebra() else fn


def _streams(
    op: OpSpec, positional: Sequence[Written], keywords: Sequence[tuple[str, Written]]
) -> tuple[Sequence[Written], list[tuple[int | None, Written]]]:
    """The positional arguments that are no streams, and those that are."""
    named = {port.keyword: i for i, port in enumerate(op.inputs) if port.keyword}
    streams: list[tuple[int | None, Written]] = [
        (named[name], written) for name, written in keywords if name in named
    ]
    if op.variadic:
        return (), [(None, written) for written in positional]
    if named and positional:
        if len(positional) > 1 or streams:
            extra = positional[-1]
            raise ArgumentProblem("arity", f"`{op.name}` takes one other stream", None, extra)
        streams.append((next(iter(named.values())), positional[0]))
        return (), streams
    return positional, streams


def _by_name(
    op: OpSpec, positional: Sequence[Written], keywords: Mapping[str, Written]
) -> dict[str, Any]:
    """The arguments under their names; those that do not exist are complained of."""
    given: dict[str, Any] = {}
    places = [arg for arg in op.args if arg.positional and arg.kind not in _OPEN_KEYWORDS]
    if places and places[0].kind in _OPEN_POSITIONALS:
        given[places[0].name] = tuple(positional)
    elif len(positional) > len(places):
        count = "no arguments" if not op.args else f"at most {len(places)} by place"
        extra = positional[len(places)]
        raise ArgumentProblem("arity", f"`{op.name}` takes {count}", as_written(op), extra)
    else:
        given.update(zip((arg.name for arg in places), positional, strict=False))
    is_open = any(arg.kind in _OPEN_KEYWORDS for arg in op.args)
    known = [arg.name for arg in op.args if arg.kind not in _OPEN_KEYWORDS + _OPEN_POSITIONALS]
    known += [port.keyword for port in op.inputs if port.keyword]
    known += _promised(op)
    for name, written in keywords.items():
        if any(port.keyword == name for port in op.inputs):
            continue
        if name not in known and not is_open:
            help_ = cure_of_argument(op.name, name) or did_you_mean(name, known) or as_written(op)
            raise ArgumentProblem("arity", f"`{op.name}` has no argument `{name}`", help_, written)
        if name in given:
            raise ArgumentProblem("arity", f"`{name}` is given twice", "give it once", written)
        given[name] = written
    return given


def _promised(op: OpSpec) -> list[str]:
    """What may be said of the function of `op`."""
    functions = [arg for arg in op.args if arg.kind == "function"]
    flags = ALGEBRA if any(arg.leading for arg in functions) else ()
    return [*flags, "returns"] if functions else []


def _promises(
    given: dict[str, Any], reader: ArgumentReader[Any]
) -> tuple[ItemType | None, Algebra]:
    """What is promised of the function, taken out of `given`: its result type and its algebra."""
    if "f" not in given:
        return None, Algebra()
    flags = {}
    for name in ALGEBRA:
        if name in given:
            written = given.pop(name)
            flags[name] = _flag(name, reader.constant(written), written)
    if "returns" not in given:
        return None, Algebra(**flags)
    written = given.pop("returns")
    return read_schema("returns", reader.constant(written), written), Algebra(**flags)


def _missing(op: OpSpec, arg: Arg) -> ArgumentProblem:
    return ArgumentProblem("arity", f"`{op.name}` needs the argument `{arg.name}`", as_written(op))


def as_written(op: OpSpec) -> str:
    """How a call of the operator looks: the cure where nothing nearer is known."""
    return f"it is written `{usage(op)}`"


def _value(
    op: OpSpec, arg: Arg, written: Any, reader: ArgumentReader[Any], returns: ItemType | None
) -> Any:
    match arg.kind:
        case "function":
            return _function(arg.name, written, reader, returns)
        case "condition" if reader.is_function(written):
            return reader.function(written, None)
        case "key" if reader.is_function(written):
            raise _no_key(arg.name, ", not a function", written)
        case "order" if reader.is_function(written):
            return reader.function(written, None)
        case "named_columns":
            names = tuple(_string(arg.name, reader.constant(w), w) for w in written)
            if arg.required and not names:
                raise _missing(op, arg)
            return names
        case "items":
            return _items(arg.name, reader.constant(written), written)
        case _:
            return _constant(arg, reader.constant(written), written)


def _function(name: str, written: Any, reader: ArgumentReader[Any], returns: ItemType | None) -> Fn:
    if not reader.is_function(written):
        help_ = "a function is a lambda, or a name that the caller binds: `lambda x: …`"
        raise ArgumentProblem("type", f"`{name}` must be a function", help_, written)
    return reader.function(written, returns)


def _constant(arg: Arg, value: Any, written: Any) -> Any:
    if value is None and not arg.required and arg.default is None:
        return None
    checks = {
        "value": _item,
        "schema": read_schema,
        "name": _string,
        "flag": _flag,
        "duration": _duration,
        "columns": _columns,
        "key": _key,
        "order": _columns,
        "ports": _ports,
        "fds": _fds,
        "distance": _distance,
        "condition": _no_condition,
    }
    if arg.kind == "choice":
        return _choice(arg, value, written)
    if arg.kind == "integer":
        return _integer(arg, value, written)
    return checks[arg.kind](arg.name, value, written)


def _wrong(name: str, wanted: str, value: Any, written: Any) -> ArgumentProblem:
    return ArgumentProblem("type", f"`{name}` must be {wanted}, not {value!r}", None, written)


def _item(name: str, value: Any, written: Any) -> Any:
    try:
        return to_item(value)
    except ValueProblem as problem:
        raise ArgumentProblem("type", f"`{name}`: {problem}", None, written) from None


def _items(name: str, value: Any, written: Any) -> tuple[Any, ...]:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        raise _wrong(name, "a list of items", value, written)
    return tuple(_item(name, item, written) for item in value)


def read_schema(name: str, value: Any, written: Any) -> ItemType:
    """The type that a schema in the argument `name` is."""
    if isinstance(value, get_args(ItemType)):
        found: ItemType = value
        return found
    if not isinstance(value, str):
        raise _wrong(
            name, 'a schema in Spark\'s DDL, such as "user string, at timestamp"', value, written
        )
    try:
        return parse_ddl(value)
    except TypeProblem as problem:
        raise ArgumentProblem(
            "type", f"`{name}`: {problem.message}", problem.help, written
        ) from None


def _string(name: str, value: Any, written: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _wrong(name, 'a name in quotes, such as "k"', value, written)
    try:
        return check_string(value)
    except ValueProblem as problem:
        raise ArgumentProblem("type", f"`{name}`: {problem}", None, written) from None


def _integer(arg: Arg, value: Any, written: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < arg.least:
        raise _wrong(arg.name, f"a whole number, {arg.least} or more", value, written)
    return value


def _flag(name: str, value: Any, written: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, "True or False", value, written)
    return value


def _no_condition(name: str, value: Any, written: Any) -> Any:
    raise _wrong(name, "a function of two rows, such as `lambda l, r: …`", value, written)


def _distance(name: str, value: Any, written: Any) -> Any:
    if not is_distance(value):
        raise _wrong(name, "a timedelta or a number, not negative", value, written)
    return value


def _duration(name: str, value: Any, written: Any) -> timedelta:
    if not isinstance(value, timedelta) or value < timedelta(0):
        wanted = "a length of time such as timedelta(days=90), not negative"
        raise _wrong(name, wanted, value, written)
    return value


def _choice(arg: Arg, value: Any, written: Any) -> str:
    if value not in arg.choices:
        help_ = cure_of_choice(str(value), arg.choices)
        choices = ", ".join(arg.choices)
        raise ArgumentProblem(
            "type", f"`{arg.name}` must be one of {choices}, not {value!r}", help_, written
        )
    return str(value)


def _columns(name: str, value: Any, written: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names:
        raise _wrong(name, "a column or a list of columns", value, written)
    return tuple(_string(name, n, written) for n in names)


def _key(name: str, value: Any, written: Any) -> tuple[str, ...] | tuple[tuple[str, str], ...]:
    """Columns of both sides, or the left's with the right's where some names differ."""
    if isinstance(value, list | tuple) and not all(isinstance(part, str) for part in value):
        raise _no_key(name, f", not {value!r}", written)
    if not isinstance(value, Mapping):
        return _columns(name, value, written)
    if not value:
        raise _no_key(name, ", not an empty dict", written)
    pairs = tuple((_string(name, a, written), _string(name, b, written)) for a, b in value.items())
    return pairs if any(a != b for a, b in pairs) else tuple(value)


def _no_key(name: str, found: str, written: Any) -> ArgumentProblem:
    return ArgumentProblem(
        "type",
        f"`{name}` must be a column, a list of columns or a dict of them{found}",
        f'columns that both sides have are `{name}="k"` or `{name}=["a", "b"]`; of other names '
        f'`{name}={{"left": "right", "a": "a"}}`',
        written,
    )


def _ports(name: str, value: Any, written: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise _wrong(name, 'a list of words or numbers, such as ["yes", "no"]', value, written)
    for port in value:
        if isinstance(port, bool) or not isinstance(port, int | str) or port == "":
            raise _wrong(name, "a list of words or numbers", value, written)
    ports = tuple(map(str, value))
    if len(set(ports)) < len(ports):
        raise ArgumentProblem(
            "port", f"`{name}` names a port twice: {value!r}", "name it once", written
        )
    return ports


def _fds(
    name: str, value: Any, written: Any
) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    if not isinstance(value, Mapping):
        raise _wrong(name, 'a dict such as {"city": "country"}', value, written)
    return tuple(
        (_fields(name, left, written), _fields(name, right, written))
        for left, right in value.items()
    )


def _fields(name: str, value: Any, written: Any) -> tuple[str, ...]:
    fields = value if isinstance(value, list | tuple) else (value,)
    texts = tuple(str(f) if isinstance(f, int) else f for f in fields)
    return _columns(name, texts, written)


def _open(
    op: OpSpec, arg: Arg, given: Mapping[str, Any], reader: ArgumentReader[Any]
) -> tuple[Any, ...]:
    """The open keywords: computed columns, renames, aggregates."""
    if arg.required and not given:
        raise ArgumentProblem("arity", f"`{op.name}` needs a column at least", as_written(op))
    entries: list[tuple[str, Any]] = []
    for name, written in given.items():
        match arg.kind:
            case "renames":
                entries.append((name, _string(name, reader.constant(written), written)))
            case "aggregates":
                entries.append((name, reader.aggregate(written)))
            case "over_functions":
                entries.append((name, reader.over_function(written)))
            case _:
                entries.append((name, _function(name, written, reader, None)))
    return tuple(entries)
