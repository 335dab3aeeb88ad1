"""Constants: trees without parameters are computed here, within limits of size and steps.

Nothing is compiled or called but the pure operations of the language, so `check` may know the value
of a fold's start or the items of a `source_iter`, and no text of a program can take more than a
moment.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import InvalidOperation
from typing import Any, get_args

from hydro_core.errors import TypeProblem
from hydro_core.functions.allowed import attribute
from hydro_core.functions.constant_limits import Budget, LimitError
from hydro_core.functions.library.builtins import FUNCTIONS
from hydro_core.functions.library.registry import OF_TYPES
from hydro_core.functions.scope import FLATTEN
from hydro_core.functions.tree import (
    Attribute,
    Binary,
    BoolOp,
    Call,
    Compare,
    Comprehension,
    Const,
    Expr,
    FString,
    IfElse,
    Index,
    Inner,
    Let,
    MakeList,
    MakeRow,
    MakeTuple,
    Method,
    Opaque,
    Param,
    Slice,
    Spread,
    Unary,
)

Constants = Mapping[str, Any]
_CURE = "what does not change from tick to tick must have a value when the program is read"
_ALWAYS = "nothing of it depends on the item: write a constant that has a value"
_HANDS_ON = (Param, Attribute, Index, IfElse, BoolOp, Let)
"""What makes no value of its own."""
_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
    "is": operator.is_,
    "is not": operator.is_not,
}
_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
_UNARY: Mapping[str, Callable[[Any], Any]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "not": operator.not_,
}
_CONVERSIONS: Mapping[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}
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
        return found if isinstance(tree, _HANDS_ON) else self.limits.made(found)

    def _const(self, tree: Const, _: Constants) -> Any:
        return tree.value

    def _param(self, tree: Param, names: Constants) -> Any:
        return names[tree.name]

    def _attribute(self, tree: Attribute, names: Constants) -> Any:
        return attribute(self.value(tree.base, names), tree.name)

    def _index(self, tree: Index, names: Constants) -> Any:
        return self.value(tree.base, names)[self.value(tree.index, names)]

    def _slice(self, tree: Slice, names: Constants) -> Any:
        parts = (
            None if p is None else self.value(p, names) for p in (tree.low, tree.high, tree.step)
        )
        return self.value(tree.base, names)[slice(*parts)]

    def _unary(self, tree: Unary, names: Constants) -> Any:
        return _UNARY[tree.op](self.value(tree.operand, names))

    def _binary(self, tree: Binary, names: Constants) -> Any:
        left, right = self.value(tree.left, names), self.value(tree.right, names)
        self.limits.before_binary(tree.op, left, right)
        return _BINARY[tree.op](left, right)

    def _compare(self, tree: Compare, names: Constants) -> Any:
        left = self.value(tree.first, names)
        result: Any = True
        for op, operand in tree.rest:
            right = self.value(operand, names)
            self.limits.read(left, right)
            result = _COMPARE[op](left, right)
            if not result:
                return result
            left = right
        return result

    def _boolop(self, tree: BoolOp, names: Constants) -> Any:
        value: Any = None
        for operand in tree.values:
            value = self.value(operand, names)
            if bool(value) is (tree.op == "or"):
                return value
        return value

    def _ifelse(self, tree: IfElse, names: Constants) -> Any:
        return self.value(tree.then if self.value(tree.test, names) else tree.otherwise, names)

    def _call(self, tree: Call, names: Constants) -> Any:
        args = [self._argument(a, names) for a in tree.args]
        keywords = {k: self._argument(a, names) for k, a in tree.keywords}
        if tree.name == FLATTEN:
            return [x for xs in args[0] for x in xs]
        self.limits.read(*(a for a in args if not callable(a)))
        entry = FUNCTIONS[tree.name]
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

    def _method(self, tree: Method, names: Constants) -> Any:
        base = self.value(tree.base, names)
        args = [self._argument(a, names) for a in tree.args]
        keywords = {k: self._argument(a, names) for k, a in tree.keywords}
        self.limits.read(base, *(a for a in args if not callable(a)))
        entry = OF_TYPES.get(type(base), {}).get(tree.name)
        if entry is not None and entry.cost is not None:
            entry.cost(self.limits, base, args)
        result = attribute(base, tree.name)(*args, **keywords)
        return (
            list(result)
            if isinstance(result, type({}.items()) | type({}.keys()) | type({}.values()))
            else result
        )

    def _opaque(self, tree: Opaque, _: Constants) -> Any:
        raise TypeError(f"`{tree.name.strip('()')}` is not computed before the program runs")

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

    def _fstring(self, tree: FString, names: Constants) -> Any:
        texts = []
        for part in tree.parts:
            if isinstance(part, str):
                texts.append(part)
                continue
            expr, conversion, spec = part
            value: Any = self.value(expr, names)
            self.limits.before_format(value, spec)
            if conversion:
                value = _CONVERSIONS[conversion](value)
            texts.append(self.limits.made(format(value, spec)))
        return "".join(texts)

    def _let(self, tree: Let, names: Constants) -> Any:
        return self.value(tree.body, {**names, tree.name: self.value(tree.value, names)})
