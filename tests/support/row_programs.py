"""Random programs over rows, a statement for each operator, so that they can be edited.

A program is a list of steps; its text is what they say, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

SOURCES: Mapping[str, tuple[str, ...]] = {
    "a": ("k", "v", "w"),
    "b": ("k", "v", "w"),
    "c": ("k", "z"),
}
KEEPS = ("persist", "old", "prev", "delta", "unique", "window", "filter", "sorted", "latest")
"""Operators that give rows as they get them."""
SUMS = ("union", "chain", "difference")
AGGREGATES = ("count()", 'count("{c}")', 'sum("{c}")', 'max("{c}")', 'min("{c}")', 'avg("{c}")')
AGGREGATES_OF_TEXT = tuple(c for c in AGGREGATES if not c.startswith(("sum", "avg")))
EXPRESSIONS = ("(r.{c} or 0) + {n}", "r.{c}", "1 if r.{c} is None else {n}", "-(r.{c} or {n})")
SORTS = ("(r.{c} or 0, r.{d} or 0)", "-(r.{c} or 0)", "r.{c} or {n}")


@dataclass(frozen=True)
class Step:
    """One operator: a statement `name = input -> operator(…)`."""

    name: str
    op: str
    inputs: tuple[str, ...]
    args: Mapping[str, Any] = field(default_factory=dict)

    def with_(self, **args: Any) -> Step:
        """The step with some arguments replaced."""
        return replace(self, args={**self.args, **args})

    def reading(self, old: str, new: str) -> Step:
        """The step, reading another stream in the place of one."""
        return replace(self, inputs=tuple(new if i == old else i for i in self.inputs))

    def __str__(self) -> str:
        first, *others = self.inputs
        return f"{self.name} = {first} -> {self._call(*others)}"

    def _call(self, *others: str) -> str:
        write = CALLS.get(self.op)
        return write(self.args, others) if write else f"{self.op}()"


Args = Mapping[str, Any]
Others = tuple[str, ...]


def _folded(args: Args, _: Others) -> str:
    text = f"lambda s, r: s * {args['n']} + (r.{args['c']} or 0)"
    ordered = f"sort_by_key(lambda r: {args['key']})"
    return f'{ordered} -> fold(0, {text}) -> map(lambda s: {{"v": s}})'


def _aggregated(args: Args, _: Others) -> str:
    made = ", ".join(f"{name}={call}" for name, call in args["made"])
    by = f"by=[{_quoted(args['by'])}], " if args["by"] else ""
    return f"aggregate({by}{made})"


def _mapped(args: Args, _: Others) -> str:
    pairs = ", ".join(f'"{c}": r.{c}' for c in args["columns"])
    return f"map(lambda r: {{{pairs}}})"


CALLS: Mapping[str, Callable[[Args, Others], str]] = {
    "filter": lambda args, _: f"filter(lambda {args.get('row', 'r')}: {args['p']})",
    "select": lambda args, _: f"select({_quoted(args['columns'])})",
    "drop": lambda args, _: f"drop({_quoted(args['columns'])})",
    "map": _mapped,
    "rename": lambda args, _: f'rename({args["new"]}="{args["old"]}")',
    "compute": lambda args, _: f"with_columns({args['new']}=lambda r: {args['e']})",
    "window": lambda args, _: f"window({args['n']})",
    "sorted": lambda args, _: f"sort_by_key(lambda r: {args['key']}) -> limit({args['n']})",
    "latest": lambda args, _: f'latest(by="{args["by"]}", order="{args["order"]}")',
    "folded": _folded,
    "aggregate": _aggregated,
    "join": lambda args, o: f'join(right={o[0]}, on="{args["on"]}", how="{args["how"]}")',
    "union": lambda _, o: f"union({', '.join(o)})",
    "chain": lambda _, o: f"chain(right={o[0]})",
    "difference": lambda _, o: f"difference(neg={o[0]})",
}
"""How an operator with arguments is written."""


@dataclass(frozen=True)
class Program:
    """Steps, and the streams that are outputs, by the outputs' names."""

    steps: tuple[Step, ...]
    outputs: Mapping[str, str]

    def __str__(self) -> str:
        sources = [
            f'{name} = source("{", ".join(f"{c} {_type(c)}" for c in columns)}")'
            for name, columns in SOURCES.items()
        ]
        sinks = [f'{stream} -> sink("{name}")' for name, stream in self.outputs.items()]
        return "\n".join([*sources, *map(str, self.steps), *sinks]) + "\n"

    def __getitem__(self, name: str) -> Step | None:
        return next((s for s in self.steps if s.name == name), None)

    def readers(self, name: str) -> tuple[Step, ...]:
        """The steps that read a stream."""
        return tuple(s for s in self.steps if name in s.inputs)

    def is_read_once(self, name: str) -> bool:
        """Whether one step reads the stream, and no output."""
        reads = sum(s.inputs.count(name) for s in self.steps)
        return reads == 1 and name not in self.outputs.values()

    def replacing(self, step: Step, *others: Step) -> Program:
        """The program with other steps in the place of one."""
        at = self.steps.index(step)
        return replace(self, steps=(*self.steps[:at], *others, *self.steps[at + 1 :]))

    def fresh(self) -> Iterator[str]:
        """Names that are not taken."""
        taken = {s.name for s in self.steps} | SOURCES.keys()
        number = 0
        while True:
            number += 1
            if f"t{number}" not in taken:
                yield f"t{number}"

    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """The columns of every stream, as far as they follow from its inputs."""
        found = dict(SOURCES)
        for _ in self.steps:
            for step in self.steps:
                if step.name not in found and step.inputs[0] in found:
                    made = columns_of(step, found)
                    if made is not None:
                        found[step.name] = made
        return found


