"""Semantic hash of a stream: a hash of the sub-program that computes it, in a normal form.

Two streams with one hash have the same items at every tick, so a stored table of one serves the
other. The hash ignores names, the spelling of functions (they are hashed in their normal form) and
of projections, arguments at their defaults, operators that forward their input unchanged, and the
order of the inputs of a union.

Stored state is identified by its hash, so a hash is the same in every release. Another way to
compute it is another `VERSION`, which every hash begins with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from hydro_core.analysis.conditions import without_conditions
from hydro_core.analysis.identity import applied_to, projection
from hydro_core.analysis.infer import Typed
from hydro_core.catalog.classes import passes_on
from hydro_core.catalog.spec import Aggregate, Arg, OverFunction
from hydro_core.functions.forms import printed, stored_form
from hydro_core.functions.tree import Fn, children
from hydro_core.ir.graph import Endpoint, Node, NodeId, components, predecessors
from hydro_core.types.item import ItemType, Order

VERSION = "meaning 2"
NO_HASHES: Mapping[NodeId, str] = MappingProxyType({})


def program_hashes(typed: Typed) -> Mapping[NodeId, str]:
    typed = without_conditions(typed)
    return hashes(typed, components(predecessors(typed.graph)))


def hashes(
    typed: Typed, groups: Sequence[Sequence[NodeId]], known: Mapping[NodeId, str] = NO_HASHES
) -> Mapping[NodeId, str]:
    """The semantic hash of every node.

    In a cycle, hashes are refined as often as it has nodes: then nodes that differ in anything have
    different hashes.

    Args:
        typed: the program or plan.
        groups: cycles and single nodes, each after those that it reads.
        known: the hashes of nodes that compute streams of the program which `typed` is a plan of.
    """
    found: dict[NodeId, str] = {}
    for group in groups:
        own = {node: _own(typed.graph[node], typed) for node in group}
        found.update(own)
        found.update({node: known[node] for node in group if node in known})
        rest = [node for node in group if node not in known]
        for _ in rest:
            found.update(
                {node: _with_inputs(own[node], typed.graph[node], typed, found) for node in rest}
            )
    return found


def hash_of(stream: Endpoint, found: Mapping[NodeId, str], *more: str) -> str:
    """The semantic hash of one output of a node; `more` distinguishes stored representations of
    it.
    """
    return _digest(found[stream.node], stream.port, *more)


def _own(node: Node, typed: Typed) -> str:
    if not node.inputs:
        # the type of an input is the inferred one, wherever it is declared
        given = [f"{e.port}:{t.item}" for e, t in typed.types.items() if e.node == node.id]
        return _digest(node.op.name, *sorted(given), *_arguments(node, typed, "schema", "fds"))
    made = projection(node, typed)
    if made is not None:
        columns = zip(made.names, map(printed, children(made)), strict=True)
        return _digest("projection", _form(("project", *columns)))
    return _digest(node.op.name, *_arguments(node, typed))


def _arguments(node: Node, typed: Typed, *without: str) -> list[str]:
    """The arguments that differ from their defaults."""
    found = []
    for name, value in sorted(node.args.items()):
        arg = node.op.arg(name)
        if arg is not None and (arg.kind in without or _is_default(arg, value)):
            continue
        found.append(f"{name}={_text(value, applied_to(node, arg, typed))}")
    return found


def _is_default(arg: Arg, value: Any) -> bool:
    return not arg.required and type(value) is type(arg.default) and bool(value == arg.default)


def _with_inputs(own: str, node: Node, typed: Typed, found: Mapping[NodeId, str]) -> str:
    inputs = [
        hash_of(stream, found) if stream.port else found[stream.node] for stream in node.inputs
    ]
    if passes_on(node.cls) and len(inputs) == 1:
        return inputs[0]
    if node.spec.variadic and typed.of(node.id).order is Order.NONE:
        inputs.sort()
    return _digest(own, *inputs)


def _text(value: Any, over: tuple[ItemType, ...]) -> str:
    """Canonical text of an argument."""
    match value:
        case Fn():
            return _form(stored_form(value, over))
        case Aggregate(function, arguments) | OverFunction(function, arguments):
            return f"{function}({', '.join(_text(a, over) for a in arguments)})"
        case tuple() | list():
            kind = "list" if isinstance(value, list) else "tuple"
            return f"{kind}({', '.join(_text(v, over) for v in value)})"
        case Mapping():
            inside = (f"{_text(k, over)}: {_text(v, over)}" for k, v in value.items())
            return f"row({', '.join(inside)})"
        case str():
            return repr(value)
        case _:
            return f"{type(value).__name__} {value!s}"


def _form(form: Any) -> str:
    """The text of a stored form: nested tuples of strings and numbers."""
    if isinstance(form, tuple):
        return f"({' '.join(map(_form, form))})"
    return repr(form)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join((VERSION, *parts)).encode()).hexdigest()[:24]
