"""S-expressions: the text form of programs in the optimizer (language page, section 5), and of
rules.

    (delta (cross (persist add_member) (persist messages)))

An operator, its arguments, its inputs. Functions appear as names; other arguments, if they are not
the default, as `name=literal`. An output port is in brackets after the operator. `(let v bound
body)` binds a shared part, `(letrec x bound body)` a stream that feeds itself; if several feed each
other, `(letrec (x bound y bound) body)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hydro_core.catalog.itemwise import SOURCE
from hydro_core.catalog.spec import Aggregate, Args, OpSpec, OverFunction, functions_of
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import free_name
from hydro_core.ir.term import Application, LetRec, LetTerm, Ref, Term, applications
from hydro_core.types.ddl import to_ddl
from hydro_core.types.values import literal

WIDTH = 96
BRACKETS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Atom:
    text: str

    def __str__(self) -> str:
        return self.text


SExpr = Atom | tuple["SExpr", ...]


def read(text: str) -> SExpr:
    """The one tree in `text`; raises `ValueError` if there is none or more than one.

    >>> str(read("(map f x)")[0])
    'map'
    """
    trees = read_all(text)
    if len(trees) != 1:
        raise ValueError(f"one expression is due, not {len(trees)}: {text!r}")
    return trees[0]


def read_all(text: str) -> tuple[SExpr, ...]:
    """All trees in `text`; `;` starts a comment."""
    stack: list[list[SExpr]] = [[]]
    for word in _tokens(text):
        if word == "(":
            stack.append([])
        elif word == ")":
            if len(stack) == 1:
                raise ValueError(f"a bracket is closed that was not opened: {text!r}")
            done = tuple(stack.pop())
            stack[-1].append(done)
        else:
            stack[-1].append(Atom(word))
    if len(stack) > 1:
        raise ValueError(f"a bracket is not closed: {text!r}")
    return tuple(stack[0])


def show_tree(tree: SExpr, indent: int = 0, width: int = WIDTH) -> str:
    """The tree as text, in lines of at most `width` characters where that is possible."""
    lines: list[str] = []
    todo = [(tree, indent, "")]
    while todo:
        part, inner, closing = todo.pop()
        if isinstance(part, Atom) or len(part) < 2 or _is_short(part, width - inner):
            lines.append(" " * inner + flatten(part) + closing)
            continue
        first = next((i for i, t in enumerate(part) if i and not isinstance(t, Atom)), len(part))
        last = ")" + closing
        lines.append(" " * inner + "(" + " ".join(map(flatten, part[:first])))
        if first == len(part):
            lines[-1] += last
        rest = [(t, inner + 2, "") for t in part[first:]]
        todo += [*((t, i, last) for t, i, _ in rest[-1:]), *reversed(rest[:-1])]
    return "\n".join(lines)[indent:]


def _is_short(tree: SExpr, width: int) -> bool:
    """True if the tree fits into a line of so many characters."""
    todo = [tree]
    while todo and width >= 0:
        part = todo.pop()
        if isinstance(part, Atom):
            width -= len(part.text)
        else:
            # two brackets, and blanks between the parts
            width -= 1 + max(1, len(part))
            todo += reversed(part)
    return width >= 0


def flatten(tree: SExpr) -> str:
    """The tree in one line."""
    words: list[str] = []
    todo: list[SExpr | str] = [tree]
    while todo:
        part = todo.pop()
        match part:
            case str():
                words.append(part)
            case Atom(text):
                words.append(text)
            case _:
                words.append("(")
                spaced = [word for t in reversed(part) for word in (t, " ")]
                todo += [")", *spaced[:-1]]
    return "".join(words)


def function_names(terms: Iterable[Term]) -> Mapping[Fn, str]:
    """A name for every function in the terms; different functions get different names."""
    apps = (app for term in terms for app in applications(term))
    return names_of(fn for app in apps for fn in functions_of(app.args))


def names_of(functions: Iterable[Fn]) -> Mapping[Fn, str]:
    """A name for every function; different functions get different names."""
    names: dict[Fn, str] = {}
    taken: set[str] = set()
    for fn in functions:
        if fn not in names:
            names[fn] = free_name(fn.name if fn.name.isidentifier() else "fn", taken)
            taken.add(names[fn])
    return names


def show(term: Term, names: Mapping[Fn, str] | None = None) -> str:
    """The term as an S-expression."""
    known = function_names([term]) if names is None else names
    return show_tree(to_tree(term, known))


def to_tree(term: Term, names: Mapping[Fn, str]) -> SExpr:
    around: list[tuple[SExpr, ...]] = []
    while isinstance(term, LetTerm | LetRec):
        around.append((Atom(_KEYWORDS[type(term)]), *_bound(term, names)))
        term = term.body
    tree = _tree(term, names)
    for binding in reversed(around):
        tree = (*binding, tree)
    return tree


_KEYWORDS: Mapping[type, str] = {LetTerm: "let", LetRec: "letrec"}


def _bound(term: LetTerm | LetRec, names: Mapping[Fn, str]) -> tuple[SExpr, ...]:
    match term:
        case LetTerm(name, bound):
            return (Atom(name), to_tree(bound, names))
        case LetRec(((name, bound),)):
            return (Atom(name), to_tree(bound, names))
        case LetRec(bindings):
            return (tuple(t for name, b in bindings for t in (Atom(name), to_tree(b, names))),)


def _tree(term: Ref | Application, names: Mapping[Fn, str]) -> SExpr:
    match term:
        case Ref(name):
            return Atom(name)
        case Application(op=op, args=args) if op is SOURCE:
            return Atom(args["name"])
        case Application(op=op, args=args, inputs=inputs, port=port):
            head = Atom(f"{op.name}[{port}]" if port else op.name)
            given = [Atom(text) for text in printed(op, args, names)]
            return (head, *given, *(to_tree(i, names) for i in inputs))


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        char = text[at]
        if char.isspace():
            at += 1
        elif char == ";":
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif char in "()":
            yield char
            at += 1
        else:
            end = _atom_end(text, at)
            yield text[at:end]
            at = end


def _atom_end(text: str, at: int) -> int:
    """The end of the atom that starts at `at`: brackets and quotes in it belong to it."""
    open_brackets: list[str] = []
    while at < len(text):
        char = text[at]
        if char in "'\"":
            at = _quote_end(text, at)
            continue
        if char in BRACKETS:
            open_brackets.append(BRACKETS[char])
        elif open_brackets and char == open_brackets[-1]:
            open_brackets.pop()
        elif not open_brackets and (char.isspace() or char in ");"):
            return at
        at += 1
    return at


def _quote_end(text: str, at: int) -> int:
    quote = text[at]
    at += 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return at + 1


def printed(op: OpSpec, args: Args, names: Mapping[Fn, str]) -> list[str]:
    """The arguments as text: functions, then `name=literal` if not the default."""
    first, rest = [], []
    for arg in op.args:
        value = args.get(arg.name, arg.default)
        if arg.kind == "function" and isinstance(value, Fn):
            first.append(names[value])
        elif arg.is_open:
            rest += [f"{name}={_written(one, names)}" for name, one in value or ()]
        elif arg.kind == "schema" and value is not None:
            rest.append(f"{arg.name}={to_ddl(value)!r}")
        elif value != arg.default or arg.required or type(value) is not type(arg.default):
            rest.append(f"{arg.name}={_written(value, names)}")
    return first + rest


def _written(value: Any, names: Mapping[Fn, str]) -> str:
    match value:
        case Fn():
            return names[value]
        case Aggregate(function, arguments) | OverFunction(function, arguments):
            return f"{function}({', '.join(_written(a, names) for a in arguments)})"
        case _:
            return literal(value, repr)
