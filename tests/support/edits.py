"""Edits of programs over rows that change their words alone.

An edit gives another program, or None where it does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from tests.support.row_programs import Program, Step

Edit = Callable[[Program, Random], Program | None]
ITEMWISE = ("persist", "old", "prev", "window", "unique", "delta")
"""A filter may go before these as it is."""


def any_step(program: Program, rng: Random, *ops: str) -> Step | None:
    """A step with one of these operators, if there is one."""
    found = [s for s in program.steps if s.op in ops]
    return rng.choice(found) if found else None


def renamed(program: Program, rng: Random) -> Program:
    """Every stream is called something else."""
    names = {s.name: f"{rng.choice('fgh')}{i}" for i, s in enumerate(program.steps)}
    steps = tuple(
        replace(s, name=names[s.name], inputs=tuple(names.get(i, i) for i in s.inputs))
        for s in program.steps
    )
    return Program(steps, {name: names.get(s, s) for name, s in program.outputs.items()})


def reordered(program: Program, rng: Random) -> Program:
    """The statements stand in another order."""
    return replace(program, steps=tuple(rng.sample(program.steps, len(program.steps))))


def filtered_earlier(program: Program, rng: Random) -> Program | None:
    """A filter goes before what it comes after."""
    late = [s for s in program.steps if s.op == "filter" and program.is_read_once(s.inputs[0])]
    late = [s for s in late if program[s.inputs[0]] is not None]
    if not late:
        return None
    last = rng.choice(late)
    first = program[last.inputs[0]]
    assert first is not None
    name = next(program.fresh())
    if first.op in ITEMWISE or (first.op == "join" and first.args["how"] in {"semi", "anti"}):
        asked = replace(last, name=name, inputs=first.inputs[:1])
        moved = replace(first, name=last.name, inputs=(name, *first.inputs[1:]))
        return program.replacing(first).replacing(last, asked, moved)
    if first.op in {"union", "chain"}:
        names = [f"{name}_{i}" for i in range(len(first.inputs))]
        parts = [
            replace(last, name=n, inputs=(i,)) for n, i in zip(names, first.inputs, strict=True)
        ]
        summed = replace(first, name=last.name, inputs=tuple(names))
        return program.replacing(first).replacing(last, *parts, summed)
    return None


def filters_apart(program: Program, rng: Random) -> Program | None:
    """A filter that asks twice becomes two, in either order."""
    both = [s for s in program.steps if s.op == "filter" and ") and (" in s.args["p"]]
    if not both:
        return None
    step = rng.choice(both)
    tests = step.args["p"].split(" and (", 1)
    one, other = tests[0], f"({tests[1]}"
    name = next(program.fresh())
    first = Step(name, "filter", step.inputs, {"p": one})
    return program.replacing(step, first, Step(step.name, "filter", (name,), {"p": other}))


def by_hand(program: Program, rng: Random) -> Program | None:
    """What a tick adds is told by the program itself."""
    step = any_step(program, rng, "persist", "old")
    if step is None:
        return None
    name = next(program.fresh())
    before = Step(name, "prev", (step.name,))
    if step.op == "persist":
        return program.replacing(step, Step(step.name, "union", (*step.inputs, name)), before)
    own = Step(name, "persist", step.inputs)
    return program.replacing(step, own, Step(step.name, "prev", (name,)))


def news_by_hand(program: Program, rng: Random) -> Program | None:
    """`persist -> unique -> delta` as a stream that takes out what was there."""
    for last in program.steps:
        middle = program[last.inputs[0]]
        first = None if middle is None else program[middle.inputs[0]]
        if first is None or middle is None:
            continue
        if (first.op, middle.op, last.op) == ("persist", "unique", "delta"):
            once, before = f"{next(program.fresh())}_once", f"{next(program.fresh())}_before"
            return program.replacing(
                last,
                Step(once, "unique", first.inputs),
                Step(last.name, "difference", (once, before)),
                Step(before, "old", (last.name,)),
            )
    return None


def doubled(program: Program, rng: Random) -> Program | None:
    """A stream is made twice, and one reader reads the copy."""
    if not program.steps:
        return None
    step = rng.choice(program.steps)
    readers = program.readers(step.name)
    if not readers:
        return None
    name = next(program.fresh())
    reader = rng.choice(readers)
    made = program.replacing(reader, reader.reading(step.name, name))
    return replace(made, steps=(*made.steps, replace(step, name=name)))


def merged(program: Program, rng: Random) -> Program | None:
    """Two streams that are made in the same way become one."""
    for one in program.steps:
        for other in program.steps:
            alike = (one.op, one.inputs, one.args) == (other.op, other.inputs, other.args)
            if alike and one.name != other.name:
                steps = [s.reading(other.name, one.name) for s in program.steps if s is not other]
                ends = {n: one.name if s == other.name else s for n, s in program.outputs.items()}
                return Program(tuple(steps), ends)
    return None


def columns_in_other_words(program: Program, rng: Random) -> Program | None:
    """Columns are kept by their names, made, or the others are dropped."""
    step = any_step(program, rng, "select", "map", "drop")
    known = program.columns()
    if step is None or step.inputs[0] not in known or step.name not in known:
        return None
    own, kept = known[step.inputs[0]], known[step.name]
    gone = tuple(c for c in own if c not in kept)
    ways = [("select", kept), ("map", kept)]
    if gone and kept == tuple(c for c in own if c in kept):
        ways.append(("drop", gone))
    op, columns = rng.choice([way for way in ways if way[0] != step.op])
    return program.replacing(step, Step(step.name, op, step.inputs, {"columns": columns}))


def functions_in_other_words(program: Program, rng: Random) -> Program | None:
    """A filter's parameter is called something else, or columns are taken by their names."""
    step = any_step(program, rng, "filter")
    if step is None or "row" in step.args:
        return None
    text = step.args["p"]
    if rng.random() < 0.5:
        return program.replacing(step, step.with_(row="it", p=text.replace("r.", "it.")))
    for column in "kvwznsmeq":
        text = text.replace(f"r.{column} ", f'r["{column}"] ').replace(
            f"(r.{column} ", f'(r["{column}"] '
        )
    return program.replacing(step, step.with_(p=text))


