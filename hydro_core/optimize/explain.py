"""Explanations: for every output the chain of rules that leads from the program to the plan.

Each step applies one rule at one place. An induction rests on a premise, which has steps of its
own. Where a plan feeds itself through `prev`, the stream on the cycle is shown as the program
computes it, and its equation is proved apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydro_core.functions.fn import Fn
from hydro_core.ir.arguments import printed
from hydro_core.ir.sexpr import WIDTH, Atom, Tree, flatten, show_tree
from hydro_core.optimize.extract import Plan
from hydro_core.optimize.proof import Closure, Rewrite, TermId
from hydro_core.optimize.replay import Replay
from hydro_core.optimize.rule import Rule
from hydro_core.optimize.space import ClassId, Problem, Space

MAX_STEPS = 400
"""Steps of one chain that are shown."""
INDENT = "  "


@dataclass(frozen=True, slots=True)
class Step:
    """One rule, applied at one place of a term."""

    rule: str
    because: str
    backwards: bool
    before: Tree
    after: Tree
    whole: Tree
    """The term after the step."""
    premises: tuple[Chain, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The step as `--format json` prints it."""
        return {
            "rule": self.rule,
            "because": self.because,
            "backwards": self.backwards,
            "before": flatten(self.before),
            "after": flatten(self.after),
            "whole": flatten(self.whole),
            "premises": [p.as_json() for p in self.premises],
        }


@dataclass(frozen=True, slots=True)
class Chain:
    """A proof that two terms are equal."""

    start: Tree
    end: Tree
    steps: tuple[Step, ...]

    def as_json(self) -> dict[str, Any]:
        """The proof as `--format json` prints it."""
        return {
            "start": flatten(self.start),
            "end": flatten(self.end),
            "steps": [s.as_json() for s in self.steps],
        }


