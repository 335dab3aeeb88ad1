"""Normal forms: trees that are equal only for functions that compute the same, and their stored
text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from hydro_core.errors import TypeProblem
from hydro_core.functions.bind import BoundParameter, arguments_of, typed_tree
from hydro_core.functions.from_tree import is_complete
from hydro_core.functions.kinds import ANY, NULL, ExprType, known, part
from hydro_core.functions.tree import (
    UNARY,
    Bind,
    Const,
    Expr,
    Fn,
    Fold,
    IfElse,
    Make,
    Op,
    Param,
    Part,
    SameTree,
    Spread,
    children,
    exact,
    field_in,
    nodes,
    with_children,
)
from hydro_core.types.item import BOOLEAN, INTEGERS, Array, ItemType, Scalar

# The normal form of a function: equal normal forms imply equal functions.
#
# It is the function's bound tree over its arguments: arguments are numbered, variables are numbered
# by the depth of their binding, every way to read a field is one `Part`, `and` and `or` are flat.
# Spelling, names of parameters and location in the file do not count. Their text, which identifies
# stored state, is `stored_form`.


ARGUMENT, VARIABLE = "argument", "variable"
"""Names of parameters in normal forms, each followed by its number: no program can write them."""
SPREAD_FIELD = "?(spread)"
"""A field of an item of unknown type: the number of fields, and the position of this one."""


def argument(number: int) -> Param:
    """An argument of a function in normal form."""
    return Param(f"{ARGUMENT} {number}")


def path_of(tree: Expr) -> tuple[int | str, ...] | None:
    """The path of an expression in normal form that is an argument or a field of one; else None."""
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

    A function with more parameters gets the fields of the last argument. None if a part of it
    cannot be read; with `partly`, such a part becomes an operation of the form.

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
        tree = of.tree  # Only checked trees are run, but forms are compared for any tree.
    names = {p: _argument(a, len(params)) for p, a in zip(params, arguments, strict=True)}
    return _NORMAL.of(tree, _Names(names)).tree


def declared(fn: Fn) -> tuple[str | int, ...]:
    """The declarations of a function, which are part of its identity."""
    algebra = fn.algebra
    said = (algebra.commutative, algebra.associative, algebra.idempotent, algebra.neutral)
    return (str(fn.returns) if fn.returns else "", *map(int, said))


def _argument(given: BoundParameter, parameters: int) -> _NamedForm:
    whole = argument(given.input)
    if given.step is not None:
        return _NamedForm(Part(whole, given.step), given.type)
    if given.place is None:
        return _NamedForm(whole, given.type)
    # The type of the item is unknown, so its fields are identified by their number and position.
    number = Const(parameters - given.input)
    return _NamedForm(Op(SPREAD_FIELD, (whole, number, Const(given.place))), given.type)


class _NamedForm(NamedTuple):
    """The normal form of a name or an expression, and its type for the text.

    The type follows from the arguments alone: fields and elements of them. `bind` infers more
    types, but the text of stored forms distinguishes fields by this type, so it must not change.
    """

    tree: Expr
    type: ExprType = ANY


@dataclass(frozen=True, slots=True)
class _Names:
    """The normal forms of names."""

    of: Mapping[str, _NamedForm]
    depth: int = 0
    """The number of variables of the enclosing bindings."""

    def variables(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{VARIABLE} {self.depth + i}" for i, _ in enumerate(names))

    def inner(self, names: Sequence[str], types: Sequence[ExprType]) -> _Names:
        made = zip(names, self.variables(names), types, strict=True)
        bound = {name: _NamedForm(Param(called), of) for name, called, of in made}
        return _Names({**self.of, **bound}, self.depth + len(names))


class _NormalForm(Fold[_Names, _NamedForm]):
    """The normal form of a bound tree."""

    def _tree(self, node: Expr, around: _Names) -> Expr:
        return self.of(node, around).tree

    def _with_parts(self, node: Expr, around: _Names) -> _NamedForm:
        made = with_children(node, (self._tree(part, around) for part in children(node)))
        return _NamedForm(replace(made, place=(0, 0)))

    def _const(self, node: Const, around: _Names) -> _NamedForm:
        return _NamedForm(replace(node, place=(0, 0)))

    def _param(self, node: Param, around: _Names) -> _NamedForm:
        found = around.of.get(node.name, _NamedForm(node))
        return found._replace(tree=replace(found.tree, type=node.type, place=(0, 0)))

    def _part(self, node: Part, around: _Names) -> _NamedForm:
        """A field, if it certainly is one; else an element of an array, or an unknown part."""
        base = self.of(node.base, around)
        field = field_in(base.type, node)
        if field is not None:
            return _NamedForm(Part(base.tree, field.step, type=node.type), field.type)
        if node.by_name:
            return _NamedForm(Part(base.tree, node.step, by_name=True, type=node.type))
        is_element = isinstance(base.type, Array) and isinstance(node.step, int)
        element = base.type.element if is_element and isinstance(base.type, Array) else ANY
        return _NamedForm(Op("[]", (base.tree, Const(node.step)), type=node.type), element)

    def _op(self, node: Op, around: _Names) -> _NamedForm:
        if node.family in ("and", "or"):
            node = replace(node, args=tuple(flat(node)))
        return self._with_parts(node, around)

    def _if_else(self, node: IfElse, around: _Names) -> _NamedForm:
        return self._with_parts(node, around)

    def _make(self, node: Make, around: _Names) -> _NamedForm:
        return self._with_parts(node, around)

    def _bind(self, node: Bind, around: _Names) -> _NamedForm:
        value = _NamedForm(node.value) if node.kind == "function" else self.of(node.value, around)
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
        return _NamedForm(made, body.type if node.kind == "let" else ANY)


_NORMAL = _NormalForm()


def flat(node: Op) -> list[Expr]:
    """The operands, where `(a and b) and c` is `a and b and c`."""
    found: list[Expr] = []
    for value in node.args:
        found += flat(value) if isinstance(value, Op) and value.name == node.name else [value]
    return found


# Normal forms of tests: `not (x is None)` and `x is not None` are one.
#
# Two functions with one such form have the same value, or both fail, for all arguments. So an
# equation is listed here only if it is exact in Python: for None and NaN, for the values of `and`
# and `or`, and for operands that are not evaluated. `not (a < b)` is `b <= a` only for totally
# ordered values; NaN is not.
#
# `stored_form` identifies stored state, so it is the same in every release; programs are compared
# by these forms, which may get more equations.


NONE, TRUE, FALSE = Const(None), Const(True, type=BOOLEAN), Const(False, type=BOOLEAN)
_OPPOSITE = {
    "is": "is not",
    "in": "not in",
    "==": "!=",
    "is not": "is",
    "not in": "in",
    "!=": "==",
}
_OPPOSITE_ORDER = {"<": "<=", "<=": "<"}
"""Comparisons with exchanged operands: `not (a < b)` is `b <= a`."""
_TURNED = {">": "<", ">=": "<="}
_OTHER = {"and": "or", "or": "and"}
_NEGATIVE = frozenset({"not", "is not", "not in", "!="})
_BOOLEAN_CALLS = frozenset({"bool", "all", "any"})
_ORDERED: Mapping[str, str] = {
    **dict.fromkeys((*INTEGERS, "boolean"), "integer"),
    **{name: name for name in ("string", "date", "timestamp", "timestamp_ntz")},
}
"""Types whose values are totally ordered; values of one name are comparable."""


def known_by(fn: Fn, over: Sequence[ItemType]) -> tuple[Any, ...]:
    """The identity of a function over these types: functions with equal ones compute the same."""
    tree = normal_tree(fn, over)
    if tree is None:
        return stored_form(fn, over)
    return ("function", _plain(SameTree(tree)), *declared(fn))


def plain_tests(tree: Expr) -> Expr:
    """The normal form of tests: each has one spelling.

    >>> from hydro_core.functions.forms import argument
    >>> x = Part(argument(0), "x")
    >>> plain_tests(Op("not", (Op("is", (x, NONE)),))) == Op("is not", (x, NONE))
    True
    """
    node = with_children(tree, map(plain_tests, children(tree)))
    match node:
        case Op(family="comparison", args=args) if len(args) > 1:
            return _compared(node)
        case Op("and" | "or", tests) if len(tests) > 1:
            return _joined(node.name, tests)
        case Op("not", (test,)):
            return _opposite(test)
        case Op("bool", (test,), ()):
            return _boolean(test)
        case IfElse():
            return _chosen(node, node.test, node.then, node.otherwise)
        case Bind(conditions=(_, *_)):
            return replace(node, conditions=tuple(map(_truth, node.conditions)))
        case _:
            return node


@lru_cache(maxsize=4096)
def _plain(of: SameTree) -> Expr:
    return plain_tests(of.tree)


def _truth(test: Expr) -> Expr:
    """A form that is true for the same items; only for positions where the value itself does not
    matter.
    """
    match test:
        case Op("bool", (inner,), ()):
            return _truth(inner)
        case Op("and" | "or" as op, tests):
            return _joined(op, map(_truth, tests))
        case IfElse(asked, then, otherwise):
            return _chosen(test, asked, _truth(then), _truth(otherwise))
        case _:
            return test


def _boolean(test: Expr) -> Expr:
    match _truth(test):
        case Op("and" | "or" as op, tests):
            return _joined(op, map(_boolean, tests))
        case IfElse(asked, then, otherwise) as choice:
            return _chosen(choice, asked, _boolean(then), _boolean(otherwise))
        case inner:
            return inner if _is_boolean(inner) else Op("bool", (inner,), type=BOOLEAN)


def _opposite(test: Expr) -> Expr:
    match _truth(test):
        case Op(op, (left, right)) if op in _OPPOSITE:
            return _test(_OPPOSITE[op], left, right)
        case Op(op, (left, right)) if op in _OPPOSITE_ORDER and _are_ordered(left, right):
            return _test(_OPPOSITE_ORDER[op], right, left)
        case Op("and" | "or" as op, tests):
            return _joined(_OTHER[op], map(_opposite, tests))
        case Op("not", (inner,)):
            return _boolean(inner)
        case IfElse(asked, then, otherwise) as choice:
            return _chosen(choice, asked, _opposite(then), _opposite(otherwise))
        case inner if inner in (TRUE, FALSE):
            return TRUE if inner == FALSE else FALSE
        case inner:
            return _test("not", inner)


def _chosen(choice: IfElse, test: Expr, then: Expr, otherwise: Expr) -> Expr:
    """`then if test else otherwise`, by the test or its opposite, whichever has the plainer
    form.
    """
    plain = _truth(test)
    if (then, otherwise) == (TRUE, FALSE):
        return _boolean(plain)
    if (then, otherwise) == (FALSE, TRUE):
        return _opposite(plain)
    opposite = _truth(_opposite(plain))
    if _plainness(opposite) < _plainness(plain):
        return replace(choice, test=opposite, then=otherwise, otherwise=then)
    return replace(choice, test=plain, then=then, otherwise=otherwise)


def _are_ordered(left: Expr, right: Expr) -> bool:
    """True if of two values that are not null one is less or equal; None fails in either order."""
    if not (isinstance(left.type, Scalar) and isinstance(right.type, Scalar)):
        return False
    one = _ORDERED.get(left.type.name)
    return one is not None and one == _ORDERED.get(right.type.name)


def _compared(node: Op) -> Expr:
    """A comparison; a chain over cheap operands becomes the conjunction of its comparisons."""
    if len(node.args) > 2 and not all(map(_is_at_hand, node.args[1:-1])):
        return node
    ops = node.name.split(",")
    parts = [_comparison(a, op, b) for op, (a, b) in zip(ops, pairwise(node.args), strict=True)]
    return parts[0] if len(parts) == 1 else _joined("and", parts)


def _is_at_hand(node: Expr) -> bool:
    """True for operands that may be computed once or twice: a field, an argument, a variable, a
    constant.
    """
    return isinstance(node, Const | Param) or (isinstance(node, Part) and not node.by_name)


def _comparison(left: Expr, op: str, right: Expr) -> Expr:
    """One comparison with its operands in one order: None comes last."""
    if op in _TURNED:
        return _test(_TURNED[op], right, left)
    if op in ("is", "is not", "==", "!="):
        if left == NONE or (right != NONE and _text(right) < _text(left)):
            left, right = right, left
        if right == NONE:
            # Only None is equal to None.
            op = {"==": "is", "!=": "is not"}.get(op, op)
    return _test(op, left, right)


def _joined(op: str, tests: Iterable[Expr]) -> Op:
    """`a and b and …`; nested conjunctions of the same operator are flattened."""
    whole = Op(op, tuple(tests))
    return replace(whole, args=tuple(flat(whole)))


def _test(op: str, *operands: Expr) -> Op:
    return Op(op, operands, type=BOOLEAN)


def _is_boolean(node: Expr) -> bool:
    """True if the value, if there is one, is True or False."""
    match node:
        case Op(family="comparison") | Op("not"):
            return True
        case Op("and" | "or", tests):
            return all(map(_is_boolean, tests))
        case Op(name, family="call"):
            return name in _BOOLEAN_CALLS
        case IfElse(_, then, otherwise):
            return _is_boolean(then) and _is_boolean(otherwise)
        case _:
            return node in (TRUE, FALSE)


def _plainness(node: Expr) -> tuple[int, str]:
    """The number of "not" in a test, then its text."""
    words = (word for part in nodes(node) if isinstance(part, Op) for word in part.name.split(","))
    return sum(word in _NEGATIVE for word in words), _text(node)


def _text(node: Expr) -> str:
    return repr(printed(node))


# Normal forms as text: tuples of strings and numbers, which identify stored state.
#
# The text is the same in every release: it must never change.


StoredForm = tuple[Any, ...]
"""Nested tuples of strings and numbers."""


def stored_form(fn: Fn, arguments: Sequence[ItemType]) -> StoredForm:
    """The text of the normal form of a function that is applied to arguments of these types.

    A function that cannot be read whole has its source as its form.
    """
    tree = normal_tree(fn, arguments)
    if tree is None:
        return ("source", fn.source, fn.closed, len(fn.params), *declared(fn))
    return ("function", _printed(SameTree(tree)), *declared(fn))


def printed(tree: Expr) -> StoredForm:
    """The text of a tree in normal form."""
    return _STORED.of(tree, None)


@lru_cache(maxsize=4096)
def _printed(of: SameTree) -> StoredForm:
    return printed(of.tree)


class StoredText(Fold[None, StoredForm]):
    """The text of trees in normal form."""

    def _all(self, parts: Sequence[Expr]) -> StoredForm:
        return tuple(self.of(element, None) for element in parts)

    def _const(self, node: Const, around: None) -> StoredForm:
        return _constant(node.value)

    def _param(self, node: Param, around: None) -> StoredForm:
        kind, _, number = node.name.partition(" ")
        return (kind, int(number)) if kind in (ARGUMENT, VARIABLE) and number else ("free", kind)

    def _part(self, node: Part, around: None) -> StoredForm:
        return ("attribute" if node.by_name else "field", self.of(node.base, None), node.step)

    def _if_else(self, node: IfElse, around: None) -> StoredForm:
        return ("if", *self._all((node.test, node.then, node.otherwise)))

    def _make(self, node: Make, around: None) -> StoredForm:
        star = "**" if node.kind == "row" else "*"
        made: list[StoredForm] = []
        for element, name in zip(node.parts, node.names or (None,) * len(node.parts), strict=True):
            if isinstance(element, Spread):
                made.append((star, self.of(element.value, None)))
            else:
                form = self.of(element, None)
                made.append(form if name is None else ("column", name, form))
        return (node.kind, *made)

    def _bind(self, node: Bind, around: None) -> StoredForm:
        body, number = self.of(node.body, None), len(node.names)
        if node.kind == "function":
            return ("lambda", number, body)
        value = self.of(node.value, None)
        if node.kind == "let":
            return ("let", value, body)
        return ("comprehension", node.kind, number, value, self._all(node.conditions), body)

    def _op(self, node: Op, around: None) -> StoredForm:
        if node.family == "text":
            return ("text", *map(self._text, node.args))
        form = self._all(node.args)
        match node.family:
            case "and" | "or":
                return (node.name, *form)
            case "unary":
                return ("unary", UNARY[node.name], *form)
            case "binary":
                return ("binary", node.name, *form)
            case "comparison":
                return ("compare", form[0], *zip(node.name.split(","), form[1:], strict=True))
            case "index":
                return ("index", *form)
            case "slice":
                given = iter(form[1:])
                return ("slice", form[0], *(next(given) if b in node.name else None for b in "lhs"))
            case _:
                return self._called(node, form)

    def _called(self, node: Op, form: StoredForm) -> StoredForm:
        keywords = tuple((name, self.of(value, None)) for name, value in node.keywords)
        if node.family == "method":
            return ("method", form[0], node.name[1:], form[1:], keywords)
        if node.family == "call":
            return ("call", node.name, form, keywords)
        # An operation without an entry is identified by plain numbers and names.
        parts = zip(node.args, form, strict=True)
        known_by = (arg.value if isinstance(arg, Const) else element for arg, element in parts)
        return (node.name.strip("?()"), *known_by)

    def _text(self, element: Expr) -> str | StoredForm:
        """An element of an f-string: a text, or a value with its conversion and format."""
        match element:
            case Op("{}", (value, Const(conversion), Const(spec))):
                return (self.of(value, None), conversion, spec)
            case Const(str() as text):
                return text
            case _:
                raise TypeError("an f-string has parts of its own")


_STORED = StoredText()


def _constant(value: Any) -> StoredForm:
    match value:
        case dict():
            return ("constant", "dict", *((_constant(k), _constant(v)) for k, v in value.items()))
        case tuple() | list():
            return ("constant", type(value).__name__, *map(_constant, value))
        case _:
            return ("constant", *exact(value))
