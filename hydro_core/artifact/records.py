"""What is written and read in both directions: the tags, and the classes that they stand for."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType
from typing import get_args

from hydro_core.functions.tree import Expr, Spread

FORMAT = 7
"""The format of what is written. 2: running results are operators. 4: types are text (DDL), and say
which columns are `not null`. 5: trees have one node for every operation. 6: and one
for tuples, rows, lists and sets. 7: and one for what has variables.
"""

READ = (3, 4, 5, 6, 7)
"""The formats that are read; any other is refused."""

NODES: Mapping[str, type] = MappingProxyType({t.__name__: t for t in (*get_args(Expr), Spread)})
"""The nodes of functions' trees, by their names."""

SYNTAX: Mapping[str, type[ast.AST]] = MappingProxyType(
    {
        name: kind
        for name, kind in vars(ast).items()
        if isinstance(kind, type)
        and issubclass(
            kind,
            (
                *(ast.expr, ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop),
                *(ast.comprehension, ast.arguments, ast.arg, ast.keyword),
            ),
        )
    }
)
"""The syntax of an expression, by its names."""
