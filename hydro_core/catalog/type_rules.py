"""Type rules: from the arguments and the inputs' item types to the output's.

A rule raises `TypeProblem` where there is no such type. `UNKNOWN` and `OPEN` fit everywhere: for
these a rule gives the part of the result that it knows, and raises nothing. The result for
`UNKNOWN`, the type without items, is part of the result for every other type, so that the types of
a cycle can start from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from hydro_core.catalog.spec import Args, TypeProblem
from hydro_core.errors import beginning
from hydro_core.functions.result_type import accumulator_type, result_type
from hydro_core.functions.tree import Fn
from hydro_core.types.common import common_type, type_of, type_of_all
from hydro_core.types.item import (
    LONG,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    Array,
    Field,
    ItemType,
    Row,
    Tuple,
    Unknown,
    at,
    is_integer,
    is_open,
    is_widened,
    nullable,
)
from hydro_core.types.values import ValueProblem, conform, require

Types = tuple[ItemType, ...]


def declared(args: Args, types: Types) -> ItemType:
    """The schema in the operator's arguments."""
    schema: ItemType | None = args["schema"]
    if schema is None:
        return UNKNOWN
    for left, right in args.get("fds", ()):
        for path in (*left, *right):
            if at(schema, tuple(path.split("."))) is None:
                help_ = f"the schema is {schema}; fields within fields are written `a.b`"
                raise TypeProblem(f"`fds`: there is no field {path!r}", help_)
    # A wrong row may lack a column that is `not null`.
    return nullable(schema) if is_widened(schema) else schema


def declared_rows(args: Args, types: Types) -> ItemType:
    """The type in the argument `schema`."""
    found: ItemType = args["schema"]
    return found


def listed(args: Args, types: Types) -> ItemType:
    """The schema if there is one, which the items must fit, else the common type of the items."""
    schema: ItemType | None = args["schema"]
    try:
        if schema is None:
            return type_of_all(args["items"])
        for item in args["items"]:
            require(conform(item, schema), schema)
    except ValueProblem as problem:
        cure = (
            'give the items\' type: `schema="…"`' if schema is None else f"the schema is {schema}"
        )
        raise TypeProblem(str(problem), cure) from None
    return schema


def tick_row(args: Args, types: Types) -> ItemType:
    """The row of `tick()`."""
    return Row((Field("tick", LONG), Field("start", TIMESTAMP), Field("end", TIMESTAMP)))


def given_by(fn: Fn, types: Types, *, spread: bool = True) -> ItemType:
    """The type of a function's result for an item; a problem if it is unknown and not declared.

    Without `spread` the function gets whole items, one for each parameter.
    """
    _check_said(fn)
    found = result_type(fn, types, spread=spread)
    _check_known(fn, found, types)
    return found


def _check_known(fn: Fn, found: ItemType, types: Types) -> None:
    """Refuses a result with an unknown part, unless an input's type is unknown, too."""
    if not is_open(found) or any(map(is_open, types)):
        return
    result = "result" if isinstance(found, Unknown) else f"result ({found})"
    raise TypeProblem(
        f"the type of the function's {result} cannot be known",
        'say what it gives: `returns="long"`, or any other type; in `select`, `with_columns`, '
        '`aggregate` and `latest`: `typed("long", lambda …)`',
        place=fn.tree.place if fn.tree is not None else beginning(fn.span),
    )


def _check_said(fn: Fn) -> None:
    if fn.tree is None and fn.returns is None:
        raise TypeProblem(
            f"the source of `{fn.name}` cannot be read, so nothing says what it gives",
            'say so, as in `returns="long"`, or in the function: `def f(x) -> int`',
            place=beginning(fn.span),
        )


def mapped(args: Args, types: Types) -> ItemType:
    """The function's result for an item."""
    return given_by(args["f"], types)


def tested(args: Args, types: Types) -> ItemType:
    """The item itself, if the function fits it."""
    result_type(args["f"], types, spread=True)
    return types[0]


def ranked(args: Args, types: Types) -> ItemType:
    """The item itself, if the function gives a value to sort by."""
    mapped(args, types)
    return types[0]


