"""The catalogue's columns are true, on random ticks of every template that stands alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from hydro_core.catalog.registry import CATALOG
from hydro_core.catalog.spec import Barrier, OpSpec, State
from hydro_core.ir.graph import Node
from hydro_core.lang.resolve import parse
from tests.laws import running
from tests.laws.programs import random_batch, template_program
from tests.laws.templates import KINDS, TEMPLATES, Template

Tick = dict[str, list[Any]]
TRIES = 6
ALONE = [template for template in TEMPLATES if template.alone]
JOINT = {"union", "chain"}
"""Linear in all inputs together: op(x + y, z + w) = op(x, z) + op(y, w)."""


@cache
def node_of(template: Template) -> Node:
    return next(n for n in parse(template_program(template)[0]) if n.op.name == template.op)


def spec_of(template: Template) -> OpSpec:
    return node_of(template).spec


def run(template: Template, ticks: Sequence[Tick]) -> list[list[Any]]:
    program, schemas = template_program(template)
    return [tick["out"] for tick in running.run(program, schemas, ticks)]


def bag(items: list[Any]) -> Counter[str]:
    return Counter(map(repr, items))


def random_ticks(rng: random.Random, template: Template, count: int = 4) -> list[Tick]:
    return [
        {
            name: random_batch(rng, "long" if kind == "single" else kind)
            for name, kind in zip("ab", template.takes, strict=False)
        }
        for _ in range(count)
    ]


def added(x: Tick, y: Tick, names: Sequence[str]) -> Tick:
    return {n: x[n] + y[n] if n in names else x[n] for n in x}


def tries(template: Template) -> list[random.Random]:
    return [random.Random(f"{template}{n}") for n in range(TRIES)]


@pytest.mark.parametrize("template", ALONE, ids=str)
def test_zero(template: Template) -> None:
    if spec_of(template).zero:
        empty: Tick = {name: [] for name in template_program(template)[1]}
        assert run(template, [empty, empty]) == [[], []]
    else:
        assert len(run(template, [{}])[0]) == 1


@pytest.mark.parametrize("template", ALONE, ids=str)
def test_linear(template: Template) -> None:
    linear = [
        name for name, port in zip("ab", spec_of(template).inputs, strict=False) if port.linear
    ]
    if template.op in JOINT:
        together = [["a", "b"]]
    else:
        together = [[name] for name in linear if name in template_program(template)[1]]
    for names in together:
        for rng in tries(template):
            xs, ys = random_ticks(rng, template), random_ticks(rng, template)
            ys = [{n: y[n] if n in names else x[n] for n in x} for x, y in zip(xs, ys, strict=True)]
            both = run(template, [added(x, y, names) for x, y in zip(xs, ys, strict=True)])
            apart = zip(run(template, xs), run(template, ys), strict=True)
            assert [*map(bag, both)] == [bag(x) + bag(y) for x, y in apart]


@pytest.mark.parametrize("template", [t for t in ALONE if spec_of(t).idempotent], ids=str)
def test_idempotent(template: Template) -> None:
    for rng in tries(template):
        ticks = random_ticks(rng, template)
        assert run(template, [added(x, x, ["a"]) for x in ticks]) == run(template, ticks)


@pytest.mark.parametrize("template", [t for t in ALONE if spec_of(t).monotone], ids=str)
def test_monotone(template: Template) -> None:
    """What does not block in a tick may stand in a cycle, so it has to be monotone there."""
    names = [
        name
        for name, port in zip("ab", spec_of(template).inputs, strict=False)
        if port.barrier is Barrier.NONE
    ]
    for rng in tries(template):
        xs, ys = random_ticks(rng, template), random_ticks(rng, template)
        more = run(template, [added(x, y, names) for x, y in zip(xs, ys, strict=True)])
        assert all(bag(a) <= bag(b) for a, b in zip(run(template, xs), more, strict=True))


@pytest.mark.parametrize("template", ALONE, ids=str)
def test_what_does_not_block_is_monotone(template: Template) -> None:
    spec = spec_of(template)
    if any(port.barrier is Barrier.NONE for port in spec.inputs) and not spec.monotone:
        # only in the inputs that do not block, the others being as they are
        test_monotone(template)


@pytest.mark.parametrize("template", ALONE, ids=str)
def test_time_invariant(template: Template) -> None:
    for rng in tries(template)[:4]:
        ticks = random_ticks(rng, template)
        assert run(template, [{}, *ticks])[1:] == run(template, ticks)


@pytest.mark.parametrize("template", ALONE, ids=str)
def test_state(template: Template) -> None:
    """A stateless operator sees its tick alone, one that knows the tick before sees two."""
    node = node_of(template)
    seen = {
        State.NONE: 1,
        State.LAST: 2,
        State.WINDOW: node.args.get("n"),
        State.HISTORY: None,
        State.RESULT: None,
        State.RECENT: None,
    }[node.spec.state]
    for rng in tries(template)[:4] if seen else ():
        ticks = random_ticks(rng, template)
        alone = [run(template, ticks[max(0, t + 1 - seen) : t + 1])[-1] for t in range(len(ticks))]
        assert alone == run(template, ticks)


@pytest.mark.parametrize("template", [t for t in ALONE if spec_of(t).single], ids=str)
def test_single(template: Template) -> None:
    for rng in tries(template):
        assert all(len(items) <= 1 for items in run(template, random_ticks(rng, template)))


def test_every_operator_has_a_template() -> None:
    elsewhere = {"source", "source_iter", "tick", "sink", "null", "partition"}
    public = {name for name, spec in CATALOG.items() if not getattr(spec, "internal", False)}
    assert public == {t.op for t in TEMPLATES} | elsewhere


def test_kinds_are_as_they_say() -> None:
    assert {kind for t in TEMPLATES for kind in (*t.takes, t.gives)} <= {*KINDS, "single"}
