"""Rules as lines: a name, an equation between patterns, its conditions, and why it holds.

    delta-persist: (delta (persist ?a)) => ?a
        what is new in a history is the batch

A pattern is a variable `?a` or `(shape ?payload pattern …)`; a shape that carries arguments names
them first. `when` holds equations `?x = (chain (prev ?x) ?b)` and facts `(growing ?n)`. A
conclusion that is a fact derives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hydro_core.ir.sexpr import Atom, SExpr, read
from hydro_core.optimize.shape import Shape

Line = tuple[str, ...]
"""A rule as it is written: its name, its equation, why it holds, and its conditions."""

FACTS: Mapping[str, str] = {
    "growing": "S",
    "empty": "S",
    "itemless": "SP",
    "accumulates": "P",
    "absorbs": "P",
    "mergeable": "P",
    "moves": "P",
    "parts": "PPP",
    "moving": "PPP",
    "tails": "PPP",
    "first_of_key": "PPP",
    "first_of_all": "PPP",
    "itself": "P",
    "steps_in_order": "PPP",
    "one_key": "PPPP",
    "distinct_of": "PPP",
    "apart": "PPPPP",
    "opposite": "PP",
    "join_left": "PPP",
    "join_right": "PPP",
    "cross_left": "PP",
    "cross_right": "PP",
    "on_keys": "PPP",
    "composed": "PPP",
    "conjunct": "PPP",
    "total": "P",
    "passes": "P",
    "joined": "SPPSS",
    "kept": "SPP",
    "first": "P",
    "equates": "PP",
    "equates_as": "PPP",
}
"""What may be known beside equations: of streams (S) and of arguments (P)."""


@dataclass(frozen=True, slots=True)
class Var:
    """A variable: it stands for a stream, or for the arguments of a node."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True, slots=True)
class Pat:
    """A node: its shape's name, what its arguments are called, and its inputs."""

    shape: str
    payload: Var | None
    inputs: tuple[Pattern, ...]

    def __str__(self) -> str:
        payload = () if self.payload is None else (self.payload,)
        return f"({' '.join((self.shape, *map(str, (*payload, *self.inputs))))})"


Pattern = Var | Pat