def routed(args: Args, types: Types) -> ItemType:
    """The item itself; the function must name a port."""
    port = mapped(args, types)
    if port != STRING and not isinstance(port, Unknown) and not is_integer(port):
        raise TypeProblem(
            f"the function must name a port, a string or an integer, but gives {port}",
            "give one of " + ", ".join(map(repr, args["ports"])),
            place=beginning(args["f"].span),
        )
    return types[0]


def spread_mapped(args: Args, types: Types) -> ItemType:
    """The elements of the function's result."""
    found = mapped(args, types)
    return _elements(
        found, f"the function must give an array or a tuple, but gives {found}", args["f"]
    )


def flattened(args: Args, types: Types) -> ItemType:
    """The elements of the item."""
    return _elements(types[0], f"the items must be arrays or tuples, but are {types[0]}", None)


def _elements(found: ItemType, message: str, fn: Fn | None) -> ItemType:
    place = beginning(fn.span) if fn else (0, 0)
    match found:
        case Unknown():
            return found
        case Array(element):
            return element
        case Tuple(fields):
            return common(fields, "the fields of the tuple", place=place)
        case _:
            help_ = "`list(…)` makes an array of a string's characters" if found == STRING else None
            raise TypeProblem(message, help_, place=place)


def common(types: Iterable[ItemType], what: str, *, place: tuple[int, int] = (0, 0)) -> ItemType:
    """The common type of all of these."""
    result: ItemType = UNKNOWN
    for item in types:
        both = common_type(result, item)
        if both is None:
            raise TypeProblem(
                f"{what} have different types: {result} and {item}",
                "make them the same first, with `map` or `select`",
                place=place,
            )
        result = both
    return result


def united(args: Args, types: Types) -> ItemType:
    """The common type of the inputs, with columns in the order of the first."""
    return common(types, "the inputs")


def paired(args: Args, types: Types) -> ItemType:
    """`(T, U)`."""
    return Tuple(types)


def subtracted(args: Args, types: Types) -> ItemType:
    """The first input's items; the second's must be comparable with them."""
    common(types, "the inputs")
    return types[0]


def without_keys(args: Args, types: Types) -> ItemType:
    """The pairs of `pos`, whose keys must be comparable with the items of `neg`."""
    key, _ = pair(types[0], "[pos]", 'rows are joined by name: `join(right=…, on=…, how="anti")`')
    common((key, types[1]), "the keys of [pos] and the items of [neg]")
    return types[0]


def pair(item: ItemType, who: str, help: str | None = None) -> tuple[ItemType, ItemType]:  # noqa: A002
    """The types of key and value; a problem if the item is no pair."""
    match item:
        case Unknown():
            return item, item
        case Tuple((key, value)):
            return key, value
        case _:
            raise TypeProblem(
                f"{who} must be pairs (key, value), but are {item}",
                help or "make them so first: `map(lambda x: (key, value))`",
            )


def unpaired(args: Args, types: Types) -> ItemType:
    """The pairs, or with `by` the rows, unchanged."""
    if args["by"] is None:
        pair(types[0], "the items", 'rows need the key\'s columns: `by="…"`')
    else:
        columns_of(types[0], args["by"], "by")
    return types[0]


def columns_of(item: ItemType, names: Iterable[str], argument: str = "") -> tuple[Field, ...]:
    """The columns of these names; a problem if the item is no row, or lacks one."""
    names = tuple(names)
    if isinstance(item, Unknown):
        return tuple(Field(name, item) for name in names)
    row = row_of(item)
    said = f" (of `{argument}`)" if argument else ""
    missing = [name for name in names if name not in row.by_name]
    if missing:
        near = get_close_matches(missing[0], row.names, n=1)
        meant = f"did you mean `{near[0]}`? " if near else ""
        columns = f"{meant}the columns are {', '.join(row.names)}"
        raise TypeProblem(f"there is no column {missing[0]!r}{said}", columns)
    again = twice(names)
    if again is not None:
        raise TypeProblem(f"the column {again!r} would stand twice{said}", "name it once")
    return tuple(row.by_name[name] for name in names)


