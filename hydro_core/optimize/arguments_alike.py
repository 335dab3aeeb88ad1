"""Arguments that may stand for each other where programs are compared.

Functions that rules made ask first whether an item is there, where the program's own would fail: so
far as both have values, they are the same. A program that does not fail on the past may take over
from one that did not either.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hydro_core.catalog.spec import Aggregate
from hydro_core.functions.boolean import NULL, boolean_form
from hydro_core.functions.fn import Fn
from hydro_core.functions.normal import NormalForm, normal_form
from hydro_core.optimize.shape import Payload
from hydro_core.optimize.space import Problem


def arguments_alike(problem: Problem) -> Problem:
    """The problem in which arguments that may stand for each other are one."""
    first: dict[object, int] = {}
    same = [first.setdefault(_key(p), number) for number, p in enumerate(problem.payloads)]
    definitions = tuple(
        d if d.payload is None else replace(d, payload=same[d.payload]) for d in problem.definitions
    )
    facts = dict.fromkeys(
        (name, tuple(same[a] if isinstance(a, int) else a for a in args))
        for name, args in problem.facts
    )
    return replace(problem, definitions=definitions, facts=tuple(facts))


def _key(value: Any) -> object:
    match value:
        case Payload(args, port, own):
            return (port, own, tuple((name, _key(argument)) for name, argument in args.entries))
        case Fn():
            form = boolean_form(normal_form(value, value.over), value.over)
            return ("function", value.over, _unguarded(form))
        case Aggregate(function, arguments):
            return (Aggregate, function, _key(arguments))
        case tuple():
            return ("tuple", *map(_key, value))
        case _:
            return (type(value).__name__, repr(value))


def _unguarded(form: Any) -> Any:
    """The form, without the question whether there is what a field is taken of."""
    if not isinstance(form, tuple):
        return form
    found: NormalForm = tuple(map(_unguarded, form))
    match found:
        case ("if", ("compare", item, ("is", null)), otherwise, ("field", of, _) as taken):
            if null == otherwise == NULL and item == of:
                return taken
    return found
