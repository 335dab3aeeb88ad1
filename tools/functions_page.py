"""What functions of text programs may contain: `docs/functions.md` is what `page()` gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping

from hydro_core.functions.allowed import (
    BUILTINS,
    CLASS_ATTRIBUTES,
    IMPURE,
    METHODS,
    MODULES,
    PROPERTIES,
)
from hydro_core.functions.library.entry import Operation
from hydro_core.functions.library.regex import RE
from hydro_core.functions.library.registry import DATA_FUNCTIONS

_SPARKS = ("coalesce", "greatest", "least")
"""Of these the compiler of columns itself knows the expression."""
_OF_DATA = """\
A flow in Python takes them of `hydro_core.fn`. A null among what they are given gives null, as in
SQL, where Python's own fail; the docstrings of `coalesce`, `greatest`, `least`, `nullif` and
`concat_ws` say what they make of one. Arguments may be given by their names. On Spark those marked
`*` are expressions of Spark's own, where they are given what these know exactly; the others run in
Python.

A time zone has its name in the tz database. Where clocks are set back, a time by them that comes
twice is the first; where they skip a time, it is as much later. `to_zone(r.at, "Europe/Berlin")`
is a `timestamp_ntz`, so that `to_zone(…).hour` is the hour there.

Windows of event time are columns, to aggregate by: of 15 minutes with `window_start(r.at, "15m")`,
of Berlin's days as here. A row is in several windows that hop, and `hop` gives an array:
`flat_map(lambda r: [(start, r.page) for start in hop(r.at, "1h", "30m")])`.

```hydrotick
clicks = source("at timestamp")
clicks
  -> with_columns(day=lambda r: window_start(r.at, "1d", zone="Europe/Berlin"))
  -> aggregate(by="day", n=count())
  -> map(lambda r: (r.day, r.n))
  -> days
# tick 0: clicks [{"at": "2026-03-01T23:40:00Z"}] gives days [["2026-03-01T23:00:00Z", 1]]
```
"""
_OF_RE = """\
A flow in Python takes `re` of `hydro_core.fn`, not Python's own. A pattern is a constant in the
syntax of RE2, checked when the program is read; a search takes time linear in the text. To RE2
`\\d`, `\\w`, `\\s` and `\\b` are those of ASCII, `$` is the end of the text alone, and there are
no back-references and no looking around. After an empty match the search goes on a character
further. Of a match, `m.group(1)`, `m["name"]`, `m.groups()` and `m.groupdict()` have types; it is
no item, so `re.search(…) is not None`, or `regexp_like`, is what filters. A null gives null.

```hydrotick
lines = source("string")
lines
  -> filter_map(lambda line: (m := re.search(r"(?P<who>\\w+) paid (\\d+)", line)) and m.groups())
  -> payments
# tick 0: lines ["ann paid 5", "bob left"] gives payments [["ann", "5"]]
```
"""
_HEAD = """\
# Functions

Written from the lists of what is allowed (`hydro_core/functions/library/`) by `make docs`. What
stands nowhere here is refused when the program is read, on either engine; the rules that functions
follow are in [language.md](language.md#functions).

In text programs a function is an expression of Python:

- constants, names, `x.field`, `x["field"]`, `x[0]`, slices, calls with positional, named and
  starred arguments;
- `+ - * / // % ** & | ^ << >> ~`, comparisons and their chains, `in`, `is`, `and`, `or`, `not`;
- `a if p else b`, tuples, lists, sets, dicts, comprehensions, generator expressions, f-strings,
  lambdas, `(name := value)`.

```hydrotick
words = source("string")
words
  -> map(lambda w: w.strip().lower())
  -> filter(lambda w: w.isalpha() and len(w) > 1)
  -> map(lambda w: (w, sum([1 for c in w if c in "aeiou"]), f"{w[0]}{len(w)}"))
  -> counted
# tick 0: words [" Tick ", "a", "42"] gives counted [["tick", 1, "t4"]]
```

A flow in Python takes `def`s too, with assignments, `if`, `for`, `match`, `assert` and `raise`, and
whatever they close over, which counts as constant. One whose source cannot be read, or that uses
something else, is called as it is; then its result type is given: `returns="long"`.
"""


def page() -> str:
    """The whole page, in Markdown."""
    return "\n".join(
        [
            _HEAD,
            "## Builtins\n",
            f"{_listed(name for name in BUILTINS if name not in DATA_FUNCTIONS)}.\n",
            "## Of data\n",
            _OF_DATA,
            _table(["function", "gives"], _entries(DATA_FUNCTIONS)),
            "## Of `re`\n",
            _OF_RE,
            _table(["function", "gives"], _entries(RE)),
            "## Of values\n",
            _table(["type", "methods", "properties"], _of_values()),
            "## Of types\n",
            f"{_listed(_of_types())}.\n",
            "## Of `math`\n",
            "A flow in Python imports it.\n",
            f"{_listed(name for name in CLASS_ATTRIBUTES if name.startswith('math.'))}.\n",
            "## What is asked for, and not there\n",
            _table(["written", "instead"], _instead()),
        ]
    )


def _of_types() -> list[str]:
    return [name for name in CLASS_ATTRIBUTES if not name.startswith(("math.", "re."))]


def _of_values() -> list[list[str]]:
    names = {"Struct": "tuple of an item", "RowItem": "row", "Match": "a match"}
    rows = []
    for kind, methods in METHODS.items():
        properties = PROPERTIES.get(kind, frozenset())
        if methods or properties:
            shown = names.get(kind.__name__, f"`{kind.__name__}`")
            rows.append([shown, _listed(sorted(methods)), _listed(sorted(properties))])
    return rows


def _entries(entries: Mapping[str, Operation]) -> list[list[str]]:
    """Each function as it is called, and the first sentence of its docstring."""
    rows = []
    for name, entry in entries.items():
        first = " ".join(str(entry.function.__doc__).split("\n\n")[0].split())
        mark = " \\*" if entry.column is not None or name in _SPARKS else ""
        rows.append([f"`{name}{_called(entry.function)}`{mark}", first.rstrip(".")])
    return rows


def _called(function: Callable[..., object]) -> str:
    parameters = inspect.signature(function).parameters.values()
    return f"({', '.join(map(_parameter, parameters))})"


def _parameter(parameter: inspect.Parameter) -> str:
    name = str(parameter).partition(":")[0].partition("=")[0]
    return name if parameter.default is parameter.empty else f"{name}={parameter.default!r}"


def _instead() -> list[list[str]]:
    by_cure: dict[str, list[str]] = {}
    for names in (IMPURE, MODULES):
        for name, cure in names.items():
            by_cure.setdefault(cure, []).append(name)
    return [[_listed(names), cure] for cure, names in by_cure.items()]


def _listed(names: Iterable[str] | Mapping[str, object]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "–"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