@dataclass(frozen=True, slots=True)
class Derivation:
    """How an output's plan follows from the program; `equations` are those of streams that feed
    themselves.
    """

    output: str
    chain: Chain
    equations: tuple[Chain, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The derivation as `--format json` prints it."""
        equations = [c.as_json() for c in self.equations]
        return {"output": self.output, **self.chain.as_json(), "equations": equations}

    def render(self) -> str:
        """The derivation as text."""
        lines = [f"{self.output} =", *_block(self.chain.start, 1)]
        lines += _steps(self.chain.steps, 1)
        if not self.chain.steps:
            lines.append(f"{INDENT}which is the plan as it stands")
        for equation in self.equations:
            lines += ["", "and, of a stream that feeds itself,", *_block(equation.start, 1)]
            lines += _steps(equation.steps, 1)
        return "\n".join(lines)


def derivations(
    replay: Replay, space: Space, plan: Plan, rules: Sequence[Rule]
) -> tuple[Derivation, ...]:
    """The derivation of every output."""
    writer = _Writer(replay.closure, replay.problem, {r.name: r for r in rules})
    terms, broken = replay.terms_of(space, plan)
    equations = {
        cls: writer.chain(terms[cls], replay.body(space, plan, cls, terms)) for cls in broken
    }
    found = []
    for name, root in zip(replay.problem.roots, space.roots, strict=True):
        start, end = replay.streams[name], terms[root]
        needed = _reachable(space, plan, root)
        chain = writer.chain(start, end)
        found.append(
            Derivation(name, chain, tuple(e for cls, e in equations.items() if cls in needed))
        )
    return tuple(found)


class _Writer:
    """Turns proofs into steps that can be read."""

    def __init__(self, closure: Closure, problem: Problem, rules: Mapping[str, Rule]) -> None:
        self._closure = closure
        self._problem = problem
        self._rules = rules
        self._names = _names(problem)
        self._open: set[tuple[TermId, TermId]] = set()
        self._trees: dict[TermId, Tree] = {}

    def chain(self, start: TermId, end: TermId) -> Chain:
        """The proof that two terms are equal."""
        rewrites = self._closure.prove(start, end)[:MAX_STEPS]
        steps = tuple(step for r in rewrites if (step := self._step(r)) is not None)
        return Chain(self.tree(start), self.tree(end), steps)

    def tree(self, term: TermId) -> Tree:
        """A term as it is printed."""
        if term not in self._trees:
            self._trees[term] = self._make(term)
        return self._trees[term]

    def _make(self, term: TermId) -> Tree:
        node = self._closure.terms[term]
        inputs = tuple(map(self.tree, node.inputs))
        if node.shape.startswith("cut "):
            return Atom(node.shape.removeprefix("cut cut "))
        if node.shape == "bag":
            return inputs[0]
        shape = self._problem.shapes[node.shape]
        if shape.op is None:
            head = node.shape.removesuffix("!")
            return (Atom(head), *inputs) if inputs else Atom(head)
        payload = None if node.payload is None else self._problem.payloads[node.payload]
        if payload is None:
            return (Atom(shape.op.name), *inputs)
        if shape.op.name == "source":
            return Atom(payload.args["name"])
        if shape.op.name == "sink":
            return inputs[0]
        head = f"{shape.op.name}[{payload.port}]" if payload.port else shape.op.name
        given = tuple(map(Atom, printed(shape.op, payload.args, self._names)))
        return (Atom(head), *given, *inputs)

    def _step(self, rewrite: Rewrite) -> Step | None:
        before, after = self._redex(rewrite.before, rewrite.after)
        reason = rewrite.reason
        if self.tree(before) == self.tree(after):
            return None
        rule = self._rules.get(reason.rule)
        because = rule.because if rule else "this is how the program defines it"
        premises = []
        for pair in reason.premises:
            if pair in self._open or pair[0] == pair[1]:
                continue
            self._open.add(pair)
            premises.append(self.chain(*pair))
        return Step(
            reason.rule,
            because,
            reason.back,
            self.tree(before),
            self.tree(after),
            self.tree(rewrite.after),
            tuple(p for p in premises if p.steps),
        )

    def _redex(self, before: TermId, after: TermId) -> tuple[TermId, TermId]:
        """The place at which the terms differ."""
        while True:
            a, b = self._closure.terms[before], self._closure.terms[after]
            if (a.shape, a.payload, len(a.inputs)) != (b.shape, b.payload, len(b.inputs)):
                return before, after
            differ = [i for i, j in enumerate(a.inputs) if j != b.inputs[i]]
            if len(differ) != 1:
                return before, after
            inner = a.inputs[differ[0]], b.inputs[differ[0]]
            if a.shape.split(":")[0] in {"sink", "sink!"} or self._is_inside(inner):
                before, after = inner
            else:
                return before, after

    def _is_inside(self, pair: tuple[TermId, TermId]) -> bool:
        """Whether the step may have happened further in: the inner terms are equal, too."""
        return self._closure.same(*pair)


def _names(problem: Problem) -> Mapping[Fn, str]:
    names: dict[Fn, str] = {}
    for payload in problem.payloads:
        for fn in _functions(tuple(payload.args.values())):
            if fn not in names:
                base = fn.name if fn.name.isidentifier() else "fn"
                taken = set(names.values())
                number = 1
                name = base
                while name in taken:
                    number += 1
                    name = f"{base}_{number}"
                names[fn] = name
    return names


def _functions(value: object) -> Iterator[Fn]:
    if isinstance(value, Fn):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _functions(part)
    elif hasattr(value, "arguments"):
        yield from _functions(value.arguments)


def _reachable(space: Space, plan: Plan, root: ClassId) -> set[ClassId]:
    found = {root}
    todo = [root]
    while todo:
        for child in space.nodes[plan.choice[todo.pop()]].inputs:
            if child not in found:
                found.add(child)
                todo.append(child)
    return found


def _steps(steps: Sequence[Step], depth: int) -> Iterator[str]:
    pad = INDENT * depth
    for number, step in enumerate(steps, start=1):
        way = ", read backwards" if step.backwards else ""
        yield f"{pad}{number}. {step.rule}{way}: {step.because}"
        yield from _block(step.before, depth + 2)
        yield f"{pad}{INDENT}=>"
        yield from _block(step.after, depth + 2)
        for premise in step.premises:
            yield f"{pad}{INDENT}since"
            yield from _block(premise.start, depth + 2)
            yield from _steps(premise.steps, depth + 2)
        if step.whole != step.after:
            yield f"{pad}{INDENT}which makes it"
            yield from _block(step.whole, depth + 2)


def _block(tree: Tree, depth: int) -> list[str]:
    return [
        INDENT * depth + line
        for line in show_tree(tree, 0, WIDTH - len(INDENT) * depth).splitlines()
    ]
