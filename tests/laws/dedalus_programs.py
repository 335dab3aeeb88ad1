"""Random programs of rules, and ticks for them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

INPUTS = {"e": 2, "f": 2, "n": 1}
VARIABLES = ("x", "y", "z", "w")
MOST = 4
"""Values are 0 … MOST."""


@dataclass(frozen=True)
class RuleCase:
    text: str
    ticks: list[dict[str, list[dict[str, int]]]]


def rule_case(random: Random, *, asynchronous: bool = False) -> RuleCase:
    """Layers of predicates: each may use itself and what is in its layer, negate what is below."""
    arity = dict(INPUTS)
    lines = [
        f".input {name}({', '.join(f'c{i}: long' for i in range(count))})"
        for name, count in INPUTS.items()
    ]
    layers: list[list[str]] = []
    for number in range(random.randint(2, 4)):
        layer = [f"p{number}{letter}" for letter in "ab"[: random.randint(1, 2)]]
        arity.update({name: random.randint(1, 3) for name in layer})
        layers.append(layer)
    names = [name for layer in layers for name in layer]
    lines += [f".decl {name}({_columns(arity[name])})" for name in names]
    lines.append(f".output {', '.join(names)}")
    below = list(INPUTS)
    for layer in layers:
        for name in layer:
            for _ in range(random.randint(1, 3)):
                lines.append(_rule(random, name, arity, below, layer))
            if random.random() < 0.2:
                lines.append(f"{name}({_values(random, arity[name])}).")
        below += layer
    for name in (*names, *INPUTS):
        if random.random() < 0.4:
            lines.append(_in_time(random, name, arity, below, "@next"))
        if asynchronous and random.random() < 0.3 and name in names:
            lines.append(_in_time(random, name, arity, below, "@async"))
    return RuleCase("\n".join(lines) + "\n", _ticks(random))


def _columns(count: int) -> str:
    return ", ".join(f"c{i}: long" for i in range(count))


def _values(random: Random, count: int) -> str:
    return ", ".join(str(random.randint(0, MOST)) for _ in range(count))


def _in_time(random: Random, name: str, arity: dict[str, int], known: list[str], at: str) -> str:
    if random.random() < 0.5:
        variables = ", ".join(VARIABLES[: arity[name]])
        kept = f"{name}({variables})"
        negated = _negated(random, arity, known, list(VARIABLES[: arity[name]]))
        return f"{kept}{at} :- {kept}{random.choice(['', f', {negated}'])}."
    rule = _rule(random, name, arity, known, known)
    return rule.replace(" :-", f"{at} :-", 1)


def _rule(
    random: Random, name: str, arity: dict[str, int], below: list[str], same: list[str]
) -> str:
    gathers = random.random() < 0.25
    usable = below if gathers else below + same
    bound: list[str] = []
    count = random.randint(1, 3)
    body = [_atom(random, random.choice(usable), arity, bound, new=True) for _ in range(count)]
    if not bound:
        body.append("n(x)")
        bound.append("x")
    if random.random() < 0.35:
        body.append(_negated(random, arity, below, bound))
    if random.random() < 0.3:
        body.append(
            f"{random.choice(bound)} {random.choice(['<', '!=', '<='])} {_term(random, bound)}"
        )
    if random.random() < 0.3:
        body.append(f"v = ({random.choice(bound)} + {_term(random, bound)}) % {MOST + 1}")
        bound.append("v")
    random.shuffle(body)
    head = [_term(random, bound) for _ in range(arity[name])]
    if gathers:
        call = random.choice(["count({})", "sum({})", "min({})", "max({})", "count_distinct({})"])
        head[random.randrange(len(head))] = call.format(random.choice(bound))
    return f"{name}({', '.join(head)}) :- {', '.join(body)}."


def _term(random: Random, bound: list[str]) -> str:
    return random.choice(bound) if random.random() < 0.85 else str(random.randint(0, MOST))


def _atom(random: Random, name: str, arity: dict[str, int], bound: list[str], *, new: bool) -> str:
    parts = []
    for _ in range(arity[name]):
        kind = random.random()
        if kind < 0.12:
            parts.append("_")
        elif kind < 0.22:
            parts.append(str(random.randint(0, MOST)))
        elif bound and (not new or random.random() < 0.4):
            parts.append(random.choice(bound))
        elif new:
            variable = random.choice(VARIABLES)
            parts.append(variable)
            if variable not in bound:
                bound.append(variable)
        else:
            parts.append("_")
    return f"{name}({', '.join(parts)})"


def _negated(random: Random, arity: dict[str, int], known: list[str], bound: list[str]) -> str:
    return "!" + _atom(random, random.choice(known), arity, bound, new=False)


def _ticks(random: Random) -> list[dict[str, list[dict[str, Any]]]]:
    return [
        {
            name: [
                {f"c{i}": random.randint(0, MOST) for i in range(count)}
                for _ in range(random.choice((0, 1, 3, 5)))
            ]
            for name, count in INPUTS.items()
        }
        for _ in range(random.randint(2, 5))
    ]
