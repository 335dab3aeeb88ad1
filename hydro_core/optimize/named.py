"""What the program calls the streams of a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from hydro_core.errors import Span
from hydro_core.ir.graph import Node
from hydro_core.optimize.space import ClassId, ENode, Space


@dataclass(frozen=True, slots=True)
class StreamName:
    """The operator, the name and the place of a stream: the program's, or the operator's own."""

    operator: str
    name: str
    span: Span | None = None


class StreamNames:
    """The names of the streams of a space, in a program whose nodes have these ids."""

    def __init__(self, origins: Mapping[str, Node], space: Space) -> None:
        self.origins, self.space = origins, space
        self._own = defaultdict[ClassId, list[str]](list)
        for name, cls in space.named.items():
            if name in origins:
                self._own[cls].append(name)

    def of(self, node: ENode) -> StreamName:
        """What the program calls what the node gives."""
        own = sorted(
            self._own.get(node.cls, ()),
            key=lambda n: (self.origins[n].op is not node.shape.op, n),
        )
        if not own:
            return StreamName(node.shape.plain, node.shape.plain)
        origin = self.origins[own[0]]
        return StreamName(origin.op.name, own[0], origin.span)
