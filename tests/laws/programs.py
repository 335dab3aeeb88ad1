"""Random programs with random ticks: well typed, determined by a seed, of all operators or some.

program = random_program(7, only={"map", "persist", "delta"}) program.text, program.schemas,
program.ticks
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from tests.laws.templates import CYCLES, KINDS, TEMPLATES, Template

MOST_ITEMS = 200
"""Streams that may become larger than this are not made larger."""
BATCH = 5

Tick = dict[str, list[Any]]


@dataclass(frozen=True)
class RandomProgram:
    seed: int
    text: str
    schemas: dict[str, str]
    ticks: list[Tick]
    operators: frozenset[str]

    def __str__(self) -> str:
        ticks = "\n".join(map(str, self.ticks))
        return f"# seed {self.seed}, schemas {self.schemas}\n{self.text}\n{ticks}"


@dataclass
class _Stream:
    name: str
    kind: str
    ordered: bool
    size: int
    read: bool = False


@dataclass
class _Maker:
    rng: random.Random
    only: Collection[str] | None
    streams: list[_Stream] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    schemas: dict[str, str] = field(default_factory=dict)
    operators: set[str] = field(default_factory=set)
    count: int = 0

    def allows(self, *ops: str) -> bool:
        return self.only is None or set(ops) <= set(self.only)

    def name(self) -> str:
        self.count += 1
        return f"s{self.count}"

    def add(self, name: str, kind: str, ordered: bool, size: int) -> _Stream:
        stream = _Stream(name, kind, ordered, size)
        self.streams.append(stream)
        return stream

    def input(self, kind: str) -> _Stream:
        name = f"in{len(self.schemas)}"
        self.schemas[name] = KINDS[kind]
        return self.add(name, kind, ordered=False, size=BATCH)

    def pick(self, kind: str, most: int = MOST_ITEMS) -> _Stream:
        found = [s for s in self.streams if s.kind == kind and s.size <= most]
        # The younger a stream, the likelier it goes on: programs become deep, not wide.
        stream = self.rng.choice(found[-3:]) if found else self.input(kind)
        stream.read = True
        return stream


def random_program(
    seed: int, *, steps: int = 6, only: Collection[str] | None = None, cycles: bool = True
) -> RandomProgram:
    """A program of about `steps` steps, of the operators `only` (None: of all)."""
    maker = _Maker(random.Random(seed), only)
    rng = maker.rng
    for _ in range(rng.randint(1, 3)):
        maker.input(rng.choice(sorted(KINDS)))
    if maker.allows("source_iter") and rng.random() < 0.3:
        _source_iter(maker)
    if maker.allows("tick", "map") and rng.random() < 0.15:
        name = maker.name()
        maker.lines.append(f"{name} = tick() -> map(lambda r: r.tick % 3)")
        maker.operators |= {"tick", "map"}
        maker.add(name, "long", ordered=False, size=1)
    for _ in range(rng.randint(2, steps)):
        chance = rng.random()
        if cycles and chance < 0.12:
            _cycle(maker)
        elif chance < 0.17:
            _partition(maker)
        else:
            _step(maker)
    _sinks(maker)
    schemas = dict(maker.schemas)
    if maker.allows("source"):
        for name in [n for n in schemas if rng.random() < 0.2]:
            maker.lines.append(f'{name} = source("{schemas.pop(name)}")')
            maker.operators.add("source")
    rng.shuffle(maker.lines)
    ticks = [_tick(rng, maker.schemas) for _ in range(rng.randint(1, 5))]
    text = "\n".join(maker.lines) + "\n"
    return RandomProgram(seed, text, schemas, ticks, frozenset(maker.operators | {"sink"}))


def template_program(template: Template) -> tuple[str, dict[str, str]]:
    """A program of the template alone, from `a` (and `b`) to `out`, and its inputs' schemas."""
    names = ("a", "b")[: len(template.takes)]
    schemas = {
        n: KINDS["long" if k == "single" else k] for n, k in zip(names, template.takes, strict=True)
    }
    sort = " -> sort()" if template.needs else ""
    lines = [f"b1 = b{sort}"] if len(names) == 2 else []
    if template.takes[-1] == "single":
        lines = ["b1 = b -> reduce(lambda x, y: max(x or 0, y or 0), commutative=True)"]
    step = template.text.replace("{b}", "b1")
    lines.append(f"a{sort} -> {step} -> out")
    return "\n".join(lines), schemas


def random_batch(rng: random.Random, kind: str, most: int = BATCH) -> list[Any]:
    """Some items of a kind as JSON values: few different ones, so that many are equal."""
    items = [_value(rng, kind) for _ in range(rng.randint(0, most))]
    return items + rng.sample(items, rng.randint(0, min(2, len(items))))


def _source_iter(maker: _Maker) -> None:
    name = maker.name()
    items = [maker.rng.randint(-1, 4) for _ in range(maker.rng.randint(0, 3))]
    maker.lines.append(f'{name} = source_iter({items}, schema="long")')
    maker.operators.add("source_iter")
    maker.add(name, "long", ordered=False, size=len(items))


