"""How a program can be cut into shards, and the answer in words, its terms as people and programs
write them: `user.id`, `["0", "=_ % 2"]`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from hydro_core.analysis.partition.locations import RoutingTerms
from hydro_core.analysis.partition.terms import At, KeyTerm, fields_of
from hydro_core.errors import Span
from hydro_core.functions.from_tree import Syntax, called
from hydro_core.functions.tree import Const, Op, Param

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
    """Of a key: what it would be routed on, or where its fields got lost."""


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
    """The place before a message: `file:line:column: `."""
    return f"{span.file}:{span.line}:{span.column}: " if span else ""


def _listed(names: Sequence[str]) -> str:
    shown = [f"`{name}`" for name in names]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


STEP = "="
"""A path may end in a function of what it leads to, an expression in `_`: `=_ % 2`."""


def as_path(term: KeyTerm) -> list[str]:
    """The way to a value: the steps to a field, and maybe the expression of what is there.

    >>> as_path(At(("user", "id")))
    ['user', 'id']
    >>> as_path(Op("%", (At(("0",)), Const(2))))
    ['0', '=_ % 2']
    """
    if isinstance(term, At):
        return list(term.path)
    paths = sorted(fields_of(term))  # of these, the first and the last have the least in common
    ends = zip(paths[0], paths[-1], strict=False)
    around = [step for step, _ in takewhile(lambda pair: pair[0] == pair[1], ends)]
    return [*around, STEP + _text(term, len(around))]


def as_text(term: KeyTerm) -> str:
    """The value as a person names it: `user.id`, `(the item)`, `_[0] % 2`."""
    if isinstance(term, At):
        return ".".join(term.path) or "(the item)"
    return _text(term, 0)


def _text(term: KeyTerm, skipped: int) -> str:
    return ast.unparse(ast.fix_missing_locations(_Shown(skipped).expr(term)))


class _Shown(Syntax):
    """Syntax of terms, in which `_` stands for what the first steps of all paths lead to."""

    def __init__(self, skipped: int) -> None:
        super().__init__(shown={})
        self._skipped = skipped

    def _param(self, node: Param, around: None) -> ast.expr:
        found: ast.expr = ast.Name("_", ast.Load())
        for step in node.path[self._skipped :] if isinstance(node, At) else ():
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
