"""Random programs on rows whose columns have the same names and different types or origins.

Different tables are joined, columns renamed, selected and computed, and filters may be moved.

Functions may fail on null, on what is within a value, or on every item: a plan must not fail where
the program does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

NAMES = ("v", "w", "v_r", "w_r")
TYPES = ("long", "long", "long", "string", "double", "decimal(9,2)", "array<long>")
ORDERED = {"long": "1", "string": "'a'", "double": "1.5", "decimal(9,2)": "1"}
Columns = dict[str, str]


@dataclass
class _Maker:
    rng: Random
    lines: list[str] = field(default_factory=list)
    streams: list[tuple[str, Columns]] = field(default_factory=list)

    def source(self) -> None:
        names = self.rng.sample(NAMES, self.rng.randint(1, 3))
        columns = {"k": "long"} | {name: self.rng.choice(TYPES) for name in names}
        fields = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        name = f"a{len(self.streams)}"
        self.lines.append(f'{name} = source("{fields}")')
        self.streams.append((name, columns))

    def step(self) -> None:
        name, columns = self.rng.choice(self.streams[-4:])
        made = f"s{len(self.streams)}"
        kinds = ("filter", "filter", "filter", "join", "join", "rename", "select", "compute")
        which = self.rng.choice((*kinds, "state", "union"))
        text, after = getattr(self, f"_{which}")(name, dict(columns))
        self.lines.append(f"{made} = {text}")
        self.streams.append((made, after))

    def _filter(self, name: str, columns: Columns) -> tuple[str, Columns]:
        parts = [self._test(columns) for _ in range(self.rng.choice((1, 1, 2, 3)))]
        word = self.rng.choice((" and ", " and ", " or "))
        return f"{name} -> filter(lambda r: {word.join(parts)})", columns

    def _test(self, columns: Columns) -> str:
        column, kind = self.rng.choice(sorted(columns.items()))
        value = f"r.{column}"
        tests = [
            f"{value} is not None",
            f"{value} == r.{self.rng.choice(sorted(columns))}",
            f"{value} in ({ORDERED.get(kind, '[1]')}, None)",
            f"(r is None or {value} is None)",
        ]
        if kind in ORDERED:
            limit = ORDERED[kind]
            tests += [
                f"{value} != {limit}",
                f"({value} is not None and {value} >= {limit})",
                f"({value} is None or {value} < {limit})",
                f"((y := {value}) is not None and y > {limit})",
                f"{value} > {limit}",
            ]
        if kind == "decimal(9,2)":
            tests.append(f"({value} is not None and {value} < float('nan'))")
        if kind == "array<long>":
            tests += [
                f"(None if {value} is None else {value}[0]) == 1",
                f"({value} is not None and {value} > [0])",
            ]
        if kind == "long":
            tests += [f"6 // {value} > 1", f"({value} or 0) > 0"]
        return self.rng.choice(tests)

    def _join(self, name: str, columns: Columns) -> tuple[str, Columns]:
        other, more = self.rng.choice(self.streams)
        how = self.rng.choice(("inner", "inner", "left", "right", "outer", "semi", "anti"))
        text = f'{name} -> join(right={other}, on="k", how="{how}", suffix="_r")'
        if how in ("semi", "anti"):
            return text, columns
        after = dict(columns)
        for column in (c for c in more if c != "k"):
            called = f"{column}_r" if column in columns else column
            if called in after:
                return self._filter(name, columns)
            after[called] = more[column]
        return text, after

    def _rename(self, name: str, columns: Columns) -> tuple[str, Columns]:
        old = self.rng.choice(sorted(c for c in columns if c != "k") or ["k"])
        free = [n for n in NAMES if n not in columns]
        if old == "k" or not free:
            return self._filter(name, columns)
        new = self.rng.choice(free)
        after = {(new if c == old else c): kind for c, kind in columns.items()}
        return f'{name} -> rename({new}="{old}")', after

    def _select(self, name: str, columns: Columns) -> tuple[str, Columns]:
        kept = [c for c in columns if c != "k" and self.rng.random() < 0.6]
        new, old = self.rng.choice(NAMES), self.rng.choice(sorted(columns))
        kept = [c for c in kept if c != new]
        listed = "".join(f'"{c}", ' for c in ("k", *kept))
        after = {c: columns[c] for c in ("k", *kept)} | {new: columns[old]}
        return f"{name} -> select({listed}{new}=lambda r: r.{old})", after

    def _compute(self, name: str, columns: Columns) -> tuple[str, Columns]:
        new, old = self.rng.choice(NAMES), self.rng.choice(sorted(columns))
        if columns[old] == "long" and self.rng.random() < 0.5:
            text = f"{name} -> with_columns({new}=lambda r: (r.{old} or 0) + 1)"
            return text, columns | {new: "long"}
        return f"{name} -> with_columns({new}=lambda r: r.{old})", columns | {new: columns[old]}

    def _state(self, name: str, columns: Columns) -> tuple[str, Columns]:
        forms = ["persist()", "persist()", "prev()", "window(2)", "unique()"]
        column = self.rng.choice(sorted(columns))
        if columns[column] in ORDERED:
            forms.append(f'persist() -> latest(by="k", order="{column}")')
        return f"{name} -> {self.rng.choice(forms)}", columns

    def _union(self, name: str, columns: Columns) -> tuple[str, Columns]:
        alike = [n for n, c in self.streams if list(c.items()) == list(columns.items())]
        made = f"u{len(self.streams)}"
        other = self.rng.choice(alike)
        self.lines.append(f"{made} = union(); {name} -> {made}; {other} -> {made}")
        return f"{made} -> identity()", columns


def hostile(seed: int, steps: int = 8) -> str:
    """The text of a program; every stream of it that nobody reads is an output."""
    maker = _Maker(Random(seed))
    for _ in range(maker.rng.randint(2, 3)):
        maker.source()
    for _ in range(steps):
        maker.step()
    ends = [name for name, _ in maker.streams[-3:]]
    lines = [*maker.lines]
    for number, name in enumerate(ends):
        end = maker.rng.choice(("", "", "delta() -> ", "changes() -> "))
        lines.append(f"{name} -> {end}out{number}")
    text = "\n".join(lines)
    unread = [n for n, _ in maker.streams if text.count(f"{n} ->") + text.count(f"right={n},") == 0]
    return "\n".join([text, *(f"{n} -> unread_{n}" for n in unread)])
