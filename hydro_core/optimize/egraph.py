"""The e-graph: a problem and its rules go in, the space of plans comes out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import util
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any

from hydro_core.optimize.rule import (
    FACTS,
    EqualClasses,
    Fact,
    Pat,
    Pattern,
    Payload,
    Rule,
    Shape,
    Sort,
    Var,
)

# The plans to choose from: classes of equal streams, each with the nodes that compute it.
#
# A choice of one node per class is a plan. It is legal if every cycle passes an input on which the
# node depends through earlier ticks only (a strict one). Then the equations have one solution, tick
# by tick: the streams of the classes.


ClassId = int


@dataclass(frozen=True, slots=True)
class StreamDefinition:
    """A stream of the program: a node over other streams, by their names."""

    name: str
    shape: str
    payload: int | None
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """A program as the rules see it.

    `definitions` have each stream after its inputs. A stream that feeds itself through `prev` is
    read as its cut: a stream without a definition of its own, which `cuts` equates to it.
    """

    shapes: Mapping[str, Shape]
    payloads: tuple[Payload, ...]
    definitions: tuple[StreamDefinition, ...]
    cuts: Mapping[str, str]
    roots: tuple[str, ...]
    facts: tuple[tuple[str, tuple[int | str, ...]], ...] = ()

    def known(self, *names: str) -> Iterator[tuple[int, ...]]:
        """The numbers of arguments in facts of these names."""
        for name, args in self.facts:
            if name in names:
                yield tuple(arg for arg in args if isinstance(arg, int))


@dataclass(frozen=True, slots=True)
class ENode:
    """A way to compute the class `cls`."""

    shape: Shape
    payload: int | None
    inputs: tuple[ClassId, ...]
    cls: ClassId


@dataclass(frozen=True, slots=True)
class Space:
    """The result of saturation; `of[c]` are the positions in `nodes` of class c."""

    nodes: tuple[ENode, ...]
    of: tuple[tuple[int, ...], ...]
    roots: tuple[ClassId, ...]
    named: Mapping[str, ClassId]
    """The classes of the program's own streams."""


def classes_read(problem: Problem, space: Space, by: StreamDefinition) -> tuple[ClassId, ...]:
    """The classes of the inputs of a stream of the program; cuts count as their streams."""
    return tuple(space.named[problem.cuts.get(name, name)] for name in by.inputs)


def own_nodes(problem: Problem, space: Space) -> tuple[int, ...]:
    """The positions of the program's own nodes, where they still exist."""
    place = {(n.shape.name, n.payload, n.inputs): i for i, n in enumerate(space.nodes)}
    keys = ((d.shape, d.payload, classes_read(problem, space, d)) for d in problem.definitions)
    return tuple(place[key] for key in keys if key in place)


# Runs of the e-graph.
#
# This is the only module that imports egglog. An e-graph is used and dropped in the thread that
# built it. A run cannot be interrupted and has no limit of its own, so it proceeds by single
# iterations; stopping early is always sound.


MIN_ITERATIONS = 60
ITERATIONS_PER_STREAM = 8
"""A long pipeline needs some rounds per operator: a split is pushed through one after another."""
MAX_NODES = 20_000
CHUNK = 500
"""Definitions per piece of program text: deeply nested or very long text fails."""
CUT = "cut"


@dataclass(frozen=True, slots=True)
class Saturation:
    """The result of saturation: `saturated` if no rule found anything new."""

    iterations: int
    nodes: int
    saturated: bool


