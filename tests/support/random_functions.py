"""Random Python functions of an item: aliases, changes in place, branches, loops, patterns."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

from hydro_core.types.ddl import parse_ddl
from hydro_core.types.values import RowItem, Struct

ITEM = parse_ddl("(long, long, array<long>, (long, array<long>), struct<a: long, k: array<long>>)")
NAMES = ["a", "b", "xs", "p", "r", "u", "v", "w"]
PARTS = ["t", "t[0]", "t[1]", "t[2]", "t[3]", "t[3][0]", "t[3][1]", "t[4]", "t[4].a", "t[4]['k']"]
CONSTANTS = ["t._1", "1", "None", "[]", "()"]
# `E` is an expression, `N` a name, `C` a test.
SHAPES = [
    *("(E, E)", "(E,)", "[E, E]", "[E, *E]", "(1, *E)", "{'a': E, 'k': E}", "{**E, 'a': E}"),
    *("(E if C else E)", "(E or E)", "(E and E)", "(N := E)", "(E + E)", "E[0]", "E[-1]", "E[1:]"),
    *("first(E)", "identity(E)", "choose(E, E)", "touch(E)", "keep(E)", "again()", "E.append(E)"),
    *(
        "[E for q in E]",
        "[q for q in E]",
        "[(q, z) for q, z in [E]]",
        "[g for g in [E] if (u := g)]",
    ),
    *("sorted(E, key=str)", "sorted(E, key=touch)", "tuple(E)", "list(E)", "dict(a=E, k=1)"),
    *("max(E, E, key=str)", "E.get('a')", "(lambda z: (z, E))(E)", "(lambda a: (E, a))(E)"),
    *("{'a': E, 'b': E}['b']", "{'a': E, 'b': E}[t[0]]", "f'{N}'"),
]
TESTS = ["t[0] > 50", "t[1] % 2 == 0", "E == E", "E", "E is nil"]
TARGETS = [*NAMES, "a, b", "a, *xs", "(a, b), u", "u, v, w", "a, b, *xs, p, r"]
PATTERNS = [
    *("(a, b)", "(0, b)", "[u, *v]", "(a, b, *_)", '{"a": u}', "(a, (b, u)) as w"),
    *("5 | 6", "None", "(a, b) if a", "(a, b, c, d, e)"),
]
SIMPLE = [
    *("T = E", "T = E", "T = E", "N = N = E", "N += E", "N *= E", "return E", "assert C", "E"),
    *(
        "xs.append(E)",
        "u.append(E)",
        "t[2].append(1)",
        "p[1].append(E)",
        "xs[0] = E",
        "raise fail",
    ),
    *("N = lambda a: E", "N = lambda u: E"),
]
HELPERS = """
def identity(z):
    return z
def first(z):
    return z[0]
def choose(a, b):
    if a:
        return b
    return a
"""


def random_function(random: Random) -> str:
    """The text of a function `f` of an item of type `ITEM`."""
    if random.random() < 0.4:
        return f"f = lambda t: {_filled('E', random, 0, [*PARTS, 'u'])}\n"
    lines = ["def f(t):", "    a, b, xs, p, r = t", "    u = v = w = 0", *_block(random, 1)]
    return "\n".join([*lines, f"    return {_filled('E', random, 0)}", ""])


def random_item(random: Random, base: int) -> Struct:
    """An item in which every number is another."""
    numbers = iter(sorted(random.sample(range(base, base + 90), 10)))
    one, many = (lambda: next(numbers)), (lambda: [next(numbers), next(numbers)])
    return Struct((one(), one(), many(), Struct((one(), many())), RowItem(a=one(), k=many())))


def scope_of_helpers() -> dict[str, Any]:
    """What the functions may call that cannot be read, and that changes what it is given."""
    kept: list[Any] = []

    def touch(value: Any = None) -> Any:
        match value:
            case list():
                value.append(7777)
            case tuple():
                list(map(touch, value))
            case dict():
                list(map(touch, dict.values(value)))
        return value

    def keep(value: Any) -> Any:
        kept.append(value)
        return value

    def again() -> None:
        list(map(touch, kept))

    return {"touch": partial(touch), "keep": partial(keep), "again": partial(again)}


def _filled(shape: str, random: Random, depth: int, parts: list[str] | None = None) -> str:
    """The shape with something in the place of every capital letter."""
    found = []
    for letter in shape:
        match letter:
            case "E":
                found.append(_expression(random, depth, parts))
            case "N":
                found.append(random.choice(NAMES))
            case "T":
                found.append(random.choice(TARGETS))
            case "C":
                found.append(_filled(random.choice(TESTS), random, depth + 1, parts))
            case _:
                found.append(letter)
    return "".join(found).replace("nil", "None").replace("fail", "ValueError")


def _expression(random: Random, depth: int, parts: list[str] | None) -> str:
    if depth > 2 or random.random() < 0.35:
        return random.choice([*(parts or [*NAMES, *PARTS]), *CONSTANTS])
    return _filled(random.choice(SHAPES), random, depth + 1, parts)


def _block(random: Random, depth: int, length: int | None = None) -> list[str]:
    lines = []
    for _ in range(length or random.randint(1, 3)):
        lines += _statement(random, depth)
    return lines


def _statement(random: Random, depth: int) -> list[str]:
    indent = "    " * depth
    kind = random.random() if depth < 4 else 0
    if kind < 0.68:
        return [indent + _filled(random.choice(SIMPLE), random, 1)]
    block, test = partial(_block, random, depth + 1), _filled("C", random, 0)
    match random.choice(["if", "if", "else", "else", "for", "try", "match", "def"]):
        case "if":
            return [f"{indent}if {test}:", *block()]
        case "else":
            return [f"{indent}if {test}:", *block(), f"{indent}else:", *block()]
        case "for":
            return [f"{indent}for {random.choice(NAMES)} in {_filled('E', random, 1)}:", *block()]
        case "try":
            return [f"{indent}try:", *block(), f"{indent}except Exception:", *block()]
        case "match":
            lines = [f"{indent}match {_filled('E', random, 1)}:"]
            for pattern in random.sample(PATTERNS, 2):
                lines += [f"{indent}    case {pattern}:", *_block(random, depth + 2)]
            return lines
        case _:
            name, parameter = random.choice([*NAMES, "first"]), random.choice(["a", "u", "t"])
            result = f"{indent}    return {_filled('E', random, 0)}"
            return [f"{indent}def {name}({parameter}):", *block(length=1), result]
