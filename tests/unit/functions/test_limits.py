"""What a program may cost while it is read: an error says which limit it is beyond."""

from __future__ import annotations

import ast
import json
import resource
import subprocess
import sys
import time
from datetime import date
from functools import reduce

import pytest

from hydro_core.catalog.spec import functions_of
from hydro_core.compile import compile_graph
from hydro_core.errors import ProgramError
from hydro_core.functions.call import compiled
from hydro_core.functions.from_tree import function_of, is_complete
from hydro_core.functions.read import constant
from hydro_core.lang.resolve import parse
from hydro_core.running import given_types
from tests.support.refused import Refused

BYTES, BITS, PLACES = "makes or reads more than 100 MB", "10,000 bits", "6,000 places"
WIDE, STEPS = "wider than 9,999", "300,000 steps"
CONSTANTS = {
    "['a' * 10**6 for i in range(70000)]": BYTES,
    "'%s' * 100000 % tuple(['x' * 1000] * 100000)": BYTES,
    "int(Decimal('1E+99999999'))": PLACES,
    "round(Decimal('1E+999999'))": PLACES,
    "'%d' % Decimal('1E+99999999')": PLACES,
    "f\"{Decimal('1E+99999999'):f}\"": PLACES,
    "f\"{Decimal('1E-99999999')}\"": PLACES,
    "sum([[0] * 10**6] * 10**5, [])": BYTES,
    "sum([[0]] * 10**5, [])": BYTES,
    "2 ** 10**9": BITS,
    "1 << 10**9": BITS,
    "'x'.ljust(10**10)": BYTES,
    "('\\t' * 10**5).expandtabs(10**6)": BYTES,
    "(1).to_bytes(10**10, 'big')": BYTES,
    "''.join(['x' * 1000] * 10**6)": BYTES,
    "('x' * 10**5).join([''] * 10**5)": BYTES,
    "('a' * 10**5).replace('a', 'b' * 10**4)": BYTES,
    "[('a ' * 500000).split() for i in range(1000)]": BYTES,
    "str([[['x' * 1000] * 1000] * 1000])": BYTES,
    "[[[[[[[[0] * 99] * 99] * 99] * 99] * 99] * 99] * 99]": BYTES,
    "sorted([[0] * 10**5 for i in range(1000)])": BYTES,
    "len({(0,) * 10**5 for i in range(10**5)})": BYTES,
    "[x in list(range(10**5)) for x in range(10**5)]": BYTES,
    "[{'a': 'x' * 10**6} for i in range(70000)]": BYTES,
    "range(10**15)": BYTES,
    "[x * y for x in range(1000) for y in range(1000)]": STEPS,
    "f'{1:>99999}'": WIDE,
    "'%99999d' % 1": WIDE,
    "'%9999d' * 100000 % tuple([1] * 100000)": BYTES,
    "[f'{i:>9999}' for i in range(10**5)]": BYTES,
    "0x" + "f" * 5000: BITS,
}


_MEMORY = 500_000_000
_COMPUTE = f"""
import ast, json, resource, sys
from hydro_core.errors import TypeProblem
from hydro_core.functions.call import compiled
from hydro_core.functions.read import constant
resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY}))
said = dict()
for source in json.load(sys.stdin):
    try:
        constant(ast.parse(source, mode="eval").body, dict())
    except TypeProblem as problem:
        said[source] = str(problem)
json.dump(said, sys.stdout)
"""


