"""Tables of a deployment as its ledger has them, and the state of every output of a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from hydro_core.analysis.infer import Typed
from hydro_core.artifact.deployment import Deployment
from hydro_core.ir.graph import Endpoint
from hydro_core.program_change import difference as differences
from hydro_core.program_change.difference import NEW, OLD, Difference
from hydro_core.types.item import Row

_KINDS = {"event": "E", "history": "H", "general": "G"}


def records(deployment: Deployment) -> Mapping[str, Mapping[str, Any]]:
    """What the ledger says of its tables."""
    return {
        f"{t.role}/{t.name}": {
            "role": t.role,
            "of": t.name,
            "kind": _KINDS.get(t.kind, "E"),
            "ordered": t.ordered,
        }
        for t in deployment.tables
    }


def output_states(found: Difference) -> dict[str, str]:
    """The state of every output of two programs, verified against their texts.

    An output that one program has is `new` or `gone`. One that both write in the same words is
    `same`, whatever else they have. One of another type is not `same`.
    """
    old, new = found.programs[OLD], found.programs[NEW]
    states = {name: output.change for name, output in found.outputs.items()}
    assert states.keys() == {*old.graph.sinks, *new.graph.sinks}
    for name, state in states.items():
        allowed = _allowed(old, new, name)
        assert state in allowed, f"{name} is {state}, not {allowed}: {found.after.program.texts}"
    return dict(states)


def _allowed(old: Typed, new: Typed, output: str) -> set[str]:
    if output not in new.graph.sinks:
        return {"gone"}
    if output not in old.graph.sinks:
        return {"new"}
    if _written(old, output) == _written(new, output):
        return {"same"}
    items = [typed.outputs[output].item for typed in (old, new)]
    rows = [item for item in items if isinstance(item, Row)]
    if items[0] == items[1] or (len(rows) == 2 and {*rows[0].fields} == {*rows[1].fields}):
        return {"same", "changed"}
    is_other = len(rows) == 2 and {*rows[0].names} != {*rows[1].names}
    return {"columns", "changed"} if is_other else {"changed"}


def _written(typed: Typed, output: str) -> list[Any]:
    """The operators and types behind an output, numbered from it on, without streams' names."""
    numbers: dict[str, int] = {}
    todo = [sink.id for sink in typed.graph.sinks[output]]
    while todo:
        node = todo.pop(0)
        if node not in numbers:
            numbers[node] = len(numbers)
            todo += [end.node for end in typed.graph[node].inputs]
    return [
        (
            *(node.op.name, node.args, typed.types.get(Endpoint(node.id))),
            [(numbers[end.node], end.port) for end in node.inputs],
        )
        for node in (typed.graph[name] for name in numbers)
    ]


def judge_differences(
    monkeypatch: pytest.MonkeyPatch,
    stated: Mapping[tuple[str, str], Mapping[str, str]],
) -> None:
    """Has every difference that is found judged by `output_states`.

    `stated` are pairs of programs by their texts, with the state of each of their outputs.
    """
    compared: Callable[..., Difference] = differences.difference

    def judged(before: Deployment, after: Deployment, *more: Any) -> Difference:
        found = compared(before, after, *more)
        states = output_states(found)
        texts = tuple("".join(d.program.texts.values()) for d in (before, after))
        assert states == stated.get((texts[0], texts[1]), states)
        return found

    monkeypatch.setattr(differences, "difference", judged)
