"""The catalogue as a page: `docs/operators.md` is what `page()` gives."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, assert_never

from hydro_core.catalog.aggregates import AGGREGATES, AggregateSpec, AllValues, PartialState, moves
from hydro_core.catalog.over_functions import FUNCTIONS
from hydro_core.catalog.registry import CATALOG, usage
from hydro_core.catalog.spec import (
    Always,
    Barrier,
    HeldByAll,
    Never,
    OnAnyField,
    OnKey,
    OpSpec,
    OrderRule,
    Port,
    Replicated,
    State,
)
from hydro_core.types.item import Order

_HEAD = """\
# Operators

Written from the catalogue (`hydro_core/catalog`) by `make docs`: what stands here is what the
analyses, the optimizer and the engines go by.

- **linear**: `op(x + y) = op(x) + op(y)` in that input.
- **zero**: empty inputs give an empty output.
- **waits**: what must be complete first: the input's stratum, or the tick before.
- **order**: what becomes of the first input's order.

A function whose result type cannot be read from it says it: `map(f, returns="long")`. Where there
are several, in `select`, `with_columns`, `aggregate` and `latest`, it is `typed("long", f)`.

A function that takes an accumulator may promise `commutative=True`, `associative=True`,
`idempotent=True` and `neutral=True` (`init` changes nothing): promises are believed, and allow
plans that need them. `fold`, `reduce`, `fold_keyed` and `reduce_keyed` over a stream without an
order need the first.

A function may go by what its items are, and by nothing else. Items that are equal are one item, so
a function that tells 0.0 from −0.0 or decimals of different scale apart (`str`) may see either. The
order of a set, the address of an object, and the time zone of the machine (in Python functions)
differ from run to run and from worker to worker: sort the set, and name the zone.

