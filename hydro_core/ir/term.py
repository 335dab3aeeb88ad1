"""Terms: a stream as an expression over operators, with shared parts bound by `LetTerm` and cycles
by `LetRec`.

`LetRec` binds several names at once where streams feed each other. A term of a program is closed
but for its inputs, which are `App`s of sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hydro_core.catalog.spec import NO_ARGS, Args, OpSpec
from hydro_core.errors import Span


@dataclass(frozen=True, slots=True)
class Ref:
    """A name that a `LetTerm` or `LetRec` around it binds."""

    name: str


@dataclass(frozen=True, slots=True)
class App:
    """An operator applied to streams; `port` names the output of an operator with several."""

    op: OpSpec
    args: Args = NO_ARGS
    inputs: tuple[Term, ...] = ()
    port: str = ""
    origin: str = field(default="", compare=False)
    """The node that it came from."""
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LetTerm:
    """`body`, in which `name` is the stream `bound`, computed once."""

    name: str
    bound: Term
    body: Term


@dataclass(frozen=True, slots=True)
class LetRec:
    """`body`, in which each name is the stream bound to it; the bound terms may use the names."""

    bindings: tuple[tuple[str, Term], ...]
    body: Term


Term = Ref | App | LetTerm | LetRec


def applications(term: Term) -> Iterator[App]:
    """Every application in the term, from the inside out; shared ones once."""
    while True:
        match term:
            case App():
                for child in term.inputs:
                    yield from applications(child)
                yield term
                return
            case LetTerm(_, bound, body):
                yield from applications(bound)
                term = body
            case LetRec(bindings, body):
                for _, bound in bindings:
                    yield from applications(bound)
                term = body
            case Ref():
                return
