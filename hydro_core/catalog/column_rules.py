"""Type rules of the operators that name columns: `select` and its like, `join`, `aggregate`.

A missing column, or one that would occur twice, is a `TypeProblem`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hydro_core.catalog.aggregates import aggregate_type
from hydro_core.catalog.spec import KEPT, Args, TypeProblem, sides_of_key
from hydro_core.catalog.type_rules import (
    Types,
    columns_of,
    common,
    given_by,
    pair,
    row_of,
    twice,
)
from hydro_core.errors import beginning
from hydro_core.functions.tree import Fn
from hydro_core.types.common import common_type
from hydro_core.types.item import (
    BOOLEAN,
    DATE,
    OPEN,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UNKNOWN,
    Field,
    ItemType,
    Row,
    Tuple,
    Unknown,
    is_open,
    padded,
)


def once(fields: Sequence[Field], help_: str) -> Row:
    """The row of these columns; a problem if two have one name."""
    again = twice(field.name for field in fields)
    if again is not None:
        raise TypeProblem(f"the column {again!r} would stand twice", help_)
    return Row(tuple(fields))


def _computed(args: Args, item: ItemType) -> list[Field]:
    computed: tuple[tuple[str, Fn], ...] = args["computed"]
    return [Field(name, given_by(fn, (item,))) for name, fn in computed]


def selected(args: Args, types: Types) -> ItemType:
    """The named columns, then the computed ones."""
    if types[0] == OPEN:
        return OPEN
    named = columns_of(types[0], args["columns"])
    return once((*named, *_computed(args, types[0])), "give the computed column another name")


def with_columns(args: Args, types: Types) -> ItemType:
    """The row, computed columns in the place of those they replace, new ones last."""
    if isinstance(types[0], Unknown):
        return types[0]
    columns = {field.name: field for field in row_of(types[0]).fields}
    columns |= {field.name: field for field in _computed(args, types[0])}
    return Row(tuple(columns.values()))


def renamed(args: Args, types: Types) -> ItemType:
    """The row with new names in the old places."""
    if isinstance(types[0], Unknown):
        return types[0]
    columns_of(types[0], (old for _, old in args["renames"]))
    new = {old: name for name, old in args["renames"]}
    fields = [
        replace(field, name=new.get(field.name, field.name)) for field in row_of(types[0]).fields
    ]
    return once(fields, "rename or drop the other one too")


def dropped(args: Args, types: Types) -> ItemType:
    """The row without the named columns."""
    if isinstance(types[0], Unknown):
        return types[0]
    gone = {field.name for field in columns_of(types[0], args["columns"])}
    left = tuple(field for field in row_of(types[0]).fields if field.name not in gone)
    if not left:
        raise TypeProblem("no column would be left", "keep at least one")
    return Row(left)


def joined(args: Args, types: Types) -> ItemType:
    """`(K, (V, W))`, or the `on` columns, then the left's others, then the right's."""
    if args["on"] is not None or args.get("where") is not None:
        return joined_rows(args, *types)
    help_ = 'rows are joined by columns: `on="…"`'
    left_key, left = pair(types[0], "the left items", help_)
    right_key, right = pair(types[1], "the right items", help_)
    key = common((left_key, right_key), "the keys")
    return types[0] if args["how"] in ("semi", "anti") else Tuple((key, Tuple((left, right))))


def joined_rows(args: Args, left: ItemType, right: ItemType) -> ItemType:
    """The `on` columns, then the left's others, then the right's."""
    on, of_right = sides_of_key(args["on"] or ())
    sides = zip(_key_of(left, on, right), _key_of(right, of_right, left), strict=True)
    keys = tuple(Field(a.name, _common_column(a, b)) for a, b in sides)
    check_condition(args.get("where"), left, right)
    if args["how"] in ("semi", "anti"):
        return left
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return _joined_nothing(args["how"], left, right)
    mine = [field for field in row_of(left).fields if field.name not in on]
    theirs = [field for field in row_of(right).fields if field.name not in of_right]
    if 1 in KEPT[args["how"]]:
        mine = padded(mine)
    if 0 in KEPT[args["how"]]:
        theirs = padded(theirs)
    taken = {*on, *(field.name for field in mine)}
    if args["suffix"] is not None:
        theirs = [
            replace(f, name=f.name + args["suffix"] if f.name in taken else f.name) for f in theirs
        ]
    return once((*keys, *mine, *theirs), 'rename the right one: `suffix="_r"`')


def check_condition(condition: Fn | None, left: ItemType, right: ItemType) -> None:
    """Refuses a condition over rows whose result is not true, false or null."""
    if condition is None:
        return
    if len(condition.params) != 2:
        raise TypeProblem(
            f"the condition is a function of two rows, not of {len(condition.params)}",
            "one of each side: `where=lambda l, r: l.at <= r.until`",
            place=beginning(condition.span),
        )
    for item in (left, right):
        if not isinstance(item, Unknown):
            row_of(item)
    found = given_by(condition, (left, right), spread=False)
    if found != BOOLEAN and not isinstance(found, Unknown):
        raise TypeProblem(
            f"the condition must be true, false or null, but is {found}",
            "compare something: `where=lambda l, r: l.at <= r.until`",
            place=beginning(condition.span),
        )


def _key_of(side: ItemType, names: Sequence[str], other: ItemType) -> Sequence[Field]:
    """The key columns of one side; raises a problem that explains keys of two names, if only the
    other side has a column.
    """
    try:
        return columns_of(side, names, "on")
    except TypeProblem as problem:
        if isinstance(side, Row) and isinstance(other, Row):
            missing = next(name for name in (*names, "") if name not in side.by_name)
            if missing in other.by_name or "=" in missing:
                problem.help = f"{problem.help}; {_NAMES_APART}"
        raise


_NAMES_APART = (
    'columns of other names are joined by `on={"left": "right"}`, of which the left\'s name stays'
)


def _joined_nothing(how: str, left: ItemType, right: ItemType) -> ItemType:
    """The type of a join with a side that is empty or unknown; a problem if padded columns are
    unknown.
    """
    if OPEN in (left, right):
        return OPEN
    for name, item, other in (("left", left, 1), ("right", right, 0)):
        if item == UNKNOWN and other in KEPT[how]:
            raise TypeProblem(
                f"nothing says which columns the {name} input has, which never has an item",
                'say it: `source_iter([], schema="…")`',
            )
    return UNKNOWN


def _common_column(left: Field, right: Field) -> ItemType:
    both = common_type(left.type, right.type)
    if both is None:
        name = repr(left.name) + (
            "" if left.name == right.name else f" (on the right {right.name!r})"
        )
        raise TypeProblem(
            f"the column {name} is {left.type} on the left and {right.type} on the right",
            "make them the same first, with `with_columns`",
        )
    return both


def aggregated(args: Args, types: Types) -> ItemType:
    """The `by` columns, then the aggregates."""
    item = types[0]
    keys = columns_of(item, args["by"] or ())
    if item == OPEN:
        return OPEN
    if item != UNKNOWN:
        row_of(item)
    found = [Field(name, aggregate_type(aggregate, item)) for name, aggregate in args["aggregates"]]
    return once((*keys, *found), "give the aggregate another name")


def recent(args: Args, types: Types) -> ItemType:
    """The item; where rows leave by time, a problem if the column `by` is no time."""
    if args.get("by") is None:
        return types[0]
    for column in columns_of(types[0], (args["by"],), "by"):
        if column.type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ) and not is_open(column.type):
            raise TypeProblem(
                f"`by`: the column {column.name!r} is of type {column.type}, which is no time",
                "name a column of type date or timestamp",
            )
    return types[0]
