"""Edits of programs over rows that may change what they mean.

An edit gives another program, or None where it does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from tests.support.edits import Edit, any_step
from tests.support.row_programs import (
    KEEPS,
    SOURCES,
    Program,
    Step,
    number_of,
    predicate,
    random_aggregates,
    sort_key,
)


def other_constant(program: Program, rng: Random) -> Program | None:
    """A number in a function is another one."""
    step = any_step(program, rng, "filter", "compute")
    if step is None:
        return None
    key = "p" if step.op == "filter" else "e"
    text = step.args[key]
    places = [i for i, c in enumerate(text) if c.isdigit()]
    if not places:
        return None
    at = rng.choice(places)
    return program.replacing(
        step, step.with_(**{key: f"{text[:at]}{int(text[at]) + 1}{text[at + 1 :]}"})
    )


def other_number(program: Program, rng: Random) -> Program | None:
    """A window is longer, more rows are kept, or a fold weighs otherwise."""
    step = any_step(program, rng, "window", "sorted", "folded")
    return step and program.replacing(step, step.with_(n=step.args["n"] + 1))


def other_operator(program: Program, rng: Random) -> Program | None:
    """An operator without arguments is another one."""
    plain = ("persist", "old", "prev", "delta", "unique", "identity")
    step = any_step(program, rng, *plain)
    if step is None:
        return None
    return program.replacing(step, replace(step, op=rng.choice([p for p in plain if p != step.op])))


def other_join(program: Program, rng: Random) -> Program | None:
    """A join keeps other rows."""
    step = any_step(program, rng, "join")
    if step is None:
        return None
    short = step.args["how"] in {"semi", "anti"}
    ways = ("semi", "anti") if short else ("inner", "left", "right", "outer")
    return program.replacing(step, step.with_(how=rng.choice(ways)))


def other_input(program: Program, rng: Random) -> Program | None:
    """An operator reads another stream with the same columns."""
    known = program.columns()
    step = rng.choice(program.steps)
    old = rng.choice(step.inputs)
    streams = [s for s in known if old in known and known[s] == known[old] and s != old]
    return program.replacing(step, step.reading(old, rng.choice(streams))) if streams else None


def other_null(program: Program, rng: Random) -> Program | None:
    """What is null is seen otherwise."""
    step = any_step(program, rng, "filter", "compute", "folded", "sorted")
    if step is None:
        return None
    key = {"filter": "p", "compute": "e"}.get(step.op, "key")
    text = step.args[key]
    changes = [
        text.replace(old, new, 1)
        for old, new in (
            ("is not None", "is None"),
            ("is None", "is not None"),
            (" is not None and ", " is None or "),
            (" or 0)", " or 1)"),
            (" or 0", " or 9"),
        )
        if old in text
    ]
    return program.replacing(step, step.with_(**{key: rng.choice(changes)})) if changes else None


def other_comparison(program: Program, rng: Random) -> Program | None:
    """Equality becomes order, or what is excluded is included."""
    step = any_step(program, rng, "filter")
    if step is None:
        return None
    text = step.args["p"]
    swaps = ((" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == "))
    changes = [text.replace(old, new, 1) for old, new in swaps if old in text]
    return program.replacing(step, step.with_(p=rng.choice(changes))) if changes else None


def other_aggregates(program: Program, rng: Random) -> Program | None:
    """An aggregate is another one, one more, or one less."""
    step = any_step(program, rng, "aggregate")
    known = program.columns()
    if step is None or step.inputs[0] not in known:
        return None
    made, own = step.args["made"], known[step.inputs[0]]
    match rng.randint(0, 2):
        case 0:
            ((_, call), *_) = random_aggregates(rng, own)
            changed = ((made[0][0], call), *made[1:])
        case 1:
            ((_, call), *_) = random_aggregates(rng, own)
            changed = (*made, ("more", call))
        case _:
            changed = made[:-1] or made
    return program.replacing(step, step.with_(made=changed))


def other_columns(program: Program, rng: Random) -> Program | None:
    """A column more or less is kept, or by another key."""
    step = any_step(program, rng, "select", "map", "aggregate", "latest")
    known = program.columns()
    if step is None or step.inputs[0] not in known:
        return None
    own = known[step.inputs[0]]
    if step.op == "aggregate":
        return program.replacing(step, step.with_(by=(rng.choice(own),)))
    if step.op == "latest":
        return program.replacing(step, step.with_(order=number_of(rng, own)))
    columns = step.args["columns"]
    more = [c for c in own if c not in columns]
    if more and rng.random() < 0.6:
        columns = (*columns, rng.choice(more))
    else:
        columns = columns[1:] or columns
    return program.replacing(step, step.with_(columns=columns))


def sides_turned(program: Program, rng: Random) -> Program | None:
    """What is taken out and what of change places, or which items come first."""
    step = any_step(program, rng, "difference", "chain", "join")
    if step is None:
        return None
    return program.replacing(step, replace(step, inputs=tuple(reversed(step.inputs))))


def left_out(program: Program, rng: Random) -> Program | None:
    """An operator is left out."""
    step = any_step(program, rng, *KEEPS)
    if step is None or step.name in program.outputs.values() or step.name in SOURCES:
        return None
    made = program.replacing(step)
    steps = tuple(s.reading(step.name, step.inputs[0]) for s in made.steps)
    return replace(made, steps=steps)


def put_in(program: Program, rng: Random) -> Program | None:
    """An operator more: the items once, later, in part, or sorted and cut."""
    step = rng.choice(program.steps)
    known = program.columns()
    if step.name not in known:
        return None
    name = next(program.fresh())
    op = rng.choice(("unique", "prev", "filter", "persist", "delta", "window", "sorted"))
    args = {
        "filter": {"p": predicate(rng, known[step.name])},
        "window": {"n": 2},
        "sorted": {"n": 2, "key": sort_key(rng, known[step.name])},
    }.get(op, {})
    return program.replacing(step, replace(step, name=name), Step(step.name, op, (name,), args))


def other_sum(program: Program, rng: Random) -> Program | None:
    """Parts follow each other, or are added, or are taken out."""
    step = any_step(program, rng, "union", "chain", "difference")
    if step is None:
        return None
    return program.replacing(step, replace(step, op=rng.choice(("union", "chain", "difference"))))


def output_moved(program: Program, rng: Random) -> Program | None:
    """An output is another stream."""
    name = rng.choice(list(program.outputs))
    other = rng.choice(program.steps).name
    return replace(program, outputs={**program.outputs, name: other})


def parts_turned_for_good(program: Program, rng: Random) -> Program | None:
    """Aggregates, or columns that are kept, are named in another order: ties may end otherwise."""
    key = {"aggregate": "made", "select": "columns", "map": "columns"}
    step = any_step(program, rng, *key)
    if step is None:
        return None
    given = step.args[key[step.op]]
    return program.replacing(step, step.with_(**{key[step.op]: tuple(reversed(given))}))


CHANGES: Mapping[str, Edit] = {
    edit.__name__: edit
    for edit in (
        other_constant,
        other_number,
        other_operator,
        other_join,
        other_input,
        other_null,
        other_comparison,
        other_aggregates,
        other_columns,
        sides_turned,
        left_out,
        put_in,
        other_sum,
        output_moved,
        parts_turned_for_good,
    )
}
"""Edits that may change what a program does."""
