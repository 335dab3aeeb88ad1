"""Constants: trees without parameters are computed here, within limits of size and steps.

Nothing is compiled or called but the pure operations of the language. So `check` knows the value of
a fold's start or the items of a `source_iter`, and no text of a program takes more than a moment.
The constant parts of a function are computed when it is read: a part that fails for every item is
refused, be it `timedelta(months=3)` or `1 // 0`. Only parts that are evaluated for every item
count: no branch, no operand after an `and`, no body of a comprehension.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import InvalidOperation
from functools import partial
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.allowed import attribute
from hydro_core.functions.from_tree import Syntax, called, compiled
from hydro_core.functions.library.entry import Budget, LimitError
from hydro_core.functions.library.registry import OF_TYPES, OPERATIONS, operation
from hydro_core.functions.tree import (
    Bind,
    Const,
    Expr,
    Make,
    Op,
    Param,
    Part,
    always,
    children,
    is_function,
)

Constants = Mapping[str, Any]
_CURE = "what does not change from tick to tick must have a value when the program is read"
_ALWAYS = "nothing of it depends on the item: write a constant that has a value"
_LAZY = ("and", "or")
"""Operations that do not evaluate all of their operands."""
_VIEWS: tuple[type[Iterable[Any]], ...] = (
    zip,
    enumerate,
    reversed,
    range,
    type({}.items()),
    type({}.keys()),
    type({}.values()),
)
"""Types of views that become lists as the value of a constant."""
_FAILURES = (
    *(TypeError, ValueError, ArithmeticError, LookupError, AttributeError, InvalidOperation),
    *(RecursionError, MemoryError, OverflowError),
)


def value_of(tree: Expr, names: Constants | None = None) -> Any:
    """The value of a tree in which every parameter has a value in `names`."""
    evaluation = _Evaluation()
    try:
        return evaluation.value(tree, names or {})
    except LimitError as limit:
        cure = "give such data in as an input: a constant is computed whenever a program is read"
        said = f"the constant {limit}"
        raise TypeProblem(said, cure, place=evaluation.place) from None
    except _FAILURES as problem:
        said = f"the constant has no value: {type(problem).__name__}: {problem}"
        raise TypeProblem(said, _CURE, place=evaluation.place) from None


def _failure_of(tree: Expr) -> TypeProblem | None:
    """The reason why a tree without parameters fails in every evaluation; None if it has a value,
    or if the evaluation exceeds the limits.
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


def check_constants(tree: Expr) -> None:
    """Refuses a function that fails for every item.

    Raises:
        TypeProblem: a constant part of it has no value.
    """
    constant: dict[int, bool] = {}
    todo = [tree]
    while todo:
        part = todo.pop()
        if not _is_constant(part, constant):
            todo += reversed([*always(part)])
        elif not isinstance(part, Const):
            problem = _failure_of(part)
            if problem is not None:
                raise problem


def constant_value(tree: Expr) -> Any:
    """The value of a constant tree; `...` for a tree with parameters or without a value."""
    if isinstance(tree, Const):
        return tree.value
    try:
        return value_of(tree) if _is_constant(tree, {}) else ...
    except TypeProblem:
        return ...


def _is_constant(tree: Expr, known: dict[int, bool]) -> bool:
    """True if the tree has no parameter, no variable and no unknown operation."""
    found = known.get(id(tree))
    if found is None:
        match tree:
            case Param() | Bind() | Op("(unpack)" | "(flatten)"):
                found = False
            case Op(name, family=family) if family != "method" and operation(name) is None:
                found = False
            case _:
                found = all(_is_constant(child, known) for child in children(tree))
        known[id(tree)] = found
    return found


class _Evaluation:
    """One evaluation of a tree; its cost is charged before and after each operation."""

    def __init__(self) -> None:
        self.limits = Budget()
        self.place = (0, 0)

    def value(self, tree: Expr, names: Constants) -> Any:
        if isinstance(tree, Const):
            return self.limits.made(tree.value)
        if is_function(tree):
            raise TypeError("a function is not a constant")
        function = compiled(tree, tuple(names), _ChargedSyntax(self))
        return self.limits.made(function(*names.values()))

    def at(self, tree: Expr) -> None:
        """Counts a step and records the place of the part that is evaluated."""
        self.limits.step()
        if tree.place != (0, 0):
            self.place = tree.place

    def made(self, tree: Expr, value: Any) -> Any:
        """Charges the result of a display, a loop or a constant of parts."""
        self.at(tree)
        return self.limits.made(value)

    def each(self, items: Iterable[Any]) -> Iterator[Any]:
        """The items of a loop, each charged as a step."""
        for item in items:
            self.limits.step()
            yield item

    def part(self, tree: Part, base: Any) -> Any:
        self.at(tree)
        return attribute(base, str(tree.step)) if tree.by_name else base[tree.step]

    def compared(self, tree: Op, operand: Any) -> Any:
        """An operand of a comparison, charged as read."""
        self.at(tree)
        self.limits.read(operand)
        return operand

    def operation(self, tree: Op, *args: Any, **keywords: Any) -> Any:
        self.at(tree)
        if tree.family == "unread":
            said = f"`{tree.name[1:].strip('()')}` is not computed before the program runs"
            raise TypeError(said)
        if tree.family in ("call", "method"):
            self.limits.read(*(a for a in args if not callable(a)))
        found = self._method if tree.family == "method" else self._called
        result = found(tree.name, args, keywords)
        result = list(result) if isinstance(result, _VIEWS) else result
        return result if tree.family == "index" else self.limits.made(result)

    def _called(self, name: str, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
        entry = OPERATIONS[name]
        if entry.cost is not None and args:
            entry.cost(self.limits, list(args))
        return entry.function(*args, **keywords)

    def _method(self, name: str, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
        base, *others = args
        entry = OF_TYPES.get(type(base), {}).get(name[1:])
        if entry is not None and entry.cost is not None:
            entry.cost(self.limits, list(args))
        return attribute(base, name[1:])(*others, **keywords)


class _ChargedSyntax(Syntax):
    """Syntax of trees whose parts are charged as they are evaluated."""

    def __init__(self, evaluation: _Evaluation) -> None:
        super().__init__()
        self._evaluation = evaluation

    def expr(self, node: Expr) -> ast.expr:
        found = super().expr(node)
        match node:
            case (
                Const(list() | tuple() | dict() | str() | bytes())
                | Make() | Bind(is_loop=True)
            ):  # fmt: skip
                return self._by(self._evaluation.made, node, found)
            case _:
                return found

    def _by(self, function: Callable[..., Any], node: Expr, *given: ast.expr) -> ast.Call:
        return called(self.held(partial(function, node)), *given)

    def _part(self, node: Part, around: None) -> ast.expr:
        return self._by(self._evaluation.part, node, self.expr(node.base))

    def _op(self, node: Op, around: None) -> ast.expr:
        if node.family in _LAZY:
            return super()._op(node, None)
        parts = [self.expr(arg) for arg in node.args]
        if node.family == "comparison":
            return self.operator(
                node, [self._by(self._evaluation.compared, node, p) for p in parts]
            )
        found = self._by(self._evaluation.operation, node, *parts)
        found.keywords = [ast.keyword(arg=n, value=self.expr(value)) for n, value in node.keywords]
        return found

    def loop(self, node: Bind, kind: str) -> ast.expr:
        found = super().loop(node, "list" if kind == "generator" else kind)
        assert isinstance(found, ast.ListComp | ast.SetComp)
        loop = found.generators[0]
        loop.iter = called(self.held(self._evaluation.each), loop.iter)
        return found