def _partition(maker: _Maker) -> None:
    """Splits a stream of longs; one part may be discarded."""
    if not maker.allows("partition", "null", "filter"):
        return
    source, name = maker.pick("long"), maker.name()
    f, ports = maker.rng.choice(
        [
            ('lambda x: "yes" if (x or 0) > 0 else "no"', ("yes", "no")),
            ("lambda x: (x or 0) % 3", ("0", "1", "2")),
        ]
    )
    shown = ", ".join(port if port.isdigit() else f'"{port}"' for port in ports)
    maker.lines.append(f"{name} = {source.name} -> partition({f}, [{shown}])")
    maker.operators.add("partition")
    for port in ports:
        if maker.rng.random() < 0.2:
            maker.lines.append(f"{name}[{port}] -> null()")
            maker.operators.add("null")
        else:
            part = f"{name}{port}"
            maker.lines.append(f"{part} = {name}[{port}] -> filter(lambda x: x != 9)")
            maker.operators.add("filter")
            maker.add(part, "long", source.ordered, source.size)


def _step(maker: _Maker) -> None:
    rng = maker.rng
    kinds = {s.kind for s in maker.streams} | {"single"}
    fitting = [
        t
        for t in TEMPLATES
        if set(t.takes) <= kinds
        and maker.allows(*_operators_of(t.text, t.op))
        and (not t.needs or maker.allows("sort"))
    ]
    if not fitting:
        return
    op = rng.choice(sorted({t.op for t in fitting}))
    template = rng.choice([t for t in fitting if t.op == op])
    _apply(maker, template)


def _apply(maker: _Maker, template: Template) -> None:
    most = MOST_ITEMS // template.grows if template.grows else 12
    inputs = [
        _single(maker) if kind == "single" else maker.pick(kind, most) for kind in template.takes
    ]
    first, ordered = inputs[0], inputs[0].ordered
    name = maker.name()
    sort = ""
    if template.needs and not first.ordered:
        sort, ordered = "sort() -> ", True
    second = inputs[1].name if len(inputs) > 1 else ""
    if template.needs and second and not inputs[1].ordered:
        second = f"{name}b"
        maker.lines.append(f"{second} = {inputs[1].name} -> sort()")
    maker.operators |= _operators_of(template.text, template.op) | (
        {"sort"} if sort or template.needs else set()
    )
    step = template.text.replace("{b}", second)
    maker.lines.append(f"{name} = {first.name} -> {sort}{step}")
    sizes = [s.size for s in inputs]
    size = sizes[0] * sizes[-1] if template.grows == 0 else sum(sizes) * template.grows
    ordered = {"keeps": ordered, "gives": True, "loses": False}[template.order]
    maker.add(name, template.gives, ordered, max(1, size))


def _single(maker: _Maker) -> _Stream:
    source = maker.pick("long")
    name = maker.name()
    how = maker.rng.choice(
        [
            ("reduce", "reduce(lambda x, y: max(x or 0, y or 0), commutative=True)"),
            ("fold", "fold(0, lambda acc, x: acc + (x or 0), commutative=True)"),
        ]
    )
    maker.operators.add(how[0])
    maker.lines.append(f"{name} = {source.name} -> {how[1]}")
    return maker.add(name, "long", ordered=False, size=1)


def _cycle(maker: _Maker) -> None:
    fitting = [c for c in CYCLES if maker.allows(*c.operators)]
    if not fitting:
        return
    cycle = maker.rng.choice(fitting)
    kind, text, operators = cycle.kind, cycle.text, cycle.operators
    most = 6 if "cross" in operators else 40
    name, first = maker.name(), maker.pick(kind, most)
    second = maker.pick(kind, most) if "{b}" in text else first
    maker.lines.append(
        text.replace("{s}", name).replace("{a}", first.name).replace("{b}", second.name)
    )
    maker.operators |= operators
    maker.add(name, kind, ordered=False, size=MOST_ITEMS // 2)


def _sinks(maker: _Maker) -> None:
    """Everything that nobody reads is an output, and some of the rest."""
    outputs = [s for s in maker.streams if not s.read or maker.rng.random() < 0.15]
    for number, stream in enumerate(outputs):
        form = "{} -> out{}" if maker.rng.random() < 0.5 else '{} -> sink("out{}")'
        maker.lines.append(form.format(stream.name, number))


def _operators_of(text: str, op: str) -> set[str]:
    """The operators of a template's text: what is called outside of brackets."""
    found, depth, word = {op}, 0, ""
    for char in text:
        if char == "(":
            if depth == 0:
                found.add(word)
            depth += 1
        elif char == ")":
            depth -= 1
        word = word + char if char.isalpha() or char == "_" else ""
    return found


def _tick(rng: random.Random, schemas: dict[str, str]) -> Tick:
    kinds = {schema: kind for kind, schema in KINDS.items()}
    return {
        name: random_batch(rng, kinds[schema])
        for name, schema in schemas.items()
        if rng.random() < 0.85
    }


def _value(rng: random.Random, kind: str) -> Any:
    if rng.random() < 0.08 and kind in ("long", "text", "array"):
        return None
    match kind:
        case "long":
            return rng.randint(-2, 4)
        case "text":
            return rng.choice("abc")
        case "pair":
            return [_value(rng, "long"), _value(rng, "long")]
        case "named":
            return [_value(rng, "text"), _value(rng, "long")]
        case "row":
            row = {"k": _value(rng, "text"), "v": _value(rng, "long"), "w": _value(rng, "long")}
            return {name: value for name, value in row.items() if rng.random() < 0.95}
        case _:
            return [_value(rng, "long") for _ in range(rng.randint(0, 3))]