In the short form of the examples, `a [1] gives out [2]` says what comes in and out in a tick.
Columns of operators marked * depend on the arguments; they are shown as they are without any.
"""
_FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        "io": "Where streams begin and end",
        "itemwise": "One item at a time",
        "combine": "Bringing streams together",
        "group": "Many items to few",
        "order": "Orders",
        "state": "Earlier ticks",
    }
)


def page() -> str:
    """The whole page, in Markdown."""
    parts = [_HEAD]
    for family, title in _FAMILIES.items():
        entries = [op for op in CATALOG.values() if op.family == family]
        parts += [f"## {title}\n", _table(entries)]
        parts += [_section(op) for op in entries]
    parts += ["## Aggregates\n", _aggregates()]
    parts += ["\n## Functions of over\n", _over_functions()]
    return "\n".join(parts)


def _table(entries: list[OpSpec]) -> str:
    head = ["operator", "linear", "zero", "waits", "order", "state", "shards may be cut"]
    rows = [
        [_name(op), _linear(op), _yes(op.zero), _waits(op), _order(op), _state(op), _cut(op)]
        for op in entries
    ]
    return _markdown(head, rows)


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _name(op: OpSpec) -> str:
    names = " ".join(f"`{name}`" for name in (op.name, *op.aliases))
    return f"{names} *" if op.refine else names


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _linear(op: OpSpec) -> str:
    if not op.inputs:
        return "–"
    linear = [port for port in op.inputs if port.linear]
    if not linear and op.idempotent:
        return "idempotent"
    if len(linear) in (0, len(op.inputs)):
        return _yes(bool(linear))
    return ", ".join(f"`[{port.name}]`" for port in linear)


def _waits(op: OpSpec) -> str:
    words = {Barrier.STRATUM: "stratum", Barrier.TICK: "tick"}
    waiting = [(port, words[port.barrier]) for port in op.inputs if port.barrier in words]
    if not waiting:
        return "–"
    if len({word for _, word in waiting}) == 1 and len(waiting) == len(op.inputs):
        return waiting[0][1]
    return ", ".join(f"`[{port.name}]`: {word}" for port, word in waiting)


def _order(op: OpSpec) -> str:
    if not op.inputs or op.outputs == "none":
        return "–"
    needs = "needs, " if any(port.needs is Order.TOTAL for port in op.inputs) else ""
    words = {
        OrderRule.KEEPS: "keeps",
        OrderRule.KEEPS_IF_ALL: "keeps if all have it",
        OrderRule.GIVES: "gives",
        OrderRule.LOSES: "loses",
    }
    return needs + words[op.order]


def _state(op: OpSpec) -> str:
    return "–" if op.state is State.NONE else op.state.value


def _cut(op: OpSpec) -> str:
    match op.partition:
        case Always():
            return "anywhere"
        case Never(why):
            return f"nowhere: {why}"
        case OnKey(at):
            return f"on the key{_below(at[0], ('0',))}"
        case OnAnyField(at):
            return f"on any field{_below(at, ())}"
        case Replicated(port):
            return f"anywhere, `[{port}]` whole on each"
        case HeldByAll():
            return "held by every shard, emitted by one"
        case _:
            assert_never(op.partition)


def _below(at: tuple[str, ...], usual: tuple[str, ...]) -> str:
    return "" if at == usual else f" of what stands at {'.'.join(at)}"


def _section(op: OpSpec) -> str:
    return "\n".join(
        [
            f"### {op.name}\n",
            f"`{usage(op)}`: {op.summary}.\n",
            *_ports(op),
            *_arguments(op),
            _example(op),
        ]
    )


def _ports(op: OpSpec) -> Iterator[str]:
    if len(op.inputs) > 1:
        yield f"Inputs: {', '.join(map(_port, op.inputs))}.\n"


def _arguments(op: OpSpec) -> Iterator[str]:
    for arg in op.args:
        says = f"- `{arg.name}`: {arg.summary}"
        if arg.choices:
            says += f": {', '.join(f'`{choice}`' for choice in arg.choices)}"
        if arg.default not in (None, ()):
            says += f"; `{arg.default}` unless it is said"
        yield f"{says}."
    if op.args:
        yield ""


def _port(port: Port) -> str:
    names = " or ".join(f"`[{name}]`" for name in (port.name, *port.aliases))
    names += " or none" if port.elided else ""
    return f"{names}, as an argument `{port.keyword}=`" if port.keyword else names


def _example(op: OpSpec) -> str:
    example = op.example
    lines = [f"{name} = source({json.dumps(ddl)})" for name, ddl in example.schemas.items()]
    lines += example.program.split("\n")
    for tick, (given, gives) in enumerate(zip(example.ticks, example.gives, strict=True)):
        shown = f"{_batches(given)} gives " if given else "gives "
        lines.append(f"# tick {tick}: {shown}{_batches(gives)}")
    return "\n".join(["```hydrotick", *lines, "```", ""])


def _batches(batches: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {json.dumps(items)}" for name, items in batches.items())


def _aggregates() -> str:
    rows = []
    for spec in AGGREGATES.values():
        if spec.internal:
            continue
        names = " ".join(f"`{name}`" for name in (spec.name, *spec.aliases))
        rows.append([names, spec.summary, _yes(spec.needs_order), _stored(spec), _moves(spec)])
    head = ["aggregate", "gives", "needs an order", "stored of a history", "moves with a window"]
    return _markdown(head, rows)


def _over_functions() -> str:
    looks = {
        "before": "the rows up to this one",
        "peers": "the rows up to the last that is equal in `order`",
        "next": "the rows up to the n-th after",
        "all": "all rows of the key",
    }
    rows = [
        [f"`{spec.usage}`", spec.summary, _yes(spec.needs_order), looks[spec.looks]]
        for spec in FUNCTIONS.values()
    ]
    return _markdown(["function", "gives", "needs an order", "looks at"], rows)


def _stored(spec: AggregateSpec) -> str:
    """What is kept of the rows of a history."""
    match spec.kept:
        case AllValues():
            return "the different values" if spec.over_distinct else "all values"
        case PartialState(merge="", parts=parts):
            return "its parts: " + ", ".join(parts)
        case PartialState(companion=companion):
            return f"the result, and {companion} of the order" if companion else "the result"


def _moves(spec: AggregateSpec) -> str:
    """Whether it moves with a window."""
    if not moves(spec.name, exact=True):
        return "no"
    return "yes" if moves(spec.name, exact=False) else "of exact numbers"
