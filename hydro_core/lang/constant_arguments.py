"""Arguments that are constants: what their entries want of the values, and the problem if not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, get_args

from hydro_core.catalog.spec import Arg, TypeProblem
from hydro_core.errors import Code
from hydro_core.lang.foreign import cure_of_choice
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType
from hydro_core.types.moments import is_distance
from hydro_core.types.values import ValueProblem, check_string, to_item


class ArgumentProblem(TypeProblem):
    """What is wrong with a written argument: `written` is the one, None for the call as a whole."""

    def __init__(self, code: Code, message: str, help_: str | None, written: object = None) -> None:
        super().__init__(message, help_, code=code)
        self.written = written


def no_argument(of: str, name: str, cure: str | None, written: object) -> ArgumentProblem:
    """What is wrong with an argument that there is not."""
    return ArgumentProblem("arity", f"`{of}` has no argument `{name}`", cure, written)


def missing_argument(
    of: str, name: str, cure: str | None = None, written: object = None
) -> ArgumentProblem:
    """What is wrong where an argument is not given."""
    return ArgumentProblem("arity", f"`{of}` needs the argument `{name}`", cure, written)


def neither(cure: str, written: object) -> ArgumentProblem:
    """What is wrong with what is neither a column nor a function."""
    message = "a column or a function of the row must stand here"
    return ArgumentProblem("type", message, cure, written)


def _no_value(name: str, problem: ValueProblem, written: object) -> ArgumentProblem:
    return ArgumentProblem("type", f"`{name}`: {problem}", None, written)


def constant_argument(arg: Arg, value: Any, written: Any) -> Any:
    """The value of an argument that is a constant, as its entry wants it.

    Args:
        arg: the argument's entry.
        value: what was read.
        written: where that stands, for the problem that is raised.
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
    """The problem of a key that is none; `found` ends the sentence with what is there."""
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
"""Of arguments that are taken as they are: whether a value will do, and what would."""
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
