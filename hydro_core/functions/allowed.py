"""Names that a function of a text program may use: builtins, and attributes by the type of the
value.

Functions are deterministic and depend on nothing but their arguments. So the lists say what is
allowed, never what is forbidden: a name or an attribute that is in no list is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any

from hydro_core.functions.library import registry
from hydro_core.functions.library.entry import bounded
from hydro_core.functions.library.registry import OF_TYPES
from hydro_core.functions.tree import position_of
from hydro_core.types.values import RowItem, describe

BUILTINS: Mapping[str, Any] = MappingProxyType(
    {name: bounded(name, e.function, e.cost) for name, e in registry.BUILTINS.items()}
)
METHODS: Mapping[type, frozenset[str]] = MappingProxyType(
    {
        kind: frozenset(name for name, entry in members.items() if entry.takes is not None)
        for kind, members in OF_TYPES.items()
    }
)
PROPERTIES: Mapping[type, frozenset[str]] = MappingProxyType(
    {kind: frozenset(members) - METHODS[kind] for kind, members in OF_TYPES.items()}
)
CLASS_ATTRIBUTES: Mapping[str, Any] = MappingProxyType(
    {name: entry.function for name, entry in registry.OF_CLASSES.items()} | dict(registry.CONSTANTS)
)
IMPURE: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(
        ("now", "today", "utcnow"),
        "functions are deterministic: give the time in as data, or use `tick()`",
    )
    | dict.fromkeys(("format", "format_map"), "`format` reaches into objects: use an f-string")
    | {
        "compile": 'a pattern stands where it is used: `re.search(r"\\d+", x)`',
        "IGNORECASE": "`(?i)` in front of a pattern",
        "escape": "`in`, `find` and `replace` take texts as they are",
    }
    | dict.fromkeys(
        (
            *("append", "extend", "insert", "pop", "remove", "sort", "reverse", "clear", "update"),
            *("add", "discard", "setdefault", "popitem"),
        ),
        "items are never changed: make a new one, as `xs + [x]` or `sorted(xs)` do",
    )
)
_IMPORTING = frozenset({"strftime", "decode"})
"""Methods that import a module of Python's own when they are called: see `times.strptime`."""
_TEXTS = "`in`, `startswith`, `split` and `replace` look into texts"
_NUMBERS = "`math.sqrt`, `round` and `//` are there"
_BOUND = "a flow in Python binds what it needs of them"
_MOMENT = "give the time or the random number in as data, or use `tick()`"
MODULES: Mapping[str, str] = MappingProxyType(
    {
        "string": f"{_TEXTS}, or {_BOUND}",
        **dict.fromkeys(("np", "numpy"), _NUMBERS),
        **dict.fromkeys(("random", "time", "uuid"), _MOMENT),
        "json": '`parse_json(text, "a long")`, `get_json_object` and `to_json` are there',
        "hashlib": "`sha256`, `md5` and `xxhash64` are there",
        **dict.fromkeys(("os", "sys", "itertools", "functools", "pd", "F"), _BOUND),
    }
)
"""Modules that people often ask for, and the replacement."""


def visible(name: str) -> bool:
    """True if an attribute may be written at all: `_1` may, `_x` and `__class__` may not."""
    return not name.startswith("_") or position_of(name) is not None


def attribute(value: Any, name: str) -> Any:
    """`value.name` as a function of a text program sees it: by the kind of the value.

    >>> attribute(RowItem(keys=1), "keys"), attribute((5, 6), "_2")
    (1, 6)
    """
    if isinstance(value, dict) and name in value and visible(name):
        return dict.__getitem__(value, name)
    place = position_of(name)
    if place is not None and isinstance(value, tuple) and place < len(value):
        return value[place]
    kind = type(value)
    if kind is type:
        return _of_class(value, name)
    if name in PROPERTIES.get(kind, ()):
        return getattr(value, name)
    if name in METHODS.get(kind, ()):
        return _method(value, name)
    if kind is RowItem:
        return (
            getattr(value, name) if visible(name) and name not in dir(dict) else _none(value, name)
        )
    return _none(value, name)


def _of_class(value: type, name: str) -> Any:
    whole = f"{value.__name__}.{name}"
    if BUILTINS.get(value.__name__) is value:
        if whole in CLASS_ATTRIBUTES:
            return CLASS_ATTRIBUTES[whole]
        if name in METHODS.get(value, ()):
            return lambda base, *args, **keywords: attribute(base, name)(*args, **keywords)
    raise AttributeError(f"{whole} cannot be used here")


def _method(value: Any, name: str) -> Callable[..., Any]:
    # These methods read the machine's own zone where the value names none.
    if isinstance(value, datetime) and value.tzinfo is None and name in ("timestamp", "astimezone"):
        cure = "`.replace(tzinfo=timezone.utc)` gives it one"
        raise ValueError(f"a timestamp without a zone has no `{name}`: {cure}")
    function = getattr(type(value), name)
    limited = bounded(name, function, OF_TYPES[type(value)][name].cost)
    method: Callable[..., Any] = (
        getattr(value, name) if limited is function else partial(limited, value)
    )
    if name in _IMPORTING:
        return lambda *args, **keywords: method(*args, **keywords)  # noqa: PLW0108 - called here
    return method


def _none(value: Any, name: str) -> Any:
    raise AttributeError(f"{describe(value)} has no {name!r}")