@dataclass(frozen=True, slots=True)
class Equal:
    """A condition: both patterns stand for one class."""

    left: Pattern
    right: Pattern

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something known beside equations: `(growing ?n)`, `(opposite ?s ?t)`."""

    name: str
    args: tuple[Var, ...]

    def __str__(self) -> str:
        return f"({' '.join((self.name, *map(str, self.args)))})"


@dataclass(frozen=True, slots=True)
class Rule:
    """`lhs` may be replaced by `rhs` where `when` holds; a `rhs` that is a fact is derived."""

    name: str
    lhs: Pattern
    rhs: Pattern | Fact
    because: str
    when: tuple[Equal | Fact, ...] = ()
    subsume: bool = False
    """The left side need not be looked at again."""

    def __str__(self) -> str:
        conditions = f" when {', '.join(map(str, self.when))}" if self.when else ""
        return f"{self.lhs} => {self.rhs}{conditions}"

    def patterns(self) -> Iterator[Pattern]:
        yield from self._needed()
        if not isinstance(self.rhs, Fact):
            yield self.rhs

    def _needed(self) -> Iterator[Pattern]:
        """What must be there for the rule to fire."""
        for condition in self.when:
            if isinstance(condition, Equal):
                yield from (condition.left, condition.right)
        yield self.lhs

    def shapes(self) -> frozenset[str]:
        """The names of the shapes that must be there for the rule to fire."""
        return frozenset(s for pattern in self._needed() for s in shapes_in(pattern))

    def makes(self) -> frozenset[str]:
        """The names of the shapes that the rule introduces."""
        return frozenset() if isinstance(self.rhs, Fact) else frozenset(shapes_in(self.rhs))

    def variables(self) -> Mapping[str, str]:
        """The variables with their kinds: S for a stream, P for arguments."""
        found: dict[str, str] = {}
        for condition in self.when:
            if isinstance(condition, Fact):
                for var, kind in zip(condition.args, FACTS[condition.name], strict=True):
                    found.setdefault(var.name, kind)
        for pattern in self.patterns():
            _kinds(pattern, found)
        return found


def lines(text: str) -> tuple[Line, ...]:
    r"""Rules as they are written: a name and an equation, then its conditions and why it holds.

    >>> lines("injective: ?a => ?b\n  when ?x = (persist ?a)\n  equal histories are equal")
    (('injective', '?a => ?b', 'equal histories are equal', '?x = (persist ?a)'),)
    """
    found: list[list[str]] = []
    for line in filter(str.strip, text.splitlines()):
        part = line.strip()
        if part == line:
            name, _, equation = line.partition(": ")
            found.append([name, equation, ""])
        elif part.startswith("when "):
            found[-1].append(part.removeprefix("when "))
        elif part.startswith(("(", "=>", "?")):
            found[-1][1] = f"{found[-1][1]} {part}".strip()
        else:
            found[-1][2] = f"{found[-1][2]} {part}".strip()
    return tuple(map(tuple, found))


def rule(
    name: str,
    text: str,
    because: str,
    shapes: Mapping[str, Shape],
    *when: str,
    subsume: bool = False,
) -> tuple[Rule, ...]:
    """The rules of one line: `=>` one, `<=>` two, the second named `…-back`."""
    arrow = "<=>" if "<=>" in text else "=>"
    left, right = (_pattern(read(side.strip()), shapes) for side in text.split(arrow))
    conditions = tuple(_condition(w, shapes) for w in when)
    if isinstance(left, Fact):
        raise TypeError(f"rule {name} rewrites a fact")
    forth = Rule(name, left, right, because, conditions, subsume)
    if arrow == "=>" or isinstance(right, Fact):
        return (forth,)
    return (forth, Rule(f"{name}-back", right, left, because, conditions))


def _condition(text: str, shapes: Mapping[str, Shape]) -> Equal | Fact:
    if "=" in text:
        left, right = (_pattern(read(side.strip()), shapes) for side in text.split("="))
        if isinstance(left, Fact) or isinstance(right, Fact):
            raise ValueError(f"{text} is not an equation between streams")
        return Equal(left, right)
    found = _pattern(read(text), shapes)
    if not isinstance(found, Fact):
        raise TypeError(f"{text} is not a fact")
    return found


def shapes_in(pattern: Pattern) -> Iterator[str]:
    if isinstance(pattern, Pat):
        yield pattern.shape
        for child in pattern.inputs:
            yield from shapes_in(child)


def _pattern(tree: SExpr, shapes: Mapping[str, Shape]) -> Pattern | Fact:
    if isinstance(tree, Atom):
        return _variable(tree)
    head, *rest = tree
    if not isinstance(head, Atom):
        raise TypeError(f"{tree} has no shape")
    if head.text in FACTS:
        return Fact(head.text, tuple(_variable(r) for r in rest))
    shape = shapes[head.text]
    payload = _variable(rest.pop(0)) if shape.payload else None
    inputs = tuple(_pattern(r, shapes) for r in rest)
    if len(inputs) != len(shape.inputs) or any(isinstance(i, Fact) for i in inputs):
        raise ValueError(f"{shape.name} does not take these inputs: {tree}")
    return Pat(shape.name, payload, inputs)  # type: ignore[arg-type]


def _variable(tree: SExpr) -> Var:
    if not isinstance(tree, Atom) or not tree.text.startswith("?"):
        raise TypeError(f"{tree} is not a variable")
    return Var(tree.text[1:])


def _kinds(pattern: Pattern, found: dict[str, str]) -> None:
    match pattern:
        case Var(name):
            found.setdefault(name, "S")
        case Pat(_, payload, inputs):
            if payload is not None:
                found.setdefault(payload.name, "P")
            for child in inputs:
                _kinds(child, found)