def test_constants_that_take_too_much_are_refused() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(
        [sys.executable, "-c", _COMPUTE],
        input=json.dumps(list(CONSTANTS)),
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(done.stdout)
    assert list(said) == list(CONSTANTS)
    assert [s for s, limit in CONSTANTS.items() if limit not in said[s]] == []
    taken = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert taken < 2 * len(CONSTANTS)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("len(list(range(10**5)))", 10**5),
        ("len('a' * 10**6)", 10**6),
        ("sum([i * i for i in range(1000)])", 332833500),
        ("Decimal('1E+20') + 1", 10**20 + 1),
        ("3 ** 40 % 7", 4),
        ("f'{5:>{4}}'", "   5"),
        ("len([c for c in 'abc' * 1000 if c in 'ab'])", 2000),
    ],
)
def test_a_constant_within_the_limits(source: str, value: object) -> None:
    assert constant(ast.parse(source, mode="eval").body, {}) == value


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("a" + " -> map(lambda x: (x, x))" * 20, "10,000 fields"),
        ('a -> map(lambda x: {"a": x})' + " -> map(lambda r: {'a': r, 'b': r})" * 20, "fields"),
        ("a" + " -> map(lambda x: [x])" * 300, "nest deeper than 100"),
        (
            "x0 = a -> cross(right=a)"
            + "".join(f"\nx{i} = x{i - 1} -> cross(right=x{i - 1})" for i in range(1, 20)),
            "10,000 fields",
        ),
    ],
)
def test_a_type_that_is_too_large_is_refused(program: str, said: str, refused: Refused) -> None:
    start = time.process_time()
    graph = parse(f'a = source("long")\n{program} -> out')
    with refused(ProgramError, "type"):
        compile_graph(graph, given_types(graph, {}, []))
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "source",
    [
        "lambda x: 9 ** 9 ** 9 + x",
        "lambda x: x ** (10 ** 12 + x) > 0",
        "lambda x: x << 10 ** 12 > 0",
        "lambda x: len('ab' * (x * 10 ** 12))",
        "lambda x: len([x] * (x * 10 ** 12))",
        "lambda x: len((x * 10 ** 12) * (x, x))",
        "lambda x: x ** 400_000 * x ** 400_000 > 0",
        *(f"lambda x: len('a'.{name}(x * 10 ** 12))" for name in ("ljust", "rjust", "center")),
        "lambda x: len('a'.zfill(x * 10 ** 12))",
        "lambda x: len(lpad('a', x * 10 ** 12))",
        "lambda x: len(rpad('a', x * 10 ** 12, 'b'))",
        "lambda x: len('a\\tb'.expandtabs(x * 10 ** 9))",
        "lambda x: len('a\\tb'.expandtabs(tabsize=x * 10 ** 9))",
        "lambda x: len(f'{x:>{x * 10 ** 9}}')",
        "lambda x: len(f'{x / 7:.{x * 10 ** 9}f}')",
        "lambda x: len('%*d' % (x * 10 ** 9, x))",
        "lambda x: len(('%' + str(x * 10 ** 9) + 'd') % x)",
        "lambda x: sum(n for n in range(x * 10 ** 12))",
        "lambda x: [n for n in range(0, x * 10 ** 12, 2)][0]",
        "lambda x: len(('a' * x * 10 ** 5).replace('a', 'b' * x * 10 ** 5))",
        "lambda x: len(('a' * x * 10 ** 5).join(['b'] * (x * 10 ** 5)))",
        "lambda x: len(''.join('a' * 10 ** 6 for n in range(x * 1000)))",
        "lambda x: len(re.sub('a', 'b' * 10 ** 5, 'a' * (x * 10 ** 5)))",
    ],
)
def test_what_is_computed_is_bounded_before_it_is_made(source: str) -> None:
    """Also where only intermediate results are large: they take time and memory."""
    function = compiled(ast.parse(source, mode="eval").body, {})
    with pytest.raises(OverflowError, match="more than"):
        function(3)


@pytest.mark.parametrize(
    "source",
    [
        "lambda s, x: s + s",
        "lambda s, x: x + s + s",
        "lambda s, x: f'{s}{s}'",
        "lambda s, x: '%s%s' % (s, s)",
        "lambda s, x: s * 2",
        "lambda s, x: ''.join([s, s])",
        "lambda s, x: s.replace('a', 'aa')",
    ],
)
def test_what_a_fold_doubles_is_bounded(source: str) -> None:
    function = compiled(ast.parse(source, mode="eval").body, {})
    with pytest.raises(OverflowError, match="more than 100,000,000 characters or elements"):
        reduce(function, ["b"] * 40, "a")


def test_lists_that_a_fold_doubles_are_bounded() -> None:
    function = compiled(ast.parse("lambda s, x: s + s", mode="eval").body, {})
    with pytest.raises(OverflowError, match="more than 100,000,000 characters or elements, by `"):
        reduce(function, range(40), [1])


def test_both_ways_to_run_a_function_are_bounded() -> None:
    """As it stands in a program, and as its tree is compiled again."""
    for width in ("'a'.ljust(x)", "lpad('a', x)", "f'{x:{x}}'", "sum(range(x))", "'a' * x"):
        program = f'a = source("long")\na -> map(lambda x: {width}) -> out'
        graph = parse(program)
        (fn,) = [fn for node in graph.nodes.values() for fn in functions_of(node.args)]
        assert fn.tree is not None
        again = [function_of(fn.tree, fn.params).call] if is_complete(fn.tree) else []
        for function in (fn.call, *again):
            with pytest.raises(OverflowError, match="more than 100,000,000 characters"):
                function(10**9)


def test_what_is_usual_is_not_too_much() -> None:
    for source, value in {
        "lambda x: 'a'.ljust(x)": "a" + " " * 2,
        "lambda x: x in range(10)": True,
        "lambda x: sum(range(x * 10 ** 6))": 4499998500000,
        "lambda x: '-'.join(str(n) for n in range(x))": "0-1-2",
        "lambda x: date(2026, 1, x).replace(2027)": date(2027, 1, 3),
        "lambda x: '%5d' % x + f'{x:<{x}}'": "    33  ",
        "lambda x: [x] + [x + 0.5]": [3, 3.5],
    }.items():
        assert compiled(ast.parse(source, mode="eval").body, {})(3) == value
