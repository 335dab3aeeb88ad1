"""Every error that a user can see, as the sources write it: its code, its sentence, its cure.

An error is made by `SomeError.of`, `Diagnostic` or `TypeProblem`, or by a function that passes what
it is given on to one of these. What is put into a sentence stands in braces.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = {"hydro_core": ROOT / "hydro_core", "hydrotick": ROOT / "orchestration"}
_MOST_FORMS = 8
_METHODS = {"complain", "problem", "problem_at"}
"""Methods that make errors, of whatever object."""
_GIVEN = "{message}"
_TEXTS = {"message": re.compile(r".*\{message\}.*"), "what": re.compile(r".*\{what\}")}
"""What functions call a sentence that they are given, and put others around: these say where."""
_Node = TypeVar("_Node", bound=ast.stmt)


@dataclass(frozen=True, slots=True, order=True)
class ErrorSentence:
    """One error: where it is made, and the forms of what it says."""

    code: str
    message: str
    cure: str
    place: str = field(compare=False)
    """The module and the line."""


@dataclass(frozen=True, slots=True)
class _Maker:
    """A function that makes an error of what it is given: which arguments are what.

    A code or a text that is not given is `fixed`: it stands in the function itself.
    """

    params: tuple[str, ...]
    message: str | None
    cure: str | None
    code: str | None
    fixed: Mapping[str, str] = field(default_factory=dict)
    around: tuple[str, ...] = (_GIVEN,)
    """The sentences that it may make, with what is given of them in braces."""


_DIAGNOSTIC = _Maker(("code", "message", "span", "operator"), "message", "help", "code")
_CLASSES: Mapping[str, _Maker] = {
    "Diagnostic": _DIAGNOSTIC,
    "TypeProblem": _Maker(("message", "help"), "message", "help", "code", {"code": "type"}),
    "ArgumentProblem": _Maker(("code", "message", "help_"), "message", "help_", "code"),
    "PortProblem": _Maker(("message", "help_"), "message", "help_", None, {"code": "port"}),
    "_BadToken": _Maker(("message", "help_"), "message", "help_", None, {"code": "syntax"}),
    "ValueProblem": _Maker(("message",), "message", None, None, {"code": "type"}),
    "StoreProblem": _Maker(
        *(("code", "message", "cure"), "message", "cure", "code"), around=("{url}: {message}",)
    ),
    "_fault": _Maker(
        *(("numbers", "words", "says", "cure", "code"), "says", "cure", "code"),
        fixed={"code": "runtime"},
        around=("{message}: {place}",),
    ),
    "Refusal": _Maker(("message", "cure"), "message", "cure", None, {"code": "runtime"}),
}
"""What is an error, or becomes one."""


def error_sentences() -> tuple[ErrorSentence, ...]:
    """All of them, by code and sentence."""
    return tuple(sorted(set(_written())))


@dataclass(frozen=True, slots=True)
class _Scope:
    """What the names of a function stand for where it calls something."""

    function: ast.FunctionDef
    call: ast.Call

    def assigned(self, name: str) -> list[ast.expr]:
        """What the name may stand for: what was assigned last, on whichever way."""
        found = [
            node
            for node in self._before((ast.Assign, ast.AnnAssign))
            if node.value is not None and [target.id for target in _targets(node)] == [name]
        ]
        if not found:
            return []
        last = found[-1]
        ways = [way for way in self._before(ast.If) if _holds(way, last)]
        first = min((way.lineno for way in ways), default=last.lineno)
        last_before = [node for node in found if node.lineno < first][-1:]
        kept = [node for node in found if node.lineno >= first]
        is_certain = not ways or any(way.orelse for way in ways)
        return [node.value for node in (*(() if is_certain else last_before), *kept)]

    def added(self, name: str) -> list[ast.expr]:
        """What was added to it since."""
        return [
            node.value
            for node in self._before(ast.AugAssign)
            if isinstance(node.target, ast.Name) and node.target.id == name
        ]

    def _before(self, kind: type[_Node] | tuple[type[_Node], ...]) -> list[_Node]:
        nodes = [n for n in ast.walk(self.function) if isinstance(n, kind)]
        ended = [n for n in nodes if (n.end_lineno or 0) < self.call.lineno]
        return sorted(ended, key=lambda node: node.lineno)


def _holds(outer: ast.AST, inner: ast.AST) -> bool:
    return any(node is inner for node in ast.walk(outer))


def places_of_sentences() -> Mapping[tuple[str, str], frozenset[str]]:
    """By code and sentence, the places where it is written."""
    found: dict[tuple[str, str], set[str]] = {}
    for one in _written():
        found.setdefault((one.code, one.message), set()).add(one.place)
    return {says: frozenset(places) for says, places in found.items()}


class _Module:
    """A module of the sources."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self._is_package = name, path.name == "__init__.py"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        self.imports: dict[str, tuple[str, str]] = {}
        """By a name the module and the name there that it is imported from."""
        self.functions: dict[ast.FunctionDef, tuple[str, list[ast.Call]]] = {}
        """By each function how it is called, and what it calls itself."""
        self.calls: list[tuple[ast.Call, ast.FunctionDef | None]] = []
        """The calls, and in which function they are."""
        self._visit(tree, None, "")
        self.texts = {
            target.id: node.value
            for node in tree.body
            for target in _targets(node)
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        }

    def _visit(self, node: ast.AST, function: ast.FunctionDef | None, of: str) -> None:
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.FunctionDef(name=name):
                    called = f"{of}.{name}" if name == "__init__" else name
                    self.functions[child] = (called, [])
                    self._visit(child, child, "")
                    continue
                case ast.ClassDef(name=name):
                    self._visit(child, function, name)
                    continue
                case ast.ImportFrom():
                    self._import(child)
                case ast.Call():
                    self.calls.append((child, function))
                    if function is not None:
                        self.functions[function][1].append(child)
            self._visit(child, function, of)

    def _import(self, node: ast.ImportFrom) -> None:
        parts = self.name.split(".")
        above = parts[: len(parts) - node.level + self._is_package] if node.level else []
        module = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            self.imports[alias.asname or alias.name] = module, alias.name

    def errors(self, makers: Mapping[tuple[str, str], _Maker]) -> Iterator[ErrorSentence]:
        """The errors that are made in it."""
        for call, function in self.calls:
            maker = self.maker(call, makers)
            if maker is None:
                continue
            scope = None if function is None else _Scope(function, call)
            given = _given(call, maker)
            forms = {
                part: self._forms(given[name], scope)
                if (name := getattr(maker, part)) and name in given
                else [maker.fixed.get(part, "")]
                for part in ("code", "message", "cure")
            }
            place = f"{self.name}:{call.lineno}"
            for code in forms["code"]:
                for form in forms["message"]:
                    if _is_sentence(code, form):
                        for around in maker.around:
                            message = around.replace(_GIVEN, form)
                            yield ErrorSentence(code, message, forms["cure"][0], place)

    def maker(self, call: ast.Call, makers: Mapping[tuple[str, str], _Maker]) -> _Maker | None:
        """What makes an error in a call, if that does."""
        match call.func:
            case ast.Attribute(value=ast.Name(id=name), attr="of") if name.endswith("Error"):
                return _DIAGNOSTIC
            case ast.Call(func=ast.Attribute(attr="__init__")):
                return None
            case ast.Name(id=name) if name in _CLASSES:
                return _CLASSES[name]
            case ast.Name(id=name):
                module, told = self.imports.get(name, (self.name, name))
                return makers.get((module, told)) or makers.get((module, f"{told}.__init__"))
            case ast.Attribute(attr=name) if found := self._known(name, makers):
                return found
            case ast.Attribute(attr=name) if name in _METHODS:
                return next((made for (_, told), made in makers.items() if told == name), None)
        return None

    def _known(self, name: str, makers: Mapping[tuple[str, str], _Maker]) -> _Maker | None:
        """A method of this module, or of one that it imports from."""
        modules = (self.name, *(module for module, _ in self.imports.values()))
        return next((makers[m, name] for m in modules if (m, name) in makers), None)

    def _forms(self, node: ast.expr, scope: _Scope | None) -> list[str]:
        """The texts that an expression may be, with what is put into them in braces."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=values):
                return _joined([self._put_in(value, scope) for value in values])
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _joined([self._forms(left, scope), self._forms(right, scope)])
            case ast.IfExp(body=body, orelse=other):
                return [*self._forms(body, scope), *self._forms(other, scope)]
            case ast.BoolOp(op=ast.Or(), values=values):
                return self._forms(values[-1], scope)
            case ast.Name(id=name):
                return self._named(name, scope)
        return ["{" + _short(node) + "}"]

    def _put_in(self, value: ast.expr, scope: _Scope | None) -> list[str]:
        if not isinstance(value, ast.FormattedValue):
            return self._forms(value, scope)
        inner = value.value
        is_constant = isinstance(inner, ast.Name) and inner.id.isupper()
        if is_constant or isinstance(inner, ast.IfExp):
            return self._forms(inner, scope)
        return ["{" + _short(inner) + "}"]

    def _named(self, name: str, scope: _Scope | None) -> list[str]:
        if scope is not None and (assigned := scope.assigned(name)):
            first = [form for value in assigned for form in self._forms(value, scope)]
            return _joined([first, *(self._forms(value, scope) for value in scope.added(name))])
        module, told = self, name
        if name in self.imports:
            of, told = self.imports[name]
            module = _modules().get(of, self)
        text = module.texts.get(told)
        return ["{" + name + "}"] if text is None else module._forms(text, None)


@cache
def _modules() -> Mapping[str, _Module]:
    found = {}
    for package, folder in _PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join([package, *(part for part in parts if part != "__init__")])
            found[name] = _Module(name, path)
    return found


@cache
def _written() -> tuple[ErrorSentence, ...]:
    """The errors of all modules, each as often as it is written."""
    makers = _makers(_modules())
    return tuple(one for module in _modules().values() for one in module.errors(makers))


def _makers(modules: Mapping[str, _Module]) -> Mapping[tuple[str, str], _Maker]:
    """The functions that pass on what they are given, by module and name."""
    found: dict[tuple[str, str], _Maker] = {}
    while True:
        before = len(found)
        for module in modules.values():
            for function, (name, calls) in module.functions.items():
                made = _made_by(module, function, calls, found)
                if made is not None:
                    found.setdefault((module.name, name), made)
        if len(found) == before:
            return found


def _made_by(
    module: _Module,
    function: ast.FunctionDef,
    calls: Sequence[ast.Call],
    makers: Mapping[tuple[str, str], _Maker],
) -> _Maker | None:
    params = [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]
    made: list[_Maker] = []
    for call in calls:
        maker = module.maker(call, makers)
        if maker is None:
            continue
        given = _given(call, maker)
        passed: dict[str, str | None] = {}
        fixed, around = dict(maker.fixed), _GIVEN
        for part in ("message", "cure", "code"):
            name = getattr(maker, part)
            value = given.get(name) if name else None
            for text in _TEXTS if part == "message" and value is not None else ():
                form = module._forms(value, _Scope(function, call))[0]
                if text in params and _TEXTS[text].fullmatch(form):
                    around, value = form.replace("{" + text + "}", _GIVEN), ast.Name(text)
            if isinstance(value, ast.Name) and value.id in params:
                passed[part] = value.id
            elif value is not None:
                fixed[part] = module._forms(value, _Scope(function, call))[0]
        if "message" in passed:
            names = tuple(name for name in params if name != "self")
            parts = (passed.get(part) for part in ("message", "cure", "code"))
            made.append(_Maker(names, *parts, fixed, (around,)))
    if not made:
        return None
    arounds = dict.fromkeys(form for maker in made for form in maker.around)
    return replace(made[0], around=tuple(arounds))


def _given(call: ast.Call, maker: _Maker) -> dict[str, ast.expr]:
    """The arguments of a call, by their names."""
    given = dict(zip(maker.params, call.args, strict=False))
    return given | {one.arg: one.value for one in call.keywords if one.arg is not None}


def _targets(node: ast.stmt) -> list[ast.Name]:
    match node:
        case ast.Assign(targets=targets):
            return [target for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name() as target):
            return [target]
    return []


def _joined(parts: Sequence[Sequence[str]]) -> list[str]:
    found = [""]
    for forms in parts:
        found = [before + form for before in found for form in forms][:_MOST_FORMS]
    return found


def _short(node: ast.expr) -> str:
    """What a place in a sentence is called: the last name of what is put there."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_")
        case ast.Call(func=function, args=[first, *_]) if isinstance(function, ast.Attribute):
            return _short(first)
        case ast.Call(func=function, args=[]):
            return _short(function)
        case ast.Call(args=[first, *_]) | ast.Subscript(value=first):
            return _short(first)
        case ast.BinOp(left=left):
            return _short(left)
    return "…"


def _is_sentence(code: str, form: str) -> bool:
    """Whether this is the error itself, and not one that another place passes on."""
    return not code.startswith("{") and re.fullmatch(r"(\{\w+\}|\{…\})?", form.strip()) is None
