"""Who wants the least or the greatest of a stored result, among the plans to choose from.

The rows of the keys that change, and of the others those with this value, are enough: for the
greatest of all, and for who is joined with it. These are few, and what is joined with them is
looked up by them. It is `hydro_core/plan/extremes.py` that finds these rows when a plan runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hydro_core.catalog.classes import Matching, Projection
from hydro_core.catalog.extremes import (
    GIVE_FEW,
    ExtremeValue,
    WithExtremes,
    extremes_of,
    first_of,
    with_extremes,
)
from hydro_core.catalog.spec import NO_ARGS, Args
from hydro_core.catalog.variants import Compares
from hydro_core.optimize.shape import FeedbackShape, Payload
from hydro_core.optimize.space import ClassId, ENode, Space

NamesBelow = Mapping[str, str]
"""Columns of a stream, by those of what it is a projection of; nothing for all as they are."""


@dataclass(slots=True)
class Extremes:
    """The nodes of a space that look at few rows of an input, all of which are there."""

    space: Space
    payloads: Sequence[Payload]
    _few: dict[ClassId, bool] = field(default_factory=dict)

    def looked_up(self, node: ENode) -> int | None:
        """The input of which a node looks at those with an extreme, beside what changes."""
        if not node.shape.is_bags:
            return None
        match _what(node):
            case WithExtremes.VALUE | WithExtremes.FIRST:
                cls, args = node.shape.cls, self._args(node)
                is_first = not isinstance(cls, FeedbackShape) and first_of(cls, args) is not None
                wanted = is_first or self._extremes(node)
                return 0 if wanted and self._is_stored(node.inputs[0]) else None
            case WithExtremes.PAIRS:
                sides = (0,) if isinstance(node.shape.cls, Matching) else (0, 1)
                return next((i for i in sides if self._compares(node, i)), None)
            case WithExtremes.PASSES | WithExtremes.STORED | WithExtremes.OTHER:
                return None

    def met_by_few(self, node: ENode) -> int | None:
        """The input of which a node looks up the rows of the keys of few others."""
        cls = node.shape.cls
        sides = [0, 1] if _what(node) is WithExtremes.PAIRS else []
        if isinstance(cls, Matching) and cls.compares is Compares.KEYS:
            sides = [1, 0] if cls.wanted else [1]
        if not node.shape.is_bags:
            return None
        return next((i for i in sides if self._are_few(node.inputs[1 - i])), None)

    def _compares(self, node: ENode, i: int) -> bool:
        """Whether items of an input are to equal the extreme of it."""
        mine, other = node.inputs[i], node.inputs[1 - i]
        if not self._is_stored(mine):
            return False
        keys = [(k, k) if isinstance(k, str) else k for k in self._args(node).get("on") or ()]
        pairs = {(key[i], key[1 - i]) for key in keys}
        for one, names in self._through(other):
            for column, extreme in self._extremes(one).items():
                shown = names.get(column) if names is not None else column
                if one.inputs[0] == mine and (extreme.column, shown) in pairs:
                    return True
        return False

    def _are_few(self, cls: ClassId) -> bool:
        """Whether all rows of a stream have an extreme."""
        if cls not in self._few:
            self._few[cls] = False
            self._few[cls] = any(self._gives_few(self.space.nodes[i]) for i in self.space.of[cls])
        return self._few[cls]

    def _gives_few(self, node: ENode) -> bool:
        what = _what(node)
        if what is WithExtremes.PASSES:
            return self._are_few(node.inputs[0])
        return what in GIVE_FEW and self.looked_up(node) is not None

    def _extremes(self, node: ENode) -> Mapping[str, ExtremeValue]:
        if _what(node) is not WithExtremes.VALUE:
            return {}
        return extremes_of(self._args(node)) or {}

    def _is_stored(self, cls: ClassId) -> bool:
        for i in self.space.of[cls]:
            node = self.space.nodes[i]
            if isinstance(node.shape.cls, Projection):
                made = node.shape.cls.columns(self._args(node), ())
                below = (self.space.nodes[j] for j in self.space.of[node.inputs[0]])
                if any(self._key(one) and self._key(one) <= {*made.values()} for one in below):
                    return True
            elif self._key(node):
                return True
        return False

    def _key(self, node: ENode) -> set[object]:
        """The columns by which the node stores results; none where it does not."""
        is_stored = _what(node) is WithExtremes.STORED
        return set(self._args(node).get("by") or ()) if is_stored else set()

    def _through(self, cls: ClassId) -> Iterator[tuple[ENode, NamesBelow | None]]:
        """What a stream is, and what it is a projection of."""
        for i in self.space.of[cls]:
            node = self.space.nodes[i]
            if isinstance(node.shape.cls, Projection):
                for below in self.space.of[node.inputs[0]]:
                    one = self.space.nodes[below]
                    made = node.shape.cls.columns(self._args(node), tuple(self._extremes(one)))
                    yield one, {c: n for n, c in made.items() if isinstance(c, str)}
            else:
                yield node, None

    def _args(self, node: ENode) -> Args:
        return NO_ARGS if node.payload is None else self.payloads[node.payload].args


def _what(node: ENode) -> WithExtremes:
    cls = node.shape.cls
    return WithExtremes.OTHER if isinstance(cls, FeedbackShape) else with_extremes(cls)
