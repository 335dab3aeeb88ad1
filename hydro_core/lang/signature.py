"""The arguments of an operator, bound to its entry's `args`: the same for text and Python.

An `ArgumentReader` knows what a written argument is (a tree of the text, a value of Python); all
that is asked of arguments otherwise (how many, which names, which values) is asked here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from hydro_core.catalog.registry import ALGEBRA, usage
from hydro_core.catalog.spec import NO_ARGS, Aggregate, Arg, Args, OpSpec, OverFunction
from hydro_core.functions.fn import Algebra, Fn
from hydro_core.lang.constant_arguments import (
    ArgumentProblem,
    constant_argument,
    items_argument,
    missing_argument,
    name_argument,
    no_argument,
    no_key,
    read_schema,
)
from hydro_core.lang.foreign import cure_of_argument
from hydro_core.lang.similar import did_you_mean
from hydro_core.types.item import ItemType

Written = TypeVar("Written")
Read_contra = TypeVar("Read_contra", contravariant=True)
Streams = list[tuple[int | None, Written]]
"""The streams that a call names, by the position of their port (None: further)."""


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

    def column_or_function(self, written: Read_contra) -> str | Fn:
        """A column, or a function of the row."""


def bind(
    op: OpSpec,
    positional: Sequence[Written],
    keywords: Sequence[tuple[str, Written]],
    reader: ArgumentReader[Written],
) -> tuple[Args, Streams[Written]]:
    """The arguments of a call of `op`, and its streams; `ArgumentProblem` for the first mistake."""
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
) -> tuple[Args, Streams[Written]]:
    seen: set[str] = set()
    for name, written in keywords:
        if name in seen:
            raise _twice(name, written)
        seen.add(name)
    rest, streams = _streams(op, positional, keywords)
    given = _by_name(op, rest, dict(keywords))
    returns, algebra = _promises(given, reader)
    entries: list[tuple[str, Any]] = []
    value: Any
    for arg in op.args:
        if arg.is_open:
            mine = {other.name for other in op.args if not other.is_open}
            value = _open(op, arg, {k: w for k, w in given.items() if k not in mine}, reader)
        elif arg.name in given:
            value = _value(op, arg, given[arg.name], reader, returns)
        else:
            value = arg.default
            if arg.required:
                raise missing_argument(op.name, arg.name)
        if arg.leading and algebra != Algebra():
            value = replace(value, algebra=algebra)
        entries.append((arg.name, value))
    said = [name for name in op.together if given.get(name) is not None]
    if said and len(said) < len(op.together):
        lacking = next(a.name for a in op.args if a.name in {*op.together} - {*said})
        raise missing_argument(op.name, lacking)
    takes_columns_alone = op.args and all(a.is_open or a.kind == "named_columns" for a in op.args)
    if takes_columns_alone and not any(value for _, value in entries):
        raise _no_column(op)
    args = Args(tuple(entries))
    # An operator that takes no arguments where none of them is given has none then.
    return args if op.at(args).args else NO_ARGS, streams


def _no_column(op: OpSpec) -> ArgumentProblem:
    return ArgumentProblem("arity", f"`{op.name}` needs a column at least", None)


def _streams(
    op: OpSpec, positional: Sequence[Written], keywords: Sequence[tuple[str, Written]]
) -> tuple[Sequence[Written], Streams[Written]]:
    """The positional arguments that are no streams, and those that are."""
    named = {port.keyword: i for i, port in enumerate(op.inputs) if port.keyword}
    streams: Streams[Written] = [(named[name], w) for name, w in keywords if name in named]
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
    places = [arg for arg in op.args if arg.positional and not arg.is_open]
    if places and places[0].kind == "named_columns":
        given[places[0].name] = tuple(positional)
    elif len(positional) > len(places):
        count = "no arguments" if not op.args else f"at most {len(places)} by place"
        extra = positional[len(places)]
        raise ArgumentProblem("arity", f"`{op.name}` takes {count}", None, extra)
    else:
        given.update(zip((arg.name for arg in places), positional, strict=False))
    is_open = any(arg.is_open for arg in op.args)
    streams = [port.keyword for port in op.inputs if port.keyword]
    functions = [arg for arg in op.args if arg.kind == "function"]
    known = [arg.name for arg in op.args if not (arg.is_open or arg.kind == "named_columns")]
    known += streams
    known += ALGEBRA if any(arg.leading for arg in functions) else ()
    known += ["returns"] if functions else []
    for name, written in keywords.items():
        if name in streams:
            continue
        if name not in known and not is_open:
            help_ = cure_of_argument(op.name, name) or did_you_mean(name, known)
            raise no_argument(op.name, name, help_, written)
        if name in given:
            raise _twice(name, written)
        given[name] = written
    return given


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
            flag = Arg(name, "flag", required=True)
            flags[name] = constant_argument(flag, reader.constant(written), written)
    if "returns" not in given:
        return None, Algebra(**flags)
    written = given.pop("returns")
    return read_schema("returns", reader.constant(written), written), Algebra(**flags)


def _twice(name: str, written: object) -> ArgumentProblem:
    return ArgumentProblem("arity", f"`{name}` is given twice", "give it once", written)


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
            raise no_key(arg.name, ", not a function", written)
        case "order" if reader.is_function(written):
            return reader.function(written, None)
        case "named_columns":
            names = tuple(name_argument(arg.name, reader.constant(w), w) for w in written)
            if arg.required and not names:
                raise missing_argument(op.name, arg.name)
            return names
        case "items":
            return items_argument(arg.name, reader.constant(written), written)
        case _:
            return constant_argument(arg, reader.constant(written), written)


def _function(name: str, written: Any, reader: ArgumentReader[Any], returns: ItemType | None) -> Fn:
    if not reader.is_function(written):
        help_ = "a function is a lambda, or a name that the caller binds: `lambda x: …`"
        raise ArgumentProblem("type", f"`{name}` must be a function", help_, written)
    return reader.function(written, returns)


def _open(
    op: OpSpec, arg: Arg, given: Mapping[str, Any], reader: ArgumentReader[Any]
) -> tuple[Any, ...]:
    """The open keywords: computed columns, renames, aggregates."""
    if arg.required and not given:
        raise _no_column(op)
    entries: list[tuple[str, Any]] = []
    for name, written in given.items():
        match arg.kind:
            case "renames":
                entries.append((name, name_argument(name, reader.constant(written), written)))
            case "aggregates":
                entries.append((name, reader.aggregate(written)))
            case "over_functions":
                entries.append((name, reader.over_function(written)))
            case _:
                entries.append((name, _function(name, written, reader, None)))
    return tuple(entries)
