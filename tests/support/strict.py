"""Operations of which a null gives null, as in SQL: made of conditions and variables."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from hydro_core.functions.tree import Bind, Const, Expr, IfElse, Op, Param, is_function, mentions


def strictly(node: Op) -> Expr:
    """The operation, but null if a value that it is computed from is null, as SQL has it.

    >>> from hydro_core.functions.from_tree import text_of
    >>> text_of(strictly(Op("+", (Param("x"), Const(1)))), ("x",))
    'lambda x: None if x is None else x + 1'
    """
    values: dict[str, Expr] = {}
    tested: list[Expr] = []

    def named(operand: Expr) -> Expr:
        """The operand by a name, if it is computed: it is once."""
        if isinstance(operand, Op) and operand.name == "{}":
            value, *form = operand.args
            return replace(operand, args=(named(value), *form))
        found: Expr = operand
        if not isinstance(operand, Const | Param) and not is_function(operand):
            names = (f"operand.{i}" for i in count(len(values)))
            free = next(name for name in names if name not in values and not mentions(node, name))
            found = Param(free, operand.place)
            values[free] = operand
        if isinstance(found, Param) or found == Const(None):
            tested.append(Op("is", (found, Const(None))))
        return found

    args = tuple(map(named, node.args))
    keywords = tuple((name, named(value)) for name, value in node.keywords)
    made: Expr = replace(node, args=args, keywords=keywords)
    if tested:
        test = tested[0] if len(tested) == 1 else Op("or", tuple(tested))
        made = IfElse(test, Const(None), made, node.place)
    for name, value in reversed(values.items()):
        made = Bind("let", (name,), value, made, place=node.place)
    return made
