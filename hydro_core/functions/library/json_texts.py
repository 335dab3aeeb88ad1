"""JSON in texts: read by a schema that is constant, and written."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.kinds import ExprType, as_item, is_open
from hydro_core.functions.library import costs
from hydro_core.functions.library.entry import ANYTHING, KNOWN_TEXT, TEXT, CallSite, Library
from hydro_core.types import json as items
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import STRING, Array, ItemType, Row, Tuple
from hydro_core.types.values import ValueProblem, to_item

JSON = Library()
_STEP = re.compile(r"""\.([^.\[\]'"*?@$()]+)|\[([0-9]+)\]|\['([^']*)'\]|\["([^"]*)"\]""")


# the types of calls


def _by_schema(site: CallSite) -> ExprType:
    schema = site.constant(1)
    if not isinstance(schema, str):
        cure = "write it as it is: types are known before anything runs"
        raise site.problem(f"`{site.name}` takes a schema that is constant", cure)
    try:
        return _type_of(schema)
    except TypeProblem as problem:
        place = site.exprs[1].place
        raise site.problem(problem.message, problem.help, place) from None


def _by_path(site: CallSite) -> ExprType:
    path = site.constant(1)
    if isinstance(path, str):
        try:
            _steps(path)
        except ValueError as problem:
            cure = "such as `$.user.tags[0]` or `$['first name']`"
            raise site.problem(str(problem), cure, site.exprs[1].place) from None
    return STRING


def _of_item(site: CallSite) -> ExprType:
    kind = site.args[0]
    if not is_open(kind):
        as_item(kind, site.place)
    return STRING


# what programs call


@JSON.strict(_by_schema, TEXT, KNOWN_TEXT, cost=costs.per_character())
def parse_json(text: str, schema: str) -> Any:
    """The item that a text in JSON is, of a schema such as `user string, tags array<string>`.

    A column that the text lacks is null, what the schema lacks is left out; what is no JSON, or
    does not fit, fails.
    """
    try:
        to = _type_of(schema)
        return items.from_json(_declared(items.parse_json(text), to), to)
    except ValueProblem as problem:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise ValueError(f"{shown!r} is no JSON of {schema!r}: {problem}") from None


@JSON.strict(_by_schema, TEXT, KNOWN_TEXT, cost=costs.per_character())
def try_parse_json(text: str, schema: str) -> Any:
    """As `parse_json`; null where it would fail."""
    try:
        return parse_json(text, schema)
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _type_of(schema: str) -> ItemType:
    return parse_ddl(schema)


def _declared(value: Any, to: ItemType) -> Any:
    """The value without the columns that the type lacks."""
    match value, to:
        case dict(), Row(fields):
            return {f.name: _declared(value[f.name], f.type) for f in fields if f.name in value}
        case list(), Array(element):
            return [_declared(part, element) for part in value]
        case list(), Tuple(fields) if len(value) == len(fields):
            return [_declared(part, kind) for part, kind in zip(value, fields, strict=True)]
        case _:
            return value


@JSON.strict(_by_path, TEXT, KNOWN_TEXT, cost=costs.per_character())
def get_json_object(text: str, path: str) -> str | None:
    """What stands in JSON at a path such as `$.user.tags[0]`: a text as it is, other values as
    JSON; null where there is nothing, no JSON, or half of a surrogate pair.
    """
    try:
        value = items.parse_json(text)
    except ValueProblem:
        return None
    for step in _steps(path):
        match value, step:
            case dict(), str() if step in value:
                value = value[step]
            case list(), int() if step < len(value):
                value = value[step]
            case _:
                return None
    found = value if isinstance(value, str | None) else items.as_written(value, compact=True)
    try:
        to_item(found)
    except ValueProblem:
        return None  # half of a surrogate pair, which is escaped in JSON
    return found


@lru_cache(maxsize=256)
def _steps(path: str) -> tuple[str | int, ...]:
    """The names and places that a path consists of."""
    steps, at = list[str | int](), 1
    while path.startswith("$") and at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            break
        name, place, *quoted = found.groups()
        steps.append(int(place) if place else next(q for q in (name, *quoted) if q is not None))
        at = found.end()
    if not path.startswith("$") or at < len(path):
        raise ValueError(f"{path!r} is no path")
    return tuple(steps)


@JSON.strict(_of_item, ANYTHING, cost=costs.shown)
def to_json(value: Any) -> str:
    """The text in JSON of any item, without spaces.

    A row is an object; a tuple and an array are arrays; dates, timestamps and decimals are texts.
    """
    return _written(items.to_json(to_item(value)))


def _written(value: Any) -> str:
    return items.json_text(value, compact=True)
