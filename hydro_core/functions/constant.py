"""Constants: trees without parameters are computed here, within limits of size and steps.

Nothing is compiled or called but the pure operations of the language, so `check` may know the value
of a fold's start or the items of a `source_iter`, and no text of a program can take more than a
moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import InvalidOperation
from typing import Any, get_args

from hydro_core.errors import TypeProblem
from hydro_core.functions.allowed import attribute
from hydro_core.functions.constant_limits import Budget, LimitError
from hydro_core.functions.library.entry import LibraryFunction
from hydro_core.functions.library.operations import OPERATIONS
from hydro_core.functions.library.registry import OF_TYPES
from hydro_core.functions.tree import (
    Comprehension,
    Const,
    Expr,
    IfElse,
    Inner,
    Let,
    MakeList,
    MakeRow,
    MakeTuple,
    Op,
    Param,
    Part,
    Spread,
)

Constants = Mapping[str, Any]
_CURE = "what does not change from tick to tick must have a value when the program is read"
_ALWAYS = "nothing of it depends on the item: write a constant that has a value"
_HANDS_ON = (Param, Part, IfElse, Let)
_PICKS = ("and", "or", "index")
"""What makes no value of its own: the nodes, and the families of operations."""
_FAILURES = (
    *(TypeError, ValueError, ArithmeticError, LookupError, AttributeError, InvalidOperation),
    *(RecursionError, MemoryError, OverflowError),
)


def value_of(tree: Expr, names: Constants | None = None) -> Any:
    """The value of a tree in which every parameter has a value in `names`."""
    evaluation = _Evaluation()
    try:
        return evaluation.value(tree, dict(names or {}))
    except LimitError as limit:
        cure = "give such data in as an input: a constant is computed whenever a program is read"
        said = f"the constant {limit}"
        raise TypeProblem(said, cure, place=evaluation.place) from None
    except _FAILURES as problem:
        said = f"the constant has no value: {type(problem).__name__}: {problem}"
        raise TypeProblem(said, _CURE, place=evaluation.place) from None


def failure_of(tree: Expr) -> TypeProblem | None:
    """Why a tree without parameters fails wherever it is evaluated; None where it has a value, or
    where finding out would take too long.
    """
    evaluation = _Evaluation()
    try:
        evaluation.value(tree, {})
    except LimitError:
        return None
    except _FAILURES as problem:
        said = f"this fails for every item: {type(problem).__name__}: {problem}"
        return TypeProblem(said, _ALWAYS, place=evaluation.place)
    return None


class _Evaluation:
    def __init__(self) -> None:
        self.limits = Budget()
        self.place = (0, 0)
        self.rules = {kind: getattr(self, f"_{kind.__name__.lower()}") for kind in get_args(Expr)}

    def value(self, tree: Expr, names: Constants) -> Any:
        self.limits.step()
        if tree.place != (0, 0):
            self.place = tree.place
        found = self.rules[type(tree)](tree, names)
        hands_on = isinstance(tree, _HANDS_ON) or (isinstance(tree, Op) and tree.family in _PICKS)
        return found if hands_on else self.limits.made(found)

    def _const(self, tree: Const, _: Constants) -> Any:
        return tree.value

    def _param(self, tree: Param, names: Constants) -> Any:
        return names[tree.name]

    def _part(self, tree: Part, names: Constants) -> Any:
        base = self.value(tree.base, names)
        self.place = tree.place if tree.place != (0, 0) else self.place
        return attribute(base, str(tree.step)) if tree.by_name else base[tree.step]

    def _op(self, tree: Op, names: Constants) -> Any:
        match tree.family:
            case "and" | "or" as op:
                return self._first(tree.args, names, op)
            case "comparison":
                return self._compared(tree, names)
            case "method":
                return self._method(tree, names)
            case "unread":
                said = f"`{tree.name[1:].strip('()')}` is not computed before the program runs"
                raise TypeError(said)
            case _:
                return self._called(OPERATIONS[tree.name], tree, names)

    def _first(self, operands: tuple[Expr, ...], names: Constants, op: str) -> Any:
        value: Any = None
        for operand in operands:
            value = self.value(operand, names)
            if bool(value) is (op == "or"):
                return value
        return value

    def _compared(self, tree: Op, names: Constants) -> Any:
        left, *others = tree.args
        value, result = self.value(left, names), True
        for op, operand in zip(tree.name.split(","), others, strict=True):
            right = self.value(operand, names)
            self.limits.read(value, right)
            result = OPERATIONS[op].function(value, right)
            if not result:
                return result
            value = right
        return result

    def _ifelse(self, tree: IfElse, names: Constants) -> Any:
        return self.value(tree.then if self.value(tree.test, names) else tree.otherwise, names)

    def _called(self, entry: LibraryFunction, tree: Op, names: Constants) -> Any:
        args = [self._argument(a, names) for a in tree.args]
        keywords = {k: self._argument(a, names) for k, a in tree.keywords}
        if tree.family == "call":
            self.limits.read(*(a for a in args if not callable(a)))
        if entry.cost is not None and args:
            entry.cost(self.limits, args)
        result: Any = entry.function(*args, **keywords)
        if isinstance(result, zip | enumerate | reversed | range):
            return list(result)
        return result

    def _argument(self, tree: Expr, names: Constants) -> Any:
        if not isinstance(tree, Inner):
            return self.value(tree, names)

        def function(*given: Any) -> Any:
            return self.value(tree.body, {**names, **dict(zip(tree.params, given, strict=True))})

        return function

    def _inner(self, _: Inner, __: Constants) -> Any:
        raise TypeError("a function is not a constant")

    def _method(self, tree: Op, names: Constants) -> Any:
        base = self.value(tree.args[0], names)
        name = tree.name[1:]
        args = [self._argument(a, names) for a in tree.args[1:]]
        keywords = {k: self._argument(a, names) for k, a in tree.keywords}
        self.limits.read(base, *(a for a in args if not callable(a)))
        entry = OF_TYPES.get(type(base), {}).get(name)
        if entry is not None and entry.cost is not None:
            entry.cost(self.limits, base, args)
        result = attribute(base, name)(*args, **keywords)
        return (
            list(result)
            if isinstance(result, type({}.items()) | type({}.keys()) | type({}.values()))
            else result
        )

    def _parts(self, parts: tuple[Any, ...], names: Constants) -> list[Any]:
        found: list[Any] = []
        for part in parts:
            if isinstance(part, Spread):
                found.extend(self.value(part.value, names))
            else:
                found.append(self.value(part, names))
        return found

    def _maketuple(self, tree: MakeTuple, names: Constants) -> Any:
        return tuple(self._parts(tree.parts, names))

    def _makelist(self, tree: MakeList, names: Constants) -> Any:
        parts = self._parts(tree.parts, names)
        return set(parts) if tree.kind == "set" else parts

    def _makerow(self, tree: MakeRow, names: Constants) -> Any:
        row: dict[str, Any] = {}
        for part in tree.parts:
            if isinstance(part, Spread):
                row.update(self.value(part.value, names))
            else:
                row[part[0]] = self.value(part[1], names)
        return row

    def _comprehension(self, tree: Comprehension, names: Constants) -> Any:
        found = []
        for item in self.value(tree.source, names):
            parts = (item,) if len(tree.targets) == 1 else tuple(item)
            inner = {**names, **dict(zip(tree.targets, parts, strict=True))}
            if all(self.value(c, inner) for c in tree.conditions):
                found.append(self.value(tree.element, inner))
        return set(found) if tree.kind == "set" else found

    def _let(self, tree: Let, names: Constants) -> Any:
        return self.value(tree.body, {**names, tree.name: self.value(tree.value, names)})