class EGraph:
    """The e-graph of one problem.

    `equal` are pairs of its streams that are known to be equal. `length` is the number of nodes
    from which the limit of rounds follows; None: the number of definitions.
    """

    def __init__(
        self,
        problem: Problem,
        rules: Iterable[Rule],
        *,
        log: bool = False,
        equal: Iterable[tuple[str, str]] = (),
        length: int | None = None,
    ) -> None:
        self.problem = problem
        self._length = len(problem.definitions) if length is None else length
        self.equal = tuple(equal)
        self.rules = tuple(rules)
        self.numbering: tuple[tuple[str, Any], ...] = ()
        """The classes as sorts with raw values, in the order of their numbers in the last space."""
        self._log = log
        self._bindings = _load()
        self._graph = self._bindings.EGraph()
        # egglog constructs names by appending numbers, so no other name may end in one
        self._names = {f"O{i}_": shape for i, shape in enumerate(problem.shapes.values())}
        self._of = {shape.name: name for name, shape in self._names.items()}
        self._place = {d.name: i for i, d in enumerate(problem.definitions)}
        self._run("\n".join(self._declarations()))
        for number, rule in enumerate(self.rules):
            self._run(self._rule(number, rule))
        definitions = tuple(self._definitions())
        for start in range(0, len(definitions), CHUNK):
            self._run("\n".join(definitions[start : start + CHUNK]))

    def saturate(self, after_each: Callable[[], None] = lambda: None) -> Saturation:
        """Applies the rules until nothing changes or a limit is reached; calls `after_each` after
        each round.
        """
        limit = max(MIN_ITERATIONS, ITERATIONS_PER_STREAM * self._length)
        for iteration in range(1, limit + 1):
            changed = self.step()
            after_each()
            if not changed or self.size() > MAX_NODES:
                return Saturation(iteration, self.size(), not changed)
        return Saturation(limit, self.size(), False)

    def step(self) -> bool:
        """Applies every rule once; true if something changed."""
        (output,) = self._run("(run r 1)")
        return bool(output.report.updated)

    def size(self) -> int:
        """The number of nodes."""
        (output,) = self._run("(print-size)")
        return sum(count for name, count in output.sizes if name in self._names)

    def space(self) -> Space:
        """The plans that were found, numbered deterministically."""
        ids: dict[tuple[str, Any], int] = {}

        def number(sort: str, value: Any) -> int:
            return ids.setdefault((sort, value), len(ids))

        named = {}
        for definition in self.problem.definitions:
            sort = self.problem.shapes[definition.shape].output.value
            named[definition.name] = number(sort, self.value_of(definition.name))
        nodes = []
        for shape, payload, inputs, output in self.rows():
            children = tuple(number(s.value, v) for s, v in zip(shape.inputs, inputs, strict=True))
            nodes.append(ENode(shape, payload, children, number(shape.output.value, output)))
        of: list[list[int]] = [[] for _ in ids]
        for position, node in enumerate(nodes):
            of[node.cls].append(position)
        self.numbering = tuple(ids)
        roots = tuple(named[root] for root in self.problem.roots)
        return Space(tuple(nodes), tuple(map(tuple, of)), roots, named)

    def rows(
        self, *, subsumed: bool = False
    ) -> Iterator[tuple[Shape, int | None, tuple[Any, ...], Any]]:
        """Every node: its shape, arguments, inputs and class as raw values; no cuts."""
        frozen = self._graph.freeze().functions
        for name, shape in self._names.items():
            for row in frozen[name].rows if name in frozen else ():
                if row.subsumed and not subsumed:
                    continue
                values = list(row.inputs)
                payload = self._graph.value_to_i64(values.pop(0)) if shape.payload else None
                yield shape, payload, tuple(values), row.output

    def firings(self) -> Iterator[tuple[Rule, tuple[tuple[str, Any], ...]]]:
        """Every rule application so far, in the order of the rules, with the values of its
        variables: arguments as numbers, streams as sorts with raw class values.
        """
        frozen = self._graph.freeze().functions
        for number, rule in enumerate(self.rules):
            variables = rule.variables()
            sorts = self._kinds(rule, variables)
            for row in frozen[f"fired{number}_"].rows if f"fired{number}_" in frozen else ():
                values = tuple(
                    (name, self._graph.value_to_i64(v) if sort == "i64" else (sort, v))
                    for name, sort, v in zip(variables, sorts, row.inputs, strict=True)
                )
                yield rule, values

    def value_of(self, name: str) -> Any:
        """The raw class value of a stream of the program."""
        bindings = self._bindings
        variable = bindings.Var(bindings.RustSpan("", 0, 0), f"$n{self._place[name]}_")
        return self._graph.eval_expr(variable)[1]

    def _run(self, text: str) -> Any:
        return self._graph.run_program(*self._graph.parse_program(text))

    def _declarations(self) -> Iterator[str]:
        variants: dict[Sort, list[str]] = {Sort.BAG: [], Sort.SEQUENCE: []}
        for name, shape in self._names.items():
            sorts = [*(["i64"] if shape.payload else []), *(s.value for s in shape.inputs)]
            variants[shape.output].append(f"({' '.join((name, *sorts))})")
        for of, constructors in variants.items():
            constructors.append(f"({CUT}{of.value} i64)")
        types = " ".join(f"({s.value} {' '.join(c)})" for s, c in variants.items())
        yield f"(datatype* {types})"
        yield "(ruleset r)"
        for fact, kinds in FACTS.items():
            of_fact = " ".join("i64" if kind == "P" else "B" for kind in kinds)
            yield f"(relation {_relation(fact)} ({of_fact}))"

    def _definitions(self) -> Iterator[str]:
        cuts = {name: i for i, name in enumerate(self.problem.cuts)}
        sorts = {d.name: self.problem.shapes[d.shape].output for d in self.problem.definitions}

        def refer(name: str) -> str:
            if name in cuts:
                return f"({CUT}{sorts[self.problem.cuts[name]].value} {cuts[name]})"
            return f"$n{self._place[name]}_"

        for i, definition in enumerate(self.problem.definitions):
            payload = [] if definition.payload is None else [str(definition.payload)]
            inputs = map(refer, definition.inputs)
            yield f"(let $n{i}_ ({' '.join((self._of[definition.shape], *payload, *inputs))}))"
        for cut, name in self.problem.cuts.items():
            yield f"(union {refer(cut)} {refer(name)})"
        for one, other in self.equal:
            yield f"(union {refer(one)} {refer(other)})"
        for fact, args in self.problem.facts:
            values = (refer(a) if isinstance(a, str) else str(a) for a in args)
            yield f"({_relation(fact)} {' '.join(values)})"

    def _rule(self, number: int, rule: Rule) -> str:
        variables = rule.variables()
        body = [self._condition(c) for c in rule.when]
        text = self._pattern(rule.lhs)
        if isinstance(rule.lhs, Pat):
            body.append(f"(= root_ {text})")
            text = "root_"
        if isinstance(rule.rhs, Fact):
            return f"(rule ({' '.join(body)}) ({self._condition(rule.rhs)}) :ruleset r)"
        head = [f"(union {text} {self._pattern(rule.rhs)})"]
        if rule.subsume:
            head.append(f"(subsume {self._pattern(rule.lhs)})")
        log = ""
        if self._log:
            kinds = self._kinds(rule, variables)
            log = f"(relation fired{number}_ ({' '.join(kinds)}))"
            head.append(f"(fired{number}_ {' '.join(map(_variable, variables))})")
        return f"{log}(rule ({' '.join(body)}) ({' '.join(head)}) :ruleset r)"

    def _kinds(self, rule: Rule, variables: Mapping[str, str]) -> list[str]:
        """The egglog sorts of a rule's variables."""
        sorts: dict[str, str] = {}
        todo = list(rule.patterns())
        while todo:
            pattern = todo.pop()
            if isinstance(pattern, Pat):
                todo += pattern.inputs
                of = self.problem.shapes[pattern.shape].inputs
                inputs = zip(pattern.inputs, of, strict=True)
                sorts |= {child.name: s.value for child, s in inputs if isinstance(child, Var)}
        return ["i64" if kind == "P" else sorts.get(name, "B") for name, kind in variables.items()]

    def _pattern(self, pattern: Pattern) -> str:
        match pattern:
            case Var(name):
                return _variable(name)
            case Pat(shape, payload, inputs):
                parts = [self._of[shape], *([_variable(payload.name)] if payload else [])]
                return f"({' '.join((*parts, *map(self._pattern, inputs)))})"

    def _condition(self, condition: EqualClasses | Fact) -> str:
        match condition:
            case EqualClasses(left, right):
                return f"(= {self._pattern(left)} {self._pattern(right)})"
            case Fact(name, args):
                return f"({_relation(name)} {' '.join(_variable(a.name) for a in args)})"


def _relation(fact: str) -> str:
    return f"fact_{fact}_"


def _variable(name: str) -> str:
    return f"v_{name}_"


def _load() -> Any:
    """The bindings, without the Python layer, whose import takes longer than most programs."""
    name = "egglog.bindings"
    if name in sys.modules:
        return sys.modules[name]
    package = util.find_spec("egglog")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("the optimizer needs egglog", name="egglog")
    for location in package.submodule_search_locations:
        found = (sorted(Path(location).glob(f"bindings*.{kind}")) for kind in ("so", "pyd"))
        for file in (file for files in found for file in files):
            loader = ExtensionFileLoader(name, str(file))
            spec = util.spec_from_file_location(name, file, loader=loader)
            if spec is not None:
                module = util.module_from_spec(spec)
                loader.exec_module(module)
                sys.modules[name] = module
                return module
    from egglog import bindings

    return bindings
