"""Schemas as text: Spark's DDL, with tuples in parentheses.

`user string, at timestamp` is a row, `(long, string)` a tuple, `(long)` a tuple of one, `long` a
scalar. A struct whose fields are `_1 … _n` is a tuple, since that is a tuple in Spark. `void` is
the unknown.

Stored schemas are read back exactly: there only parentheses make a tuple, and a row may have
columns that no other schema may have (`_1 … _n`, or one without a name).
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from dataclasses import dataclass

from hydro_core.errors import DataError, TypeProblem
from hydro_core.types.item import (
    SCALARS,
    UNKNOWN,
    Array,
    Decimal,
    Field,
    ItemType,
    Row,
    Scalar,
    Tuple,
    Unknown,
)

DDL = 'write Spark DDL: `"user string, at timestamp"`, `"(long, string)"`, `"long"`'
"""Examples of a schema: the help where there is no nearer one."""
_ALIASES = {
    "bool": "boolean",
    "tinyint": "byte",
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
    "real": "float",
    "timestamp_ltz": "timestamp",
    "char": "string",
    "varchar": "string",
}
_DECIMALS = ("decimal", "dec", "numeric")
_NAMES = (*SCALARS, *_ALIASES, *_DECIMALS, "array", "struct", "void")
_TOKEN = re.compile(
    r"\s*(?:(`(?:[^`]|``)*`)|(\w+)|('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|([<>(),:]))"
)
_SHOWN = 60
_PLAIN = re.compile(r"[^\W\d]\w*")


def parse_ddl(text: str) -> ItemType:
    """The type of a schema.

    >>> str(parse_ddl("user struct<id: bigint, name: string>, tags array<(long, decimal(4,2))>"))
    'row<user row<id long, name string>, tags array<(long, decimal(4,2))>>'
    """
    return _parsed(_Parser(text, _tokens(text)))


def given_schema(name: str, text: str) -> ItemType:
    """The type of an input's items, from a schema outside of the program.

    Raises:
        DataError: it cannot be read (code `input`).
    """
    try:
        return parse_ddl(text)
    except TypeProblem as problem:
        message = f"the schema of `{name}`: {problem.message}"
        raise DataError.of("input", message, help=problem.help or DDL) from None


def parse_stored(text: str) -> ItemType:
    """The type that `stored_ddl` wrote, with the columns that must not be null.

    >>> str(parse_stored("_1 long not null, none ()"))
    'row<_1 long not null, none ()>'
    """
    return _parsed(_Parser(text, _tokens(text), stored=True))


def _parsed(parser: _Parser) -> ItemType:
    if not parser.tokens:
        raise TypeProblem("the schema is empty", 'give columns as in "user string, at timestamp"')
    first, second = parser.peek(0).lower(), parser.peek(1)
    sized = first in (*_DECIMALS, "char", "varchar")
    # A column may have the name of a type: the next token decides, a size or the column's own type.
    sized = sized and second == "(" and parser.peek(2).lower() not in ("(", ")", *_NAMES)
    bare = first == "(" or second in ("", "<") or sized
    try:
        result = parser.type() if bare else parser.fields("")
    except RecursionError:
        cure = "flatten it: no item has so many levels"
        raise TypeProblem(f"the schema {parser.text[:_SHOWN]!r}… nests too deep", cure) from None
    if parser.at < len(parser.tokens):
        raise parser.problem(f"`{parser.peek(0)}` is not expected here")
    return result


def to_ddl(item: ItemType) -> str:
    """The schema of a type: `parse_ddl` reads it back.

    >>> to_ddl(parse_ddl("`a b` int, c struct<d: string>"))
    '`a b` integer, c struct<d: string>'
    """
    return _text(item, none="struct<>")


def stored_ddl(item: ItemType) -> str:
    """The schema of a type without any loss, for `parse_stored`."""
    return _text(item, none="()")


def _text(item: ItemType, none: str) -> str:
    """The text of a type, in which `none` is the tuple without fields."""
    if isinstance(item, Row) and item.fields:
        return ", ".join(f"{_quoted(f.name)} {_column(f, none)}" for f in item.fields)
    return _inner(item, none)


def _inner(item: ItemType, none: str) -> str:
    match item:
        case Unknown():
            return "void"
        case Tuple(fields):
            return f"({', '.join(_inner(f, none) for f in fields)})" if fields else none
        case Row(fields):
            return f"struct<{', '.join(f'{_quoted(f.name)}: {_column(f, none)}' for f in fields)}>"
        case Array(element):
            return f"array<{_inner(element, none)}>"
        case _:
            return str(item)


def _column(field: Field, none: str) -> str:
    return _inner(field.type, none) + ("" if field.nullable else " not null")


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    end = len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if not found:
            raise TypeProblem(f"the schema {text!r} cannot be read at {text[at:].strip()[:20]!r}")
        tokens.append(found[0].strip())
        at = found.end()
    return tokens


@dataclass
class _Parser:
    text: str
    tokens: list[str]
    at: int = 0
    stored: bool = False

    def peek(self, ahead: int) -> str:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        token = self.peek(0)
        if not token or (expected and token not in expected):
            wanted = " or ".join(f"`{e}`" for e in expected) or "a name"
            raise self.problem(
                f"{wanted} is missing {f'before `{token}`' if token else 'at its end'}"
            )
        self.at += 1
        return token

    def problem(self, message: str, cure: str | None = None) -> TypeProblem:
        return TypeProblem(f"the schema {self.text!r}: {message}", cure)

    def type(self) -> ItemType:
        word = self.take()
        name = word.lower()
        if word == "(" and self.stored and self.peek(0) == ")":
            self.take(")")
            return Tuple(())
        if word == "(":
            parts = [self.type()]
            while self.take(",", ")") == ",":
                parts.append(self.type())
            return Tuple(tuple(parts))
        if name == "array":
            self.take("<")
            element = self.type()
            self.take(">")
            return Array(element)
        if name == "struct":
            return self.struct()
        return self.scalar(word, name)

    def struct(self) -> ItemType:
        self.take("<")
        if self.peek(0) == ">":
            self.take(">")
            return Row(())
        fields = self.fields(">")
        self.take(">")
        return fields

    def scalar(self, word: str, name: str) -> ItemType:
        if name == "void":
            return UNKNOWN
        if name in _DECIMALS:
            return self.decimal()
        if name == "map":
            raise self.problem("an item has no maps", "an array of (key, value) tuples serves")
        if name in ("char", "varchar") and self.peek(0) == "(":
            self.numbers()
        name = _ALIASES.get(name, name)
        if name in SCALARS:
            return Scalar(name)
        near = difflib.get_close_matches(name, _NAMES, 1)
        cure = (
            f"did you mean `{near[0]}`?"
            if near
            else f"types are {', '.join(SCALARS)}, decimal(p,s)"
        )
        raise self.problem(f"`{word}` is not a type", cure)

    def decimal(self) -> Decimal:
        numbers = self.numbers() if self.peek(0) == "(" else []
        precision, scale = (*numbers, *(10, 0)[len(numbers) :])[:2]
        if len(numbers) > 2 or not 0 <= scale <= precision <= 38 or precision < 1:
            raise self.problem("a decimal has 1 to 38 digits, not more of them after the point")
        return Decimal(precision, scale)

    def numbers(self) -> list[int]:
        self.take("(")
        found = []
        while True:
            word = self.take()
            if not word.isdecimal():
                raise self.problem(f"`{word}` is not a number")
            found.append(int(word))
            if self.take(",", ")") == ")":
                return found

    def fields(self, end: str) -> ItemType:
        fields: list[Field] = []
        while True:
            fields.append(self.field())
            if self.peek(0) == end or (not end and not self.peek(0)):
                break
            self.take(",")
        twice = next((n for n, k in Counter(f.name for f in fields).items() if k > 1), None)
        if twice is not None:
            raise self.problem(f"the column `{twice}` stands twice")
        return Row(tuple(fields)) if self.stored else as_tuple_or_row(fields)

    def field(self) -> Field:
        word = self.take()
        if word in "<>(),:" or word[0] in "'\"":
            raise self.problem(f"`{word}` is not a name")
        name = word[1:-1].replace("``", "`") if word[0] == "`" else word
        if not name and not self.stored:
            raise self.problem("a column has no name", DDL)
        if self.peek(0) == ":":
            self.take(":")
        kind = self.type()
        required = self.peek(0).lower() == "not" and self.peek(1).lower() == "null"
        if required:
            self.at += 2
        if self.peek(0).lower() == "comment":
            self.at += 2
        return Field(name, kind, nullable=not required)


def as_tuple_or_row(fields: list[Field]) -> ItemType:
    """A tuple if the fields are `_1 … _n`, else a row."""
    positions = [f.name for f in fields] == [f"_{i + 1}" for i in range(len(fields))]
    if fields and positions and not all(f.nullable for f in fields):
        raise TypeProblem(
            "the fields of a tuple may be null: `not null` is said of the columns of a row",
            "give the columns names, or leave `not null` away",
        )
    if fields and positions:
        return Tuple(tuple(f.type for f in fields))
    return Row(tuple(fields))
