"""How a program can be cut into shards: what `hydrotick partition` answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydro_core.analysis.infer import Typed, infer
from hydro_core.analysis.partition.explain import Blocker, Failing, blockers_of, described
from hydro_core.analysis.partition.locations import RoutingTerms, locate
from hydro_core.analysis.partition.search import ChoiceSearch
from hydro_core.analysis.partition.steps import Steps, steps_of
from hydro_core.analysis.partition.terms import KeyTerm, whole
from hydro_core.analysis.partition.two_steps import in_two_steps
from hydro_core.analysis.partition.wording import as_path
from hydro_core.errors import Diagnostic, ProgramError
from hydro_core.lang.similar import did_you_mean
from hydro_core.types.item import at, leaves
from hydro_core.types.stream import Order

On = Mapping[str, str | Sequence[str]]
"""Of some inputs the dotted path, or several, by which it is routed; "" is the whole item."""


@dataclass(frozen=True, slots=True)
class Replication:
    """A smallest set of inputs that, whole on every shard, lets the others be cut."""

    replicate: tuple[str, ...]
    choices: tuple[RoutingTerms, ...]
    """`({},)`: the others may be routed by any function of their items."""

    def as_json(self) -> dict[str, Any]:
        """The object of `partial`."""
        return {"replicate": list(self.replicate), **_choices_as_json(self.choices)}


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How a program can be cut into shards that do not talk to each other.

    The bag sum of what the shards put out is then, tick by tick, what the program puts out. Inputs
    that a choice names are all routed by one function of the value there, the others by any
    function of their items.
    """

    name: str
    inputs: tuple[str, ...]
    choices: tuple[RoutingTerms, ...]
    """All minimal choices; `({},)`: any routing that is a function of the item."""
    blockers: tuple[Blocker, ...] = ()
    partial: tuple[Replication, ...] = ()
    two_steps: tuple[RoutingTerms, ...] = ()
    """Where there is no choice: those that serve if a last step makes results of all items of one
    result of each shard.
    """
    ordered: tuple[str, ...] = ()
    """The outputs that have an order: each shard gives its part in order, which must be merged."""
    judged: bool = False
    """It is about one choice; another one may serve where this one does not."""
    complete: bool = True
    """False: there may be more choices than these, which are right all the same."""

    @property
    def partitionable(self) -> bool:
        """Whether there is a choice."""
        return bool(self.choices)

    @property
    def any(self) -> bool:
        """Whether any routing serves that is a function of the item."""
        return self.choices == ({},)

    def as_json(self) -> dict[str, Any]:
        """What `--format json` prints."""
        return {
            "partitionable": self.partitionable,
            "any": self.any,
            "keys": [choice_as_json(choice) for choice in self.choices if choice],
            "blocked_by": list(dict.fromkeys(blocker.operator for blocker in self.blockers)),
            "partial": [partial.as_json() for partial in self.partial],
            "two_steps": _choices_as_json(self.two_steps),
            "ordered": list(self.ordered),
            "complete": self.complete,
        }

    def __str__(self) -> str:
        return described(self)


def choice_as_json(choice: RoutingTerms) -> dict[str, list[str]]:
    """The paths by which inputs are routed: `{"orders": ["user", "id"]}`."""
    return {name: as_path(term) for name, term in choice.items()}


def _choices_as_json(choices: tuple[RoutingTerms, ...]) -> dict[str, Any]:
    keys = [choice_as_json(choice) for choice in choices if choice]
    return {"keys": keys} if keys else {"any": True} if choices else {}


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
        raise ProgramError(Diagnostic("input", f"`{name}` is not an input", help=help_))
    terms = []
    for text in [paths] if isinstance(paths, str) else paths:
        path = tuple(text.split(".")) if text else ()
        if at(source.item, path) is None:
            fields = [".".join(leaf) for leaf, _ in leaves(source.item)]
            help_ = did_you_mean(text, fields) or f"its fields are {', '.join(fields)}"
            message = f"`{name}` has no field {text!r}"
            raise ProgramError(Diagnostic("input", message, help=help_))
        terms.append(whole(source.item, path))
    return terms[0] if len(terms) == 1 else ("tuple", *terms)