def tests_in_other_words(program: Program, rng: Random) -> Program | None:
    """A test says "not" where it did not, and the other way round."""
    step = any_step(program, rng, "filter")
    if step is None:
        return None
    text = step.args["p"]
    row = step.args.get("row", "r")
    ways = [f"not (not ({text}))"]
    ways += [re.sub(rf"({row}\.\w) {old}", new, text) for old, new in OTHER_TESTS if old in text]
    return program.replacing(step, step.with_(p=rng.choice(ways)))


OTHER_TESTS = (
    ("is not None", r"not None is \1"),
    ("is None", r"not \1 != None"),
    (" == ", r"not \1 != "),
)


def once_more(program: Program, rng: Random) -> Program | None:
    """What is there once is made so again."""
    step = any_step(program, rng, "unique")
    if step is None:
        return None
    name = next(program.fresh())
    first = replace(step, name=name)
    return program.replacing(step, first, Step(step.name, "unique", (name,)))


def sum_turned(program: Program, rng: Random) -> Program | None:
    """The parts of a union stand in another order."""
    step = any_step(program, rng, "union")
    if step is None:
        return None
    return program.replacing(step, replace(step, inputs=tuple(reversed(step.inputs))))


def dead_column(program: Program, rng: Random) -> Program | None:
    """A column is made that nobody reads: an aggregate comes after it."""
    step = any_step(program, rng, "aggregate")
    if step is None:
        return None
    name = next(program.fresh())
    made = Step(name, "compute", step.inputs, {"new": "dead", "e": "1"})
    return program.replacing(step, made, replace(step, inputs=(name,)))


def joined_in_turn(program: Program, rng: Random) -> Program | None:
    """The sides of a join change places, and the columns are put back in their order."""
    inner = [s for s in program.steps if s.op == "join" and s.args["how"] == "inner"]
    known = program.columns()
    inner = [s for s in inner if s.name in known]
    if not inner:
        return None
    step = rng.choice(inner)
    name = next(program.fresh())
    turned = replace(step, name=name, inputs=tuple(reversed(step.inputs)))
    back = Step(step.name, "select", (name,), {"columns": known[step.name]})
    return program.replacing(step, turned, back)


def parts_turned(program: Program, rng: Random) -> Program | None:
    """Aggregates, or columns that are kept, are named in another order, and then put back."""
    key = {"aggregate": "made", "select": "columns", "map": "columns"}
    known = program.columns()
    found = [s for s in program.steps if s.op in key and len(s.args[key[s.op]]) > 1]
    found = [s for s in found if s.name in known]
    if not found:
        return None
    step, name = rng.choice(found), next(program.fresh())
    given = step.args[key[step.op]]
    turned = replace(step, name=name).with_(**{key[step.op]: tuple(reversed(given))})
    back = Step(step.name, "select", (name,), {"columns": known[step.name]})
    return program.replacing(step, turned, back)


def columns_turned(program: Program, rng: Random) -> Program | None:
    """An operator that does not mind gets its columns in another order, and they are put back."""
    known = program.columns()
    asked = any_step(program, rng, *BY_NAME)
    if asked is None or asked.name not in known or asked.inputs[0] not in known:
        return None
    names = program.fresh()
    first, second = next(names), f"{next(names)}_turned"
    of = known[asked.inputs[0]]
    before = Step(first, "select", asked.inputs[:1], {"columns": tuple(reversed(of))})
    turned = replace(asked, name=second, inputs=(first, *asked.inputs[1:]))
    back = Step(asked.name, "select", (second,), {"columns": known[asked.name]})
    return program.replacing(asked, before, turned, back)


BY_NAME = ("persist", "old", "prev", "window", "unique", "delta", "filter", "aggregate", "join")
"""Operators to which the order of columns is nothing."""


WORDS: Mapping[str, Edit] = {
    edit.__name__: edit
    for edit in (
        renamed,
        reordered,
        filtered_earlier,
        filters_apart,
        by_hand,
        news_by_hand,
        doubled,
        merged,
        columns_in_other_words,
        functions_in_other_words,
        tests_in_other_words,
        once_more,
        sum_turned,
        dead_column,
        joined_in_turn,
        parts_turned,
        columns_turned,
    )
}
"""Edits after which a program does the same."""
TURNED: Mapping[str, Edit] = {
    edit.__name__: edit for edit in (parts_turned, columns_turned, sum_turned, reordered)
}
"""Those of them that name the same things in another order."""