def columns_of(step: Step, known: Mapping[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """The columns that a step gives; None where an input's are not known yet."""
    if any(i not in known for i in step.inputs[1:]) and step.op == "join":
        return None
    own = known[step.inputs[0]]
    made = MAKES.get(step.op)
    return made(own, step.args, [known.get(i, ()) for i in step.inputs]) if made else own


Columns = tuple[str, ...]


def _joined(own: Columns, args: Args, inputs: Sequence[Columns]) -> Columns:
    if args["how"] in {"semi", "anti"}:
        return own
    return (*own, *(c for c in inputs[1] if c != args["on"]))


MAKES: Mapping[str, Callable[[Columns, Args, Sequence[Columns]], Columns]] = {
    "select": lambda own, args, _: tuple(args["columns"]),
    "map": lambda own, args, _: tuple(args["columns"]),
    "drop": lambda own, args, _: tuple(c for c in own if c not in args["columns"]),
    "rename": lambda own, args, _: tuple(args["new"] if c == args["old"] else c for c in own),
    "compute": lambda own, args, _: own if args["new"] in own else (*own, args["new"]),
    "aggregate": lambda own, args, _: (*args["by"], *(name for name, _ in args["made"])),
    "folded": lambda own, args, _: ("v",),
    "join": _joined,
}
"""What an operator makes of the columns that it gets, where it changes them."""


def random_program(rng: Random, size: int) -> Program:
    """A program of so many steps and one to three outputs."""
    steps: list[Step] = []
    known = dict(SOURCES)
    for name in SOURCES:
        if rng.random() < 0.6:
            steps.append(Step(f"{name}h", "persist", (name,)))
            known[f"{name}h"] = known[name]
    if rng.random() < 0.2:
        steps += _cycle(rng)
        known |= {"x": known["a"], "y": known["a"]}
    if rng.random() < 0.3:
        steps += _news(rng)
        known |= {"first": known["a"], "news": known["a"]}
    for number in range(size):
        step = random_step(rng, f"s{number}", known)
        made = columns_of(step, known)
        if made is not None:
            steps.append(step)
            known[step.name] = made
    ends = [s.name for s in steps[-5:]]
    outputs = {f"out{i}": rng.choice(ends) for i in range(rng.randint(1, 3))}
    return Program(tuple(steps), outputs)


def _cycle(rng: Random) -> tuple[Step, ...]:
    """What comes back a tick later, as far as it passes."""
    return (
        Step("x", "union", ("a", "y")),
        Step("before", "prev", ("x",)),
        Step("y", "filter", ("before",), {"p": predicate(rng, SOURCES["a"])}),
    )


def _news(rng: Random) -> tuple[Step, ...]:
    """What was never there before."""
    return (
        Step("all", "persist", (rng.choice(("a", "b")),)),
        Step("first", "unique", ("all",)),
        Step("news", "delta", ("first",)),
    )


def random_step(rng: Random, name: str, known: Mapping[str, Columns]) -> Step:
    """A step on some of the streams; what comes late is read more often."""
    streams = list(known)
    read = rng.choice(streams[-6:] if rng.random() < 0.7 else streams)
    op = rng.choice(OFTEN)
    if op == "join":
        return _join(rng, name, read, known)
    if op in SUMS:
        return Step(name, op, (read, rng.choice([s for s in streams if known[s] == known[read]])))
    make = MADE.get(op)
    args = make(rng, known[read]) if make else {}
    return Step(name, "persist", (read,)) if args is None else Step(name, op, (read,), args)


OFTEN = (
    *KEEPS,
    *KEEPS,
    *SUMS,
    *("filter", "select", "map", "drop", "rename", "compute", "folded"),
    *("aggregate", "aggregate", "join", "join", "join"),
)


def _sorted(rng: Random, own: Columns) -> Args:
    if not numbers(own):
        return {"key": sort_key(rng, own), "n": rng.randint(1, 3)}
    one, other = number_of(rng, own), number_of(rng, own)
    key = rng.choice(SORTS).format(c=one, d=other, n=rng.randint(0, 2))
    return {"key": key, "n": rng.randint(1, 3)}


def _kept(rng: Random, own: Columns) -> Args:
    column = rng.choice(own)
    return {"columns": tuple(c for c in own if c == column or rng.random() < 0.6)}


def _dropped(rng: Random, own: Columns) -> Args | None:
    return {"columns": (rng.choice(own),)} if len(own) > 1 else None


def _renamed(rng: Random, own: Columns) -> Args | None:
    numbers = [c for c in own if c != "w"]
    return {"new": "q", "old": rng.choice(numbers)} if numbers and "q" not in own else None


def _computed(rng: Random, own: Columns) -> Args | None:
    if not numbers(own):
        return None
    text = rng.choice(EXPRESSIONS).format(c=number_of(rng, own), n=rng.randint(0, 2))
    return {"new": rng.choice(("e", "v")), "e": text}


def _grouped(rng: Random, own: Columns) -> Args:
    by = (rng.choice(own),) if rng.random() < 0.8 else ()
    return {"by": by, "made": random_aggregates(rng, own)}


def _fold(rng: Random, own: Columns) -> Args | None:
    if not numbers(own):
        return None
    column = number_of(rng, own)
    return {"c": column, "n": 2, "key": f"r.{column} or 0"}


MADE: Mapping[str, Callable[[Random, Columns], Args | None]] = {
    "filter": lambda rng, own: {"p": predicate(rng, own)},
    "window": lambda rng, own: {"n": rng.randint(2, 3)},
    "sorted": _sorted,
    "latest": lambda rng, own: {"by": rng.choice(own), "order": number_of(rng, own)},
    "select": _kept,
    "map": _kept,
    "drop": _dropped,
    "rename": _renamed,
    "compute": _computed,
    "aggregate": _grouped,
    "folded": _fold,
}
"""Random arguments; None where an operator does not fit the columns."""


def _join(rng: Random, name: str, read: str, known: Mapping[str, Columns]) -> Step:
    own = known[read]
    how = rng.choice(("inner", "inner", "left", "right", "outer", "semi", "anti"))
    fitting = [
        s
        for s in known
        if {*own} & {*known[s]} and (how in {"semi", "anti"} or len({*own} & {*known[s]}) == 1)
    ]
    if not fitting:
        return Step(name, "unique", (read,))
    other = rng.choice(fitting)
    on = rng.choice([c for c in own if c in known[other]])
    return Step(name, "join", (read, other), {"on": on, "how": how})


def random_aggregates(rng: Random, own: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """One to three aggregates of numbers."""
    names = [n for n in ("n", "s", "m") if n not in own][: rng.randint(1, 3)] or ["n1"]
    calls = AGGREGATES if numbers(own) else AGGREGATES_OF_TEXT
    return tuple((n, rng.choice(calls).format(c=number_of(rng, own))) for n in names)


def sort_key(rng: Random, own: Sequence[str]) -> str:
    """What rows are sorted by, with nulls among their values."""
    column = number_of(rng, own)
    return f"r.{column} or 0" if numbers(own) else f'r.{column} or ""'


def numbers(own: Sequence[str]) -> list[str]:
    """The columns of numbers."""
    return [c for c in own if c != "w"]


def number_of(rng: Random, own: Sequence[str]) -> str:
    """A column of numbers, if there is one."""
    return rng.choice(numbers(own) or list(own))


def predicate(rng: Random, own: Sequence[str]) -> str:
    """A test of a row, or two."""
    if rng.random() < 0.2:
        return f"({_test(rng, own)}) and ({_test(rng, own)})"
    return _test(rng, own)


def _test(rng: Random, own: Sequence[str]) -> str:
    column, n = rng.choice(own), rng.randint(0, 3)
    if column == "w":
        return rng.choice((f'r.w == "{"abcd"[n]}"', "r.w is not None"))
    return rng.choice(
        (
            f"r.{column} == {n}",
            f"r.{column} is not None and r.{column} > {n}",
            f"r.{column} is None",
            f"(r.{column} or 0) >= {n}",
            f"r.{column} != {n}",
        )
    )


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{n}"' for n in names)


def _type(column: str) -> str:
    return "string" if column == "w" else "long"
