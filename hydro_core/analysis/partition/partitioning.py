"""Partitioning of a program: the answer, its obstacles and its terms in words."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.partition.locations import RoutingTerms, locate
from hydro_core.analysis.partition.search import ChoiceSearch, Origins, tables_back
from hydro_core.analysis.partition.steps import FlowStep, Steps, steps_of
from hydro_core.analysis.partition.terms import FieldAt, KeyTerm, fields_of, rewritten, whole
from hydro_core.catalog.spec import Never, OnAnyField, Replicated
from hydro_core.errors import ProgramError, Span
from hydro_core.functions.from_tree import Syntax, called
from hydro_core.functions.tree import Const, Make, Op, Param
from hydro_core.ir.graph import Node
from hydro_core.lang.source import did_you_mean, no_such_input
from hydro_core.types.item import FieldPath, Order, at, leaves

# The answer of `hydrotick partition`: how a program can be cut into shards, or which operator
# forbids it, where, why, and what helps.


On = Mapping[str, str | Sequence[str]]
"""The dotted path, or several, by which each input is routed; "" is the whole item."""


def partition(typed: Typed) -> Partitioning:
    """All minimal choices by which the program can be cut, or the operators that forbid it."""
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
    """The answer for one given choice: it is right, or the first operator that it does not serve.

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
    """The reason why no choice serves an operator; `wants`: choices that would serve it alone."""
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
    """The operators at which the fields of a key stop being fields of an input."""
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
        if (reads, looked) in seen or not isinstance(looked, FieldAt) or reads in steps.sources:
            continue
        seen.add((reads, looked))
        step = steps.of[reads]
        before = [
            (source, found)
            for source, table in zip(step.inputs, tables_back(step), strict=True)
            for found in rewritten(looked, table)
        ]
        if step.inputs and not any(isinstance(found, FieldAt) for _, found in before):
            yield step.node, looked.path
        todo += before


# The answer of the partition search in words; terms are written as `user.id`, `["0", "=_ % 2"]`.


_MOST_SHOWN = 6
_MOST_REPLICATIONS = 3


@dataclass(frozen=True, slots=True)
class Blocker:
    """An operator that forbids to cut the program, and why."""

    node: str
    operator: str
    place: Span | None
    why: str
    details: tuple[str, ...] = ()
    """For a key: routings that would serve it, or the operators at which its fields got lost."""


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
    """How a program can be cut into shards that do not exchange rows.

    The bag sum of the outputs of all shards is then, tick by tick, the output of the program.
    Inputs that a choice names are all routed by one function of the value there, the others by any
    function of their items.
    """

    name: str
    inputs: tuple[str, ...]
    choices: tuple[RoutingTerms, ...]
    """All minimal choices; `({},)`: any routing that is a function of the item."""
    blockers: tuple[Blocker, ...] = ()
    partial: tuple[Replication, ...] = ()
    ordered: tuple[str, ...] = ()
    """The outputs that have an order: each shard's part is in order, and the parts must be merged.
    """
    judged: bool = False
    """True if the answer is about one given choice; another choice may serve where this one fails.
    """
    complete: bool = True
    """False: the search stopped early. The choices are right, and there may be more."""

    @property
    def partitionable(self) -> bool:
        """True if there is a choice."""
        return bool(self.choices)

    @property
    def any(self) -> bool:
        """True if any function of the item may route every input."""
        return self.choices == ({},)

    def as_json(self) -> dict[str, Any]:
        """The object that `--format json` prints."""
        return {
            "partitionable": self.partitionable,
            "any": self.any,
            "keys": [choice_as_json(choice) for choice in self.choices if choice],
            "blocked_by": list(dict.fromkeys(blocker.operator for blocker in self.blockers)),
            "partial": [partial.as_json() for partial in self.partial],
            "ordered": list(self.ordered),
            "complete": self.complete,
        }

    def __str__(self) -> str:
        lines = _choices(self) if self.partitionable else _refusal(self)
        if not self.complete:
            lines.append("There may be more choices: not all were tried.")
        return "\n".join(lines)


def choice_as_json(choice: RoutingTerms) -> dict[str, list[str]]:
    """The paths by which inputs are routed: `{"orders": ["user", "id"]}`."""
    return {name: as_path(term) for name, term in choice.items()}


def _choices_as_json(choices: tuple[RoutingTerms, ...]) -> dict[str, Any]:
    keys = [choice_as_json(choice) for choice in choices if choice]
    return {"keys": keys} if keys else {"any": True} if choices else {}


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
        lines.append(
            f"{place_of(blocker.place)}`{blocker.operator}` ({blocker.node}) {blocker.why}"
        )
        lines += [f"  {detail}" for detail in blocker.details]
    if answer.judged:
        return lines
    for some in answer.partial[:_MOST_REPLICATIONS]:
        then = " or ".join(in_words(c) for c in some.choices[:2] if c) or "the others anyhow"
        all_of = _listed(some.replicate)
        lines.append(f"It can if every shard gets all of {all_of}; then route {then}.")
    return lines


def in_words(choice: RoutingTerms) -> str:
    """`orders by user.id, users by id`."""
    return ", ".join(f"{name} by {as_text(term)}" for name, term in choice.items())


def place_of(span: Span | None) -> str:
    """The location before a message: `file:line:column: `."""
    return f"{span.file}:{span.line}:{span.column}: " if span else ""


def _listed(names: Sequence[str]) -> str:
    shown = [f"`{name}`" for name in names]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


STEP = "="
"""A path may end in a function of the value that it leads to, an expression in `_`: `=_ % 2`."""


def as_path(term: KeyTerm) -> list[str]:
    """The path to a value: the steps to a field, and possibly an expression of the value there.

    >>> as_path(FieldAt(("user", "id")))
    ['user', 'id']
    >>> as_path(Op("%", (FieldAt(("0",)), Const(2))))
    ['0', '=_ % 2']
    """
    if isinstance(term, FieldAt):
        return list(term.path)
    paths = sorted(
        fields_of(term)
    )  # The first and the last of the sorted paths have the shortest common prefix.
    ends = zip(paths[0], paths[-1], strict=False)
    around = [step for step, _ in takewhile(lambda pair: pair[0] == pair[1], ends)]
    return [*around, STEP + _text(term, len(around))]


def as_text(term: KeyTerm) -> str:
    """The value as a person names it: `user.id`, `(the item)`, `_[0] % 2`."""
    if isinstance(term, FieldAt):
        return ".".join(term.path) or "(the item)"
    return _text(term, 0)


def _text(term: KeyTerm, skipped: int) -> str:
    return ast.unparse(ast.fix_missing_locations(_TermSyntax(skipped).expr(term)))


class _TermSyntax(Syntax):
    """Syntax of terms; `_` stands for the value at the common prefix of all paths."""

    def __init__(self, skipped: int) -> None:
        super().__init__(shown={})
        self._skipped = skipped

    def _param(self, node: Param, around: None) -> ast.expr:
        found: ast.expr = ast.Name("_", ast.Load())
        for step in node.path[self._skipped :] if isinstance(node, FieldAt) else ():
            if step.isidentifier():
                found = ast.Attribute(found, step, ast.Load())
            else:
                key = ast.Constant(int(step) if step.isdigit() else step)
                found = ast.Subscript(found, key, ast.Load())
        return found

    def _op(self, node: Op, around: None) -> ast.expr:
        if node.family != "unread":
            return super()._op(node, around)
        parts = (part for part in node.args if not isinstance(part, Const))
        return called(ast.Name(node.name.strip("?()"), ast.Load()), *map(self.expr, parts))
