"""Explanations: for every output the chain of rules that leads from the program to the plan.

Each step applies one rule at one place. An induction rests on a premise, which has steps of its
own. Where a plan feeds itself through `prev`, the stream on the cycle is shown as the program
computes it, and its equation is proved apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydro_core.catalog.classes import Output
from hydro_core.catalog.itemwise import SOURCE
from hydro_core.catalog.spec import functions_of
from hydro_core.ir.graph import reachable
from hydro_core.ir.sexpr import WIDTH, Atom, SExpr, flatten, names_of, printed, show_tree
from hydro_core.optimize.egraph import Space
from hydro_core.optimize.extract import Plan
from hydro_core.optimize.proof import AGAIN, Rewrite, TermId, TermNode
from hydro_core.optimize.replay import Replay, inputs_in
from hydro_core.optimize.rule import BAG, Rule

MAX_STEPS = 400
"""Steps of one chain that are shown."""
ALL_STEPS = 1_000
"""Steps of all chains together that are shown."""
SHOWN = 60
"""Operators and inputs of a term that are shown; what is deeper is named, or left out."""
ALL_SHOWN = 10_000
"""Operators and inputs of all terms together, after which those of further steps are brief."""
BRIEF = 10
"""As `SHOWN`, of a brief term."""
LEFT_OUT = Atom("…")
_OTHERWISE = {
    "definition": "this is how the program defines it",
    AGAIN: "these steps have been shown",
}
INDENT = "  "
_FROM_BRIEF = (
    f"(this is long: after some steps, only {BRIEF} operators of a term are shown, and a name or "
    "`…` for the others)"
)


@dataclass(frozen=True, slots=True)
class RuleStep:
    """One rule, applied at one place of a term."""

    rule: str
    because: str
    backwards: bool
    before: SExpr
    after: SExpr
    whole: SExpr | None
    """The term after the step; None where it is too large to be shown."""
    premises: tuple[Chain, ...] = ()
    brief: bool = False
    """Whether less of its terms is shown, since so much has been shown before."""

    def as_json(self) -> dict[str, Any]:
        """The step as `--format json` prints it."""
        return {
            "rule": self.rule,
            "because": self.because,
            "backwards": self.backwards,
            "before": flatten(self.before),
            "after": flatten(self.after),
            "whole": None if self.whole is None else flatten(self.whole),
            "premises": [p.as_json() for p in self.premises],
            "brief": self.brief,
        }


@dataclass(frozen=True, slots=True)
class Chain:
    """A proof that two terms are equal."""

    start: SExpr
    end: SExpr
    steps: tuple[RuleStep, ...]
    whole: bool = True
    """Whether these are all steps: a long chain is shown in part."""

    def as_json(self) -> dict[str, Any]:
        """The proof as `--format json` prints it."""
        return {
            "start": flatten(self.start),
            "end": flatten(self.end),
            "steps": [s.as_json() for s in self.steps],
            "whole": self.whole,
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
        lines += _steps(self.chain, 1)
        if any(map(_is_brief, (self.chain, *self.equations))):
            lines.insert(0, _FROM_BRIEF)
        if not self.chain.steps and self.chain.whole:
            lines.append(f"{INDENT}which is the plan as it stands")
        for equation in self.equations:
            lines += ["", "and, of a stream that feeds itself,", *_block(equation.start, 1)]
            lines += _steps(equation, 1)
        return "\n".join(lines)


def derivations(
    replay: Replay, space: Space, plan: Plan, rules: Sequence[Rule]
) -> tuple[Derivation, ...]:
    """The derivation of every output."""
    terms, broken = replay.terms_of(space, plan)
    bodies = {cls: replay.body(space, plan, cls, terms) for cls in broken}
    writer = _Writer(replay, {r.name: r for r in rules})
    equations = {cls: writer.chain(terms[cls], body) for cls, body in bodies.items()}
    found = []
    for name, root in zip(replay.problem.roots, space.roots, strict=True):
        needed = reachable([root], inputs_in(space, plan))
        chain = writer.chain(replay.streams[name], terms[root])
        rest = tuple(e for cls, e in equations.items() if cls in needed)
        found.append(Derivation(name, chain, rest))
    return tuple(found)


class _Writer:
    """Turns proofs into steps that can be read."""

    def __init__(self, replay: Replay, rules: Mapping[str, Rule]) -> None:
        self._closure = replay.closure
        self._problem = replay.problem
        self._rules = rules
        self._names = names_of(fn for p in replay.problem.payloads for fn in functions_of(p.args))
        self._streams = {term: name for name, term in replay.streams.items()}
        self._open: set[tuple[TermId, TermId]] = set()
        self._trees: dict[tuple[TermId, int], SExpr] = {}
        self._looks: dict[TermId, int] = {}
        self._looks_of: dict[tuple[object, ...], int] = {}
        self._left = ALL_STEPS
        self._room = ALL_SHOWN

    def chain(self, start: TermId, end: TermId) -> Chain:
        """The proof that two terms are equal."""
        rewrites, whole = self._closure.prove(start, end, max(0, min(MAX_STEPS, self._left)))
        self._left -= len(rewrites)
        steps = tuple(step for r in rewrites if (step := self._step(r)) is not None)
        shown = SHOWN if self._room > 0 else BRIEF
        return Chain(self.tree(start, shown), self.tree(end, shown), steps, whole)

    def tree(self, term: TermId, shown: int = SHOWN) -> SExpr:
        """A term as it is printed, so many operators of it."""
        if (term, shown) not in self._trees:
            self._trees[term, shown] = self._make(term, shown)
        return self._trees[term, shown]

    def _make(self, term: TermId, shown: int) -> SExpr:
        node = self._closure.terms[term]
        if shown < 1:
            name = self._streams.get(term, "")
            return Atom(name) if name.isidentifier() else LEFT_OUT
        if node.shape.startswith("cut "):
            return Atom(node.shape.removeprefix("cut cut "))
        if node.shape == BAG.name:
            return self.tree(node.inputs[0], shown)
        shares = tuple(self._shares(node, shown - 1))
        inputs = tuple(map(self.tree, node.inputs, shares))
        shape = self._problem.shapes[node.shape]
        if shape.op is None:
            head = node.shape.removesuffix("!")
            return (Atom(head), *inputs) if inputs else Atom(head)
        payload = None if node.payload is None else self._problem.payloads[node.payload]
        if payload is None:
            return (Atom(shape.op.name), *inputs)
        if shape.op is SOURCE:
            return Atom(payload.args["name"])
        if isinstance(shape.cls, Output):
            return inputs[0]
        head = f"{shape.op.name}[{payload.port}]" if payload.port else shape.op.name
        given = tuple(map(Atom, printed(shape.op, payload.args, self._names)))
        return (Atom(head), *given, *inputs)

    def _shares(self, node: TermNode, shown: int) -> Iterator[int]:
        """How much is shown of each input: small ones whole."""
        left = len(node.inputs)
        for size in (self._closure.sizes[i] for i in node.inputs):
            share = min(size, shown // left)
            shown -= share
            left -= 1
            yield share

    def _look(self, term: TermId) -> int:
        """The same number for terms that are printed alike, were they printed whole."""
        todo = [term]
        while todo:
            node = self._closure.terms[todo[-1]]
            missing = [i for i in node.inputs if i not in self._looks]
            if missing:
                todo += missing
                continue
            inputs = tuple(self._looks[i] for i in node.inputs)
            if node.shape == BAG.name:
                self._looks[todo.pop()] = inputs[0]
                continue
            shape = self._problem.shapes.get(node.shape)
            called = shape.op.name if shape and shape.op else node.shape.removesuffix("!")
            key = (called, node.payload, inputs)
            self._looks[todo.pop()] = self._looks_of.setdefault(key, len(self._looks_of))
        return self._looks[term]

    def _step(self, rewrite: Rewrite) -> RuleStep | None:
        before, after = self._redex(rewrite.before, rewrite.after)
        reason = rewrite.reason
        if self._look(before) == self._look(after):
            return None
        rule = self._rules.get(reason.rule)
        because = rule.because if rule else _OTHERWISE[reason.rule]
        premises = []
        for pair in reason.premises:
            if pair not in self._open and pair[0] != pair[1]:
                self._open.add(pair)
                premises.append(self.chain(*pair))
        brief = self._room <= 0
        shown = BRIEF if brief else SHOWN
        parts = [before, after]
        if self._closure.sizes[rewrite.whole] <= shown:
            parts.append(rewrite.whole)
        self._room -= sum(min(self._closure.sizes[part], shown) for part in parts)
        trees = [self.tree(part, shown) for part in parts]
        whole = trees[2] if len(trees) == 3 else None
        shown_premises = tuple(p for p in premises if p.steps)
        how = (reason.rule, because, reason.back)
        return RuleStep(*how, trees[0], trees[1], whole, shown_premises, brief)

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
            # where the inner terms are equal, too, the step may have happened further in
            if not (self._is_output(a.shape) or self._closure.same(*inner)):
                return before, after
            before, after = inner

    def _is_output(self, shape: str) -> bool:
        found = self._problem.shapes.get(shape)
        return found is not None and isinstance(found.cls, Output)


def _is_brief(chain: Chain) -> bool:
    return any(s.brief or any(map(_is_brief, s.premises)) for s in chain.steps)


def _steps(chain: Chain, depth: int) -> Iterator[str]:
    pad = INDENT * depth
    for number, step in enumerate(chain.steps, start=1):
        way = ", read backwards" if step.backwards else ""
        yield f"{pad}{number}. {step.rule}{way}: {step.because}"
        yield from _block(step.before, depth + 2)
        yield f"{pad}{INDENT}=>"
        yield from _block(step.after, depth + 2)
        for premise in step.premises:
            yield f"{pad}{INDENT}since"
            yield from _block(premise.start, depth + 2)
            yield from _steps(premise, depth + 2)
        if step.whole is not None and step.whole != step.after:
            yield f"{pad}{INDENT}which makes it"
            yield from _block(step.whole, depth + 2)
    if not chain.whole:
        yield f"{pad}and more steps, which are not shown"


def _block(tree: SExpr, depth: int) -> list[str]:
    return [
        INDENT * depth + line
        for line in show_tree(tree, 0, WIDTH - len(INDENT) * depth).splitlines()
    ]