def twice(names: Iterable[str]) -> str | None:
    """The first name that occurs twice, None if there is none."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def row_of(item: ItemType) -> Row:
    """The item as a row; a problem if it is none."""
    if isinstance(item, Row):
        return item
    raise TypeProblem(
        f"the items must be rows, but are {item}",
        'make rows of them first: `map(lambda x: {"name": x})`',
    )


def accumulated(init: ItemType, fn: Fn, item: ItemType, *, spread: bool = True) -> ItemType:
    """The type of the accumulator: the smallest that has the start and the function's results.

    With `spread`, a function of several parameters gets the item's fields after the accumulator.
    """
    _check_said(fn)
    found = accumulator_type(fn, init, item, spread=spread)
    _check_known(fn, found, (init, item))
    return found


def folded(args: Args, types: Types) -> ItemType:
    """The accumulator."""
    return accumulated(type_of(args["init"]), args["f"], types[0])


def reduced(args: Args, types: Types) -> ItemType:
    """An item, coerced to the function's result for two."""
    return accumulated(types[0], args["f"], types[0], spread=False)


def folded_by_key(args: Args, types: Types) -> ItemType:
    """`(K, A)`, or the key's columns and the accumulator's."""
    init, fn, by = type_of(args["init"]), args["f"], args["by"]
    if by is None:
        key, value = pair(types[0], "the items", 'rows need the key\'s columns: `by="…"`')
        return Tuple((key, accumulated(init, fn, value)))
    keys = columns_of(types[0], by, "by")
    found = accumulated(init, fn, types[0])
    if isinstance(types[0], Unknown):
        return types[0]
    fields = found.fields if isinstance(found, Row) else (Field("value", found),)
    clash = [field.name for field in fields if field.name in by]
    if clash:
        raise TypeProblem(
            f"the accumulator's column {clash[0]!r} has the name of a key column",
            "call it something else",
            place=beginning(fn.span),
        )
    return Row((*keys, *fields))


def reduced_by_key(args: Args, types: Types) -> ItemType:
    """`(K, V)` or rows, with values coerced to the function's result for two."""
    fn, by = args["f"], args["by"]
    if by is None:
        key, value = pair(types[0], "the items", 'rows need the key\'s columns: `by="…"`')
        return Tuple((key, accumulated(value, fn, value, spread=False)))
    columns_of(types[0], by, "by")
    found = accumulated(types[0], fn, types[0], spread=False)
    if not (isinstance(found, Row) and isinstance(types[0], Row)):
        return found
    # The key columns stay the key, whatever the function gives for them.
    kept = (
        f if f.name in by else Field(f.name, found.column(f.name) or UNKNOWN)
        for f in types[0].fields
    )
    return Row(tuple(kept))


def part_of(named: tuple[str, ...] | Fn | None, argument: str, types: Types) -> ItemType | None:
    """The type of a key or an order of one part, else None; a problem if a column does not
    exist.
    """
    if named is None:
        return None
    if isinstance(named, Fn):
        return given_by(named, types)
    found = columns_of(types[0], named, argument)
    return found[0].type if len(found) == 1 else None


def chosen(args: Args, types: Types) -> ItemType:
    """The item, if it has the columns of key and order."""
    for name in ("by", "order"):
        part_of(args.get(name), name, types)
    return types[0]


def counted(args: Args, types: Types) -> ItemType:
    """`(long, T)`."""
    return Tuple((LONG, types[0]))


_COMMANDS = 'give `("persist", x)` and `("delete", x)`'
_KEYED_COMMANDS = 'give `("persist", key, value)` and `("delete", key, None)`'


def commanded(args: Args, types: Types) -> ItemType:
    """The items of the commands."""
    return _command(types[0], 2, _COMMANDS)[0]


def commanded_by_key(args: Args, types: Types) -> ItemType:
    """`(K, V)` of the commands `(word, K, V)`."""
    return Tuple(_command(types[0], 3, _KEYED_COMMANDS))


def _command(item: ItemType, size: int, cure: str) -> Types:
    match item:
        case Unknown():
            return (item,) * (size - 1)
        case Tuple((word, *rest)) if len(rest) == size - 1 and (
            word == STRING or isinstance(word, Unknown)
        ):
            return tuple(rest)
        case _:
            raise TypeProblem(f"the items must be commands, but are {item}", cure)
