"""The normal form of a function: what is equal for two functions only if they do the same.

It is the function's bound tree over what it is applied to: arguments by position, variables by the
place where they are bound, every way to read a field as one `Part`, `and` and `or` flat. How a
function is written, what its parameters are called and where it stands do not count. Trees of one
normal form are equal; their text, by which stored state is known, is made in `stored_form`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from hydro_core.errors import TypeProblem
from hydro_core.functions.bind import BoundParameter, arguments_of, typed_tree
from hydro_core.functions.fields import field_in
from hydro_core.functions.fn import Fn
from hydro_core.functions.fold import Fold, children, with_children
from hydro_core.functions.from_tree import is_complete
from hydro_core.functions.kinds import ANY, NULL, ExprType, known, part
from hydro_core.functions.tree import (
    Bind,
    Const,
    Expr,
    IfElse,
    Make,
    Op,
    Param,
    Part,
    SameTree,
)
from hydro_core.types.item import Array, ItemType

ARGUMENT, VARIABLE = "argument", "variable"
"""What parameters are called in normal forms, each with its number: no program can write it."""
SPREAD_FIELD = "?(spread)"
"""Of an item of which no type is known: so many fields, and the place of the one that is meant."""


def argument(number: int) -> Param:
    """What a function in normal form is applied to."""
    return Param(f"{ARGUMENT} {number}")


def path_of(tree: Expr) -> tuple[int | str, ...] | None:
    """The way to the field of an argument that an expression in normal form is, if it is one."""
    match tree:
        case Param(name) if name.startswith(f"{ARGUMENT} "):
            return ()
        case Part(base, step, by_name=False):
            around = path_of(base)
            return None if around is None else (*around, step)
        case _:
            return None


def normal_tree(fn: Fn, arguments: Sequence[ItemType], *, partly: bool = False) -> Expr | None:
    """The normal form of a function that is applied to arguments of these types.

    A function of more parameters gets the fields of the last argument. None if it cannot be read
    whole; `partly`: what cannot be is an operation in it.

    >>> import ast
    >>> from hydro_core.functions.read import read_function
    >>> from hydro_core.types.ddl import parse_ddl
    >>> read = lambda text: read_function(ast.parse(text, mode="eval").body, {})
    >>> one, other = read("lambda x: x._1"), read("lambda k, v: k")
    >>> pair = (parse_ddl("(long, string)"),)
    >>> normal_tree(one, pair) == normal_tree(other, pair) == Part(argument(0), 0)
    True
    """
    known_as = None if fn.tree is None else arguments_of(fn, arguments)
    if fn.tree is None or known_as is None:
        return None
    return _normal(SameTree(fn.tree), fn.params, known_as, partly=partly)


@lru_cache(maxsize=4096)
def _normal(
    of: SameTree, params: tuple[str, ...], arguments: tuple[BoundParameter, ...], *, partly: bool
) -> Expr | None:
    if not (partly or is_complete(of.tree)):
        return None
    types = tuple(ANY if a.type == NULL else known(part(a.type)) for a in arguments)
    try:
        tree = typed_tree(of, params, types)
    except TypeProblem:
        tree = of.tree  # only what is checked is run, but forms of anything are compared
    names = {p: _argument(a, len(params)) for p, a in zip(params, arguments, strict=True)}
    return _NORMAL.of(tree, _Names(names)).tree


def declared(fn: Fn) -> tuple[str | int, ...]:
    """What is declared of a function, which counts as well as what it does."""
    algebra = fn.algebra
    said = (algebra.commutative, algebra.associative, algebra.idempotent, algebra.neutral)
    return (str(fn.returns) if fn.returns else "", *map(int, said))


def _argument(given: BoundParameter, parameters: int) -> _Named:
    whole = argument(given.input)
    if given.step is not None:
        return _Named(Part(whole, given.step), given.type)
    if given.place is None:
        return _Named(whole, given.type)
    # the item's type is not known: its fields are known by their number
    number = Const(parameters - given.input)
    return _Named(Op(SPREAD_FIELD, (whole, number, Const(given.place))), given.type)


class _Named(NamedTuple):
    """What a name stands for, or an expression: its normal form, and its type for the text.

    That type is told by the arguments alone, by what is a field of one, or an element. `bind` knows
    more; but by this type, and not by that, the text of stored forms says what is a field.
    """

    tree: Expr
    type: ExprType = ANY


@dataclass(frozen=True, slots=True)
class _Names:
    """What names stand for."""

    of: Mapping[str, _Named]
    depth: int = 0
    """The number of variables that are bound around."""

    def variables(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{VARIABLE} {self.depth + i}" for i, _ in enumerate(names))

    def inner(self, names: Sequence[str], types: Sequence[ExprType]) -> _Names:
        made = zip(names, self.variables(names), types, strict=True)
        bound = {name: _Named(Param(called), of) for name, called, of in made}
        return _Names({**self.of, **bound}, self.depth + len(names))


class _Normal(Fold[_Names, _Named]):
    """The normal form of a bound tree."""

    def _tree(self, node: Expr, around: _Names) -> Expr:
        return self.of(node, around).tree

    def _with_parts(self, node: Expr, around: _Names) -> _Named:
        made = with_children(node, (self._tree(part, around) for part in children(node)))
        return _Named(replace(made, place=(0, 0)))

    def _const(self, node: Const, around: _Names) -> _Named:
        return _Named(replace(node, place=(0, 0)))

    def _param(self, node: Param, around: _Names) -> _Named:
        found = around.of.get(node.name, _Named(node))
        return found._replace(tree=replace(found.tree, type=node.type, place=(0, 0)))

    def _part(self, node: Part, around: _Names) -> _Named:
        """A field, where it is one for sure; an element of an array, or what is not known."""
        base = self.of(node.base, around)
        field = field_in(base.type, node)
        if field is not None:
            return _Named(Part(base.tree, field.step, type=node.type), field.type)
        if node.by_name:
            return _Named(Part(base.tree, node.step, by_name=True, type=node.type))
        is_element = isinstance(base.type, Array) and isinstance(node.step, int)
        element = base.type.element if is_element and isinstance(base.type, Array) else ANY
        return _Named(Op("[]", (base.tree, Const(node.step)), type=node.type), element)

    def _op(self, node: Op, around: _Names) -> _Named:
        if node.family in ("and", "or"):
            node = replace(node, args=tuple(flat(node)))
        return self._with_parts(node, around)

    def _if_else(self, node: IfElse, around: _Names) -> _Named:
        return self._with_parts(node, around)

    def _make(self, node: Make, around: _Names) -> _Named:
        return self._with_parts(node, around)

    def _bind(self, node: Bind, around: _Names) -> _Named:
        value = _Named(node.value) if node.kind == "function" else self.of(node.value, around)
        types: list[ExprType] = [ANY] * len(node.names)
        if node.kind == "let":
            types = [value.type]
        elif node.is_loop and len(types) == 1 and isinstance(value.type, Array):
            types = [value.type.element]
        inner = around.inner(node.names, types)
        conditions = tuple(self._tree(condition, inner) for condition in node.conditions)
        body = self.of(node.body, inner)
        names = around.variables(node.names)
        made = Bind(node.kind, names, value.tree, body.tree, conditions, type=node.type)
        return _Named(made, body.type if node.kind == "let" else ANY)


_NORMAL = _Normal()


def flat(node: Op) -> list[Expr]:
    """The operands, where `(a and b) and c` is `a and b and c`."""
    found: list[Expr] = []
    for value in node.args:
        found += flat(value) if isinstance(value, Op) and value.name == node.name else [value]
    return found
