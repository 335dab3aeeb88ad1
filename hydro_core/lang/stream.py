"""A stream of a flow that is built in Python: every operator is a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hydro_core.catalog.io import NULL, SINK
from hydro_core.catalog.spec import OpSpec
from hydro_core.errors import ProgramError
from hydro_core.ir.builder import Wire
from hydro_core.lang.methods.combine import CombineMethods
from hydro_core.lang.methods.group import GroupMethods
from hydro_core.lang.methods.itemwise import ItemwiseMethods
from hydro_core.lang.methods.order import OrderMethods
from hydro_core.lang.methods.state import StateMethods
from hydro_core.lang.place import caller
from hydro_core.types.item import ItemType


class StreamOwner(Protocol):
    """The flow that streams are of: it knows what they are made by."""

    def add(
        self,
        op: OpSpec,
        first: Stream | None,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> Stream:
        """The stream of a new operator that `first` flows into."""

    def name_stream(self, stream: Stream, name: str) -> None:
        """Gives the operator that makes a stream a name."""

    def port_of(self, stream: Stream, port: str) -> Stream:
        """One output of the operator that makes a stream."""

    def check_own(self, stream: Stream) -> None:
        """Complains of a stream that belongs to another flow."""

    def shown(self, stream: Stream) -> str:
        """A stream as an error names it."""


class Stream(
    ItemwiseMethods["Stream"],
    CombineMethods["Stream"],
    GroupMethods["Stream"],
    OrderMethods["Stream"],
    StateMethods["Stream"],
):
    """What an operator gives. Streams are made by a `Flow` and by each other's methods."""

    def __init__(self, flow: StreamOwner, wire: Wire) -> None:
        self.flow, self.wire = flow, wire

    def apply(self, op: OpSpec, *arguments: Any, **keywords: Any) -> Stream:
        """The stream that an operator makes of this one; keywords that are None do not count."""
        given = {name: value for name, value in keywords.items() if value is not None}
        return self.flow.add(op, self, arguments, given)

    def named(self, name: str) -> Stream:
        """This stream, under a name that plans, errors and assets show."""
        self.flow.name_stream(self, name)
        return self

    def sink(self, name: str) -> None:
        """Makes the stream an output; several sinks of one name add up."""
        self.apply(SINK, name)

    def null(self) -> None:
        """Discards the stream."""
        self.apply(NULL)

    def __getitem__(self, port: str | int) -> Stream:
        """One output of an operator that has several: `s.partition(f, ["even", "odd"])["even"]`."""
        return self.flow.port_of(self, str(port))

    def __iter__(self) -> Any:
        raise TypeError("a stream has no items before its flow runs: `flow.run(ticks)`")

    def __repr__(self) -> str:
        return f"<stream {self.flow.shown(self)}>"


class Forward(Stream):
    """A stream that is used before it is defined: `define` closes the cycle."""

    def __init__(self, flow: StreamOwner, wire: Wire, name: str, schema: ItemType | None) -> None:
        super().__init__(flow, wire)
        self.name, self.schema = name, schema
        self.place = caller()
        self.target: Stream | None = None

    def define(self, stream: Stream) -> None:
        """Says which stream this is; it gets the name too, unless it has one."""
        if self.target is not None:
            raise ProgramError.of(
                "name",
                f"`{self.name}` is defined twice",
                caller(),
                self.name,
                help="define it once",
            )
        self.flow.check_own(stream)
        self.target = stream
