"""Rules that carry what holds into the next tick, where some of it may go."""

from __future__ import annotations

from collections.abc import Iterator

from hydro_core.lang.rules.syntax import DedalusRule
from hydro_core.lang.rules.translate import Rules


def carrying(rules: Rules) -> Iterator[DedalusRule]:
    """The rules by which facts of a predicate are carried on, but not all of them as they are.

    A tick goes through all that holds to apply such a rule. One that keeps everything
    (`p(x)@next :- p(x).`) makes a predicate that only grows, of which a tick needs what is new.
    """
    for rule in rules.program.rules:
        own = [a for a in rule.body.positive if a.predicate == rule.head.predicate]
        if rule.time == "next" and own and not _keeps_all(rule):
            yield rule


def _keeps_all(rule: DedalusRule) -> bool:
    body = rule.body
    if len(body.positive) != 1 or body.negative or body.conditions:
        return False
    head, kept = rule.head.arguments, body.positive[0].arguments
    same = [(a.column, a.name) for a in head] == [(a.column, a.name) for a in kept]
    names = {a.name for a in head}
    return same and all(a.kind == "variable" for a in head) and len(names) == len(head)
