"""How a program can be cut into shards, or who forbids it, where, why, and what would help: what
`hydrotick partition` answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.partition.locations import RoutingTerms, locate
from hydro_core.analysis.partition.origins import Origins, tables_back
from hydro_core.analysis.partition.partitioning import (
    Blocker,
    Partitioning,
    Replication,
    as_text,
    place_of,
)
from hydro_core.analysis.partition.search import ChoiceSearch
from hydro_core.analysis.partition.steps import FlowStep, Steps, steps_of
from hydro_core.analysis.partition.terms import At, KeyTerm, rewritten, whole
from hydro_core.catalog.spec import Never, OnAnyField, Replicated
from hydro_core.errors import ProgramError
from hydro_core.functions.tree import Make
from hydro_core.ir.graph import Node
from hydro_core.lang.source import did_you_mean, no_such_input
from hydro_core.types.item import FieldPath, at, leaves
from hydro_core.types.stream import Order

On = Mapping[str, str | Sequence[str]]
"""Of some inputs the dotted path, or several, by which it is routed; "" is the whole item."""


def partition(typed: Typed) -> Partitioning:
    """All minimal choices by which the program can be cut, or what forbids it."""
    steps = steps_of(typed)
    search = ChoiceSearch(steps)
    choices = tuple(search.choices())
    if choices:
        ordered = _ordered(steps)
        return Partitioning(
            typed.graph.name, _inputs(steps), choices, ordered=ordered, complete=search.complete
        )
    blockers = tuple(_blocker(steps, s, search.wants(s)) for s in search.blockers())
    partial = tuple(Replication(some, tuple(found)) for some, found in search.partial())
    inputs, name = _inputs(steps), typed.graph.name
    return Partitioning(name, inputs, (), blockers, partial, complete=search.complete)


def judge(typed: Typed, on: On) -> Partitioning:
    """Whether the program can be cut by this choice, and if not, who forbids it.

    Raises:
        ProgramError: there is no such input, or no such field.
    """
    steps = steps_of(typed)
    choice = choice_of(steps, on)
    failed = locate(steps, choice).failed
    search = ChoiceSearch(steps)
    blockers = tuple(_blocker(steps, s, search.wants(s)) for s in failed[:1])
    right, ordered = ((), ()) if failed else ((choice,), _ordered(steps))
    name, inputs = typed.graph.name, _inputs(steps)
    return Partitioning(name, inputs, right, blockers, ordered=ordered, judged=True)


def choice_of(steps: Steps, on: On) -> RoutingTerms:
    """The choice that a person wrote.

    Raises:
        ProgramError: there is no such input, or no such field.
    """
    return {name: _routed(steps, name, path) for name, path in on.items()}


def _inputs(steps: Steps) -> tuple[str, ...]:
    return tuple(source.name for source in steps.sources.values())


def _ordered(steps: Steps) -> tuple[str, ...]:
    cut, typed = steps.cut(), steps.typed
    return tuple(
        name
        for name, stream in typed.outputs.items()
        if stream.order is Order.TOTAL
        and any(sink.inputs[0].node in cut for sink in typed.graph.sinks[name])
    )


def _routed(steps: Steps, name: str, paths: str | Sequence[str]) -> KeyTerm:
    source = next((s for s in steps.sources.values() if s.name == name), None)
    if source is None:
        raise no_such_input(name, _inputs(steps))
    terms = []
    for text in [paths] if isinstance(paths, str) else paths:
        path = tuple(text.split(".")) if text else ()
        if at(source.item, path) is None:
            fields = [".".join(leaf) for leaf, _ in leaves(source.item)]
            help_ = did_you_mean(text, fields) or f"its fields are {', '.join(fields)}"
            message = f"`{name}` has no field {text!r}"
            raise ProgramError.of("input", message, help=help_)
        terms.append(whole(source.item, path))
    return terms[0] if len(terms) == 1 else Make("tuple", tuple(terms))


_MOST_DETAILS = 6


def _blocker(steps: Steps, step: FlowStep, wants: tuple[Origins, ...]) -> Blocker:
    """Why no choice serves an operator; `wants`: what would, if it came alone."""
    node = step.node
    rule = node.spec.partition
    if isinstance(rule, Never):
        why = f"needs its input in one place: {rule.why}."
        return Blocker(node.id, node.op.name, node.span, why)
    if isinstance(rule, Replicated):
        why = f"needs all of `[{rule.port}]` on every shard."
        return Blocker(node.id, node.op.name, node.span, why)
    equal = "equal items" if isinstance(rule, OnAnyField) else "items of a key"
    why = f"needs all {equal} on one shard."
    details = [*_wanted(wants), *_lost(steps, step)]
    return Blocker(node.id, node.op.name, node.span, why, tuple(details[:_MOST_DETAILS]))


def _wanted(wants: tuple[Origins, ...]) -> Iterator[str]:
    ways = [origins for origins in wants if origins]
    shown = list(dict.fromkeys(", ".join(_routes(origins)) for origins in ways))
    if shown:
        yield f"It would have {'; or '.join(shown[:3])}."


def _routes(origins: Origins) -> Iterator[str]:
    for name, terms in sorted(origins.items()):
        ways = sorted(map(as_text, terms))
        at_once = " at once" if len(ways) > 1 else ""
        yield f"`{name}` routed by {' and by '.join(ways[:3])}{at_once}"


def _lost(steps: Steps, step: FlowStep) -> Iterator[str]:
    """Where the fields of a key stop being fields of an input."""
    seen: set[tuple[str, KeyTerm]] = set()
    assert step.key is not None
    for name in step.key.fields[0]:
        for reads, fields in zip(step.inputs, step.key.fields, strict=True):
            for term in fields[name]:
                for node, path in _ends(steps, reads, term, seen):
                    made = place_of(node.span).removesuffix(": ")
                    where = f" at {made}" if made else ""
                    yield (
                        f"Its key comes from field {'.'.join(path) or '(the item)'} of "
                        f"`{node.op.name}`{where}, where it is no longer a field of an input."
                    )


def _ends(
    steps: Steps, name: str, term: KeyTerm, seen: set[tuple[str, KeyTerm]]
) -> Iterator[tuple[Node, FieldPath]]:
    todo = [(name, term)]
    while todo:
        reads, looked = todo.pop()
        if (reads, looked) in seen or not isinstance(looked, At) or reads in steps.sources:
            continue
        seen.add((reads, looked))
        step = steps.of[reads]
        before = [
            (source, found)
            for source, table in zip(step.inputs, tables_back(step), strict=True)
            for found in rewritten(looked, table)
        ]
        if step.inputs and not any(isinstance(found, At) for _, found in before):
            yield step.node, looked.path
        todo += before
