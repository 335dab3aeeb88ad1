"""The answer in words: what to route on, or who forbids it, where, and what would help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.partition.locations import RoutingTerms
from hydro_core.analysis.partition.origins import Origins, tables_back
from hydro_core.analysis.partition.steps import FlowStep, Steps
from hydro_core.analysis.partition.terms import At, KeyTerm, rewritten
from hydro_core.analysis.partition.two_steps import steps_of_result
from hydro_core.analysis.partition.wording import as_text
from hydro_core.catalog.spec import Never, OnAnyField, Replicated
from hydro_core.errors import Span
from hydro_core.ir.graph import Node
from hydro_core.types.item import FieldPath

if TYPE_CHECKING:
    from hydro_core.analysis.partition.answer import Partitioning

_MOST_SHOWN = 6
_MOST_BROADCASTS = 3


class Failing(NamedTuple):
    """An operator that no choice serves, and what would serve it if it came alone."""

    step: FlowStep
    wants: tuple[Origins, ...]


@dataclass(frozen=True, slots=True)
class Blocker:
    """An operator that forbids to cut the program, and why."""

    node: str
    operator: str
    place: Span | None
    why: str
    details: tuple[str, ...] = ()
    """Of a key: what it would be routed on, or where its fields got lost."""
    help: str = ""


def blockers_of(steps: Steps, failing: Sequence[Failing]) -> tuple[Blocker, ...]:
    """Why these operators cannot be served."""
    return tuple(_blocker(steps, *found) for found in failing)


def described(answer: Partitioning) -> str:
    """The whole answer, a few lines."""
    lines = _refusal(answer) if not answer.partitionable else _choices(answer)
    if not answer.complete:
        lines.append("There may be more choices: not all were tried.")
    return "\n".join(lines)


def _choices(answer: Partitioning) -> list[str]:
    name = answer.name
    if not answer.inputs:
        return [f"{name} has no input: one shard puts out all of it."]
    lines = [f"{name} can be cut into shards."]
    if answer.any:
        lines.append("Route every input by any function of its items; equal items, equal shards.")
    else:
        one = len(answer.choices) == 1
        lines.append("Route" if one else "Route in one of these ways:")
        lines += [f"  {in_words(choice)}" for choice in answer.choices[:_MOST_SHOWN]]
        if len(answer.choices) > _MOST_SHOWN:
            lines.append(f"  … and {len(answer.choices) - _MOST_SHOWN} more")
        free = [n for n in answer.inputs if all(n not in choice for choice in answer.choices)]
        if any(len(choice) > 1 for choice in answer.choices):
            lines.append("The inputs of a way are routed by one function of these values.")
        if free:
            lines.append(f"Any function of its items does for {_listed(free)}.")
    for output in answer.ordered:
        lines.append(f"`{output}` is ordered: each shard gives its part in order; merge the parts.")
    return lines


def _refusal(answer: Partitioning) -> list[str]:
    so = " by this choice" if answer.judged else ""
    lines = [f"{answer.name} cannot be cut into shards{so}."]
    for blocker in answer.blockers:
        lines.append(f"{_place(blocker.place)}`{blocker.operator}` ({blocker.node}) {blocker.why}")
        lines += [f"  {detail}" for detail in blocker.details]
    helps = [b.help for b in answer.blockers if b.help]
    helps += [_broadcast(p.replicate, p.choices) for p in answer.partial[:_MOST_BROADCASTS]]
    if helps and not answer.judged:
        lines.append("What would help:")
        lines += [f"  {help_}" for help_ in dict.fromkeys(helps)]
    if answer.two_steps:
        ways = [in_words(choice) or "every input anyhow" for choice in answer.two_steps]
        lines.append(f"`run --shards` does it in two steps; it routes {' or '.join(ways[:2])}.")
    return lines


def _broadcast(replicate: tuple[str, ...], choices: tuple[RoutingTerms, ...]) -> str:
    then = " or ".join(in_words(c) for c in choices[:2] if c) or "the others anyhow"
    return f"a broadcast: every shard gets all of {_listed(replicate)}; then route {then}"


def in_words(choice: RoutingTerms) -> str:
    """`orders by user.id, users by id`."""
    return ", ".join(f"{name} by {as_text(term)}" for name, term in choice.items())


def _blocker(steps: Steps, step: FlowStep, wants: tuple[Origins, ...]) -> Blocker:
    node = step.node
    rule = node.spec.partition
    if isinstance(rule, Never):
        why = f"needs its input in one place: {rule.why}."
        return Blocker(node.id, node.op.name, node.span, why, help=_gathered(steps.typed, node))
    if isinstance(rule, Replicated):
        why = f"needs all of `[{rule.port}]` on every shard."
        return Blocker(node.id, node.op.name, node.span, why)
    equal = "equal items" if isinstance(rule, OnAnyField) else "items of a key"
    why = f"needs all {equal} on one shard."
    details = [*_wanted(wants), *_lost(steps, step)]
    help_ = f"an exchange before `{node.id}`, on its key"
    return Blocker(node.id, node.op.name, node.span, why, tuple(details[:_MOST_SHOWN]), help_)


def _gathered(typed: Typed, node: Node) -> str:
    if steps_of_result(typed, node) is not None:
        return f"a two-step aggregate at `{node.id}`: a result of each shard, then one of these"
    function = node.args.get("f")
    if node.spec.single and function is not None and not function.algebra.associative:
        return (
            f"`associative=True` at `{node.id}`, if its function is: then a two-step aggregate "
            "does, a result of each shard and one of these"
        )
    if all(port.linear for port in node.spec.inputs):
        return ""
    return f"an exchange before `{node.id}` that brings all its items to one shard"


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
                    made = _place(node.span).removesuffix(": ")
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


def _place(span: Span | None) -> str:
    return f"{span.file}:{span.line}:{span.column}: " if span else ""


def _listed(names: Sequence[str]) -> str:
    shown = [f"`{name}`" for name in names]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]
