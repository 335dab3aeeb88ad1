"""Nodes under construction: they know each other by number until they get their ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hydro_core.catalog.spec import NO_ARGS, Args, OpSpec, functions_of
from hydro_core.errors import Diagnostic, Span
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId

Wire = tuple[int, str]
"""The output of a draft: its number, and the port where it has several."""


@dataclass(slots=True)
class Draft:
    """A node to be; `name` is what the program calls it."""

    op: OpSpec
    args: Args = NO_ARGS
    span: Span | None = None
    name: str | None = None
    inputs: list[Wire] = field(default_factory=list)

    @property
    def own_name(self) -> str | None:
        """The name that its arguments give it."""
        return self.args.get("name") if self.op.family == "io" else None


def build(
    drafts: Sequence[Draft], name: str = "flow", warnings: Iterable[Diagnostic] = ()
) -> Graph:
    ids = _ids(drafts)
    nodes = (
        Node(
            ids[i],
            draft.op,
            draft.args,
            tuple(Endpoint(ids[source], port) for source, port in draft.inputs),
            draft.span,
        )
        for i, draft in enumerate(drafts)
    )
    return Graph.of(nodes, name, (*warnings, *_unrepeatable(drafts)))


def _unrepeatable(drafts: Sequence[Draft]) -> Iterator[Diagnostic]:
    """Warnings of functions whose results are others when a tick runs again."""
    for draft in drafts:
        for fn in functions_of(draft.args):
            for used, span in fn.unrepeatable:
                yield Diagnostic(
                    "runtime",
                    f"`{draft.op.name}`: the function {fn.name} uses `{used}`, which is not the "
                    "same each time: a tick that runs again, and Spark, may get other results",
                    span or draft.span,
                    draft.op.name,
                    help="give it in as data; what time it is for a tick, `tick()` says",
                    severity="warning",
                )


def _ids(drafts: Sequence[Draft]) -> list[NodeId]:
    """Names first, then inputs and outputs by their own names, then operators and numbers."""
    ids: dict[int, NodeId] = {i: d.name for i, d in enumerate(drafts) if d.name is not None}
    taken = set(ids.values())
    for i, draft in enumerate(drafts):
        own = draft.own_name
        if i not in ids and own is not None:
            ids[i] = free_name(own, taken)
            taken.add(ids[i])
    counts: Counter[str] = Counter()
    for i, draft in enumerate(drafts):
        if i in ids:
            continue
        counts[draft.op.name] += 1
        while f"{draft.op.name}_{counts[draft.op.name]}" in taken:
            counts[draft.op.name] += 1
        ids[i] = f"{draft.op.name}_{counts[draft.op.name]}"
        taken.add(ids[i])
    return [ids[i] for i in range(len(drafts))]


def numbered(drafts: Sequence[Draft], kept: Iterable[int]) -> list[Draft]:
    """The drafts at these numbers, in this order: they know each other by their new ones."""
    chosen = list(kept)
    new = {old: position for position, old in enumerate(chosen)}
    for draft in drafts:
        draft.inputs = [(new[number], port) for number, port in draft.inputs]
    return [drafts[number] for number in chosen]


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with the first number from 2 on that makes it one that is not taken."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def source_args(name: str, **others: Any) -> Args:
    """The arguments of a source, in the entry's order."""
    given: Mapping[str, Any] = {"schema": None, "name": name, "fds": (), **others}
    return Args(tuple(given.items()))
