"""Arguments bound to the entry of an operator: the same for text and Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Protocol, TypeVar, get_args

from hydro_core.catalog.registry import ALGEBRA, usage
from hydro_core.catalog.spec import NO_ARGS, Aggregate, Arg, Args, OpSpec, OverFunction, TypeProblem
from hydro_core.errors import Code
from hydro_core.functions.tree import Algebra, Fn
from hydro_core.lang.foreign import cure_of_argument, cure_of_choice
from hydro_core.lang.source import did_you_mean
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType
from hydro_core.types.values import ValueProblem, check_string, is_distance, to_item

# Constant arguments: checks by the operator's entry, and the problem of a wrong value.


class ArgumentProblem(TypeProblem):
    """The problem of a written argument; `written` is the argument, None for the call as a
    whole.
    """

    def __init__(self, code: Code, message: str, help_: str | None, written: object = None) -> None:
        super().__init__(message, help_, code=code)
        self.written = written


def no_argument(of: str, name: str, cure: str | None, written: object) -> ArgumentProblem:
    """The problem of an unknown argument."""
    return ArgumentProblem("arity", f"`{of}` has no argument `{name}`", cure, written)


def missing_argument(
    of: str, name: str, cure: str | None = None, written: object = None
) -> ArgumentProblem:
    """The problem of a missing argument."""
    return ArgumentProblem("arity", f"`{of}` needs the argument `{name}`", cure, written)


def neither(cure: str, written: object) -> ArgumentProblem:
    """The problem of an argument that is neither a column nor a function."""
    message = "a column or a function of the row must stand here"
    return ArgumentProblem("type", message, cure, written)


def _no_value(name: str, problem: ValueProblem, written: object) -> ArgumentProblem:
    return ArgumentProblem("type", f"`{name}`: {problem}", None, written)


def constant_argument(arg: Arg, value: Any, written: Any) -> Any:
    """The value of a constant argument, in the form that its entry needs.

    Args:
        arg: the argument's entry.
        value: the value that was read.
        written: its source, for the problem that is raised.
    """
    if value is None and not arg.required and arg.default is None:
        return None
    if arg.kind in _WANTED:
        fits, wanted = _WANTED[arg.kind]
        if not fits(arg, value):
            raise _wrong(arg.name, wanted.format(arg=arg), value, written)
        return value
    if arg.kind == "choice":
        return _choice(arg, value, written)
    return _READERS[arg.kind](arg.name, value, written)


def _wrong(name: str, wanted: str, value: Any, written: Any) -> ArgumentProblem:
    return ArgumentProblem("type", f"`{name}` must be {wanted}, not {value!r}", None, written)


def _item(name: str, value: Any, written: Any) -> Any:
    try:
        return to_item(value)
    except ValueProblem as problem:
        raise _no_value(name, problem, written) from None


def items_argument(name: str, value: Any, written: Any) -> tuple[Any, ...]:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        raise _wrong(name, "a list of items", value, written)
    return tuple(_item(name, item, written) for item in value)


def read_schema(name: str, value: Any, written: Any) -> ItemType:
    """The type of a schema in the argument `name`."""
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


def name_argument(name: str, value: Any, written: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise _wrong(name, 'a name in quotes, such as "k"', value, written)
    try:
        return check_string(value)
    except ValueProblem as problem:
        raise _no_value(name, problem, written) from None


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
    return tuple(name_argument(name, n, written) for n in names)


def _key(name: str, value: Any, written: Any) -> tuple[str, ...] | tuple[tuple[str, str], ...]:
    """Columns of both sides, or the left's with the right's where some names differ."""
    if isinstance(value, list | tuple) and not all(isinstance(part, str) for part in value):
        raise no_key(name, f", not {value!r}", written)
    if not isinstance(value, Mapping):
        return _columns(name, value, written)
    if not value:
        raise no_key(name, ", not an empty dict", written)
    pairs = tuple(
        (name_argument(name, a, written), name_argument(name, b, written)) for a, b in value.items()
    )
    return pairs if any(a != b for a, b in pairs) else tuple(value)


def no_key(name: str, found: str, written: Any) -> ArgumentProblem:
    """The problem of a wrong key; `found` ends the sentence with the columns that exist."""
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


_WANTED: Mapping[str, tuple[Callable[[Arg, Any], bool], str]] = {
    "integer": (
        lambda arg, value: (
            isinstance(value, int) and not isinstance(value, bool) and value >= arg.least
        ),
        "a whole number, {arg.least} or more",
    ),
    "flag": (lambda _, value: isinstance(value, bool), "True or False"),
    "distance": (lambda _, value: is_distance(value), "a timedelta or a number, not negative"),
    "duration": (
        lambda _, value: isinstance(value, timedelta) and value >= timedelta(0),
        "a length of time such as timedelta(days=90), not negative",
    ),
    "condition": (lambda _, value: False, "a function of two rows, such as `lambda l, r: …`"),
}
"""Checks of arguments that are used as they are: a test of the value, and the expected form."""
_READERS: Mapping[str, Callable[[str, Any, Any], Any]] = {
    "value": _item,
    "schema": read_schema,
    "name": name_argument,
    "columns": _columns,
    "key": _key,
    "order": _columns,
    "ports": _ports,
    "fds": _fds,
}


# The arguments of an operator, bound to its entry's `args`: the same for text and Python.
#
# An `ArgumentReader` interprets a written argument (a tree of the text, a value of Python); all
# other checks of arguments (number, names, values) are here.


Written = TypeVar("Written")
Read_contra = TypeVar("Read_contra", contravariant=True)
Streams = list[tuple[int | None, Written]]
"""The streams that a call names, by the position of their port (None: further)."""


class ArgumentReader(Protocol[Read_contra]):
    """Interprets written arguments."""

    def constant(self, written: Read_contra) -> Any:
        """The value; a function without parameters is called."""

    def is_function(self, written: Read_contra) -> bool:
        """True for a function, false for a value."""

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
    """The arguments of a call of `op`, and its streams; raises an `ArgumentProblem` for the first
    mistake.
    """
    try:
        return _bind(op, positional, keywords, reader)
    except ArgumentProblem as problem:
        # Every problem without other help shows the form of the call.
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
    # An operator without required arguments may be called without any.
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
    """The arguments under their names; reports unknown ones."""
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
    """The declarations about the function, removed from `given`: its result type and its
    algebra.
    """
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
    """The form of a call of the operator: the help where there is none more specific."""
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
