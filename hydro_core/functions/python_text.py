"""The text of a syntax tree, which reads back as that very tree.

Python's own `ast.unparse` gives other trees back for some f-strings, and none for others: an
escaped brace in a format becomes code, and a literal that needs a backslash has no place in an
f-string. A text that changed on the way would be another function, so every text is read back
before it is believed.
"""

from __future__ import annotations

import ast
from typing import Any


def python_text(node: ast.AST) -> str:
    r"""A text that Python reads as `node`, or as an expression that has the same value.

    >>> print(python_text(ast.parse(r"lambda x: f'{x:\x7b0\x7d}'", mode="eval").body))
    lambda x: f'{x:\x7b0\x7d}'
    """
    text = _unparsed(node)
    if text is not None:
        return text
    # Outside of the f-string there is room for every literal; braces of formats are escaped.
    moved = ast.fix_missing_locations(_Moved().visit(copied(node)))
    text = _unparsed(moved)
    # What is not written even so is named by its tree: that is no function's text.
    return ast.dump(node) if text is None else text


def _unparsed(node: ast.AST) -> str | None:
    """The text of a tree, if it reads back as the tree."""
    stand_ins = _stand_ins(node)
    try:
        text = ast.unparse(_Escaped(stand_ins).visit(copied(node)) if stand_ins else node)
        for brace, private in stand_ins.items():
            for written in (f"\\u{ord(private):04x}", private):  # before Python 3.12, and since
                text = text.replace(written, f"\\x{ord(brace):02x}")
        (read,) = ast.parse(text).body
    except (ValueError, SyntaxError):
        return None
    found = read.value if isinstance(read, ast.Expr) else read
    same = ast.dump(found) == ast.dump(node) or _dumped(found) == _dumped(node)
    return text if same else None


def _dumped(node: ast.AST) -> str:
    """What two trees have in common if they are one: Python 3.12 cuts texts in f-strings where they
    have escapes by name.
    """
    return ast.dump(_Joined().visit(copied(node)))


class _Joined(ast.NodeTransformer):
    """Texts that follow each other in an f-string as one."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        parts: list[ast.expr] = []
        for part in node.values:
            last = parts[-1] if parts else None
            if isinstance(part, ast.Constant) and isinstance(last, ast.Constant):
                parts[-1] = ast.Constant(str(last.value) + str(part.value))
            else:
                parts.append(part)
        return ast.JoinedStr(parts)


def _stand_ins(node: ast.AST) -> dict[str, str]:
    """What stands for the braces of formats while they are written; nothing where there are none.

    Unparsed, a brace of a format opens an expression.
    """
    texts = [p.value for p in ast.walk(node) if isinstance(p, ast.Constant)]
    used = {c for text in texts if isinstance(text, str) for c in text}
    free = (c for c in map(chr, range(0xE000, 0xF8FF)) if c not in used)
    return dict(zip("{}", free, strict=False)) if used & set("{}") else {}


def copied(node: Any) -> Any:
    """A copy of a syntax tree, which may be changed in place."""
    made: dict[str, Any] = {}
    for name, value in ast.iter_fields(node):
        parts = []
        for part in value if isinstance(value, list) else (value,):
            # one frame a level, no comprehension: expressions nest deep
            parts.append(copied(part) if isinstance(part, ast.AST) else part)  # noqa: PERF401
        made[name] = parts if isinstance(value, list) else parts[0]
    return ast.copy_location(type(node)(**made), node)


class _Escaped(ast.NodeTransformer):
    """Braces in formats as what stands for them."""

    def __init__(self, stand_ins: dict[str, str]) -> None:
        self.table = str.maketrans(stand_ins)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        """The value, with its format's own texts escaped."""
        self.generic_visit(node)
        if isinstance(node.format_spec, ast.JoinedStr):
            for value in node.format_spec.values:
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    value.value = value.value.translate(self.table)
        return node


class _Moved(ast.NodeTransformer):
    """The values of f-strings, moved out of them: `(lambda v1: f"{v1:>5}")(x)`."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """A call of the f-string as a function of its values."""
        values: list[ast.expr] = []
        self._take(node, values)
        names = [ast.arg(f"v{i + 1}") for i in range(len(values))]
        parameters = ast.arguments([], names, None, [], [], None, [])
        return ast.Call(ast.Lambda(parameters, node), values, []) if values else node

    def _take(self, node: ast.JoinedStr, values: list[ast.expr]) -> None:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                values.append(self.visit(part.value))
                part.value = ast.Name(f"v{len(values)}", ast.Load())
                if isinstance(part.format_spec, ast.JoinedStr):
                    self._take(part.format_spec, values)
