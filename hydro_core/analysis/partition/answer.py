"""How a program can be cut into shards: what `hydrotick partition` answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hydro_core.analysis.infer import Typed, infer
from hydro_core.analysis.partition.blockers import Failing, blockers_of
from hydro_core.analysis.partition.locations import RoutingTerms, locate
from hydro_core.analysis.partition.partitioning import Partitioning, Replication
from hydro_core.analysis.partition.search import ChoiceSearch
from hydro_core.analysis.partition.steps import Steps, steps_of
from hydro_core.analysis.partition.terms import KeyTerm, whole
from hydro_core.analysis.partition.two_steps import in_two_steps
from hydro_core.errors import ProgramError
from hydro_core.lang.similar import did_you_mean
from hydro_core.types.item import at, leaves
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
    blockers = blockers_of(steps, [Failing(s, search.wants(s)) for s in search.blockers()])
    partial = tuple(Replication(some, tuple(found)) for some, found in search.partial())
    inputs, name = _inputs(steps), typed.graph.name
    in_two = _in_two_steps(steps)
    return Partitioning(name, inputs, (), blockers, partial, in_two, complete=search.complete)


def _in_two_steps(steps: Steps) -> tuple[RoutingTerms, ...]:
    parts = in_two_steps(steps)
    if parts is None:
        return ()
    cut = infer(parts.cut, steps.typed.schemas)
    return tuple(ChoiceSearch(steps_of(cut)).choices())


def judge(typed: Typed, on: On) -> Partitioning:
    """Whether the program can be cut by this choice, and if not, who forbids it.

    Raises:
        ProgramError: there is no such input, or no such field.
    """
    steps = steps_of(typed)
    choice = choice_of(steps, on)
    failed = locate(steps, choice).failed
    search = ChoiceSearch(steps)
    blockers = blockers_of(steps, [Failing(s, search.wants(s)) for s in failed[:1]])
    right = () if failed else (choice,)
    ordered = _ordered(steps) if right else ()
    return Partitioning(
        typed.graph.name, _inputs(steps), right, blockers, ordered=ordered, judged=True
    )


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
        known = _inputs(steps)
        help_ = did_you_mean(name, known) or f"the inputs are {', '.join(known)}"
        raise ProgramError.of("input", f"`{name}` is not an input", help=help_)
    terms = []
    for text in [paths] if isinstance(paths, str) else paths:
        path = tuple(text.split(".")) if text else ()
        if at(source.item, path) is None:
            fields = [".".join(leaf) for leaf, _ in leaves(source.item)]
            help_ = did_you_mean(text, fields) or f"its fields are {', '.join(fields)}"
            message = f"`{name}` has no field {text!r}"
            raise ProgramError.of("input", message, help=help_)
        terms.append(whole(source.item, path))
    return terms[0] if len(terms) == 1 else ("tuple", *terms)
