"""What is known, or assumed, of the data that a program runs on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

ROWS = 1000.0
TICKS = 100.0


@dataclass(frozen=True, slots=True)
class InputStatistics:
    """Of one input: rows in a tick, rows of all history, different keys in history."""

    rows: float = ROWS
    history: float | None = None
    keys: float | None = None


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of data: `{"ticks": 100, "inputs": {"a": {"rows": 10, "history": 1e6}}}`."""

    ticks: float = TICKS
    inputs: Mapping[str, InputStatistics] = field(default_factory=dict)
    selectivity: Mapping[str, float] = field(default_factory=dict)
    """Of filters, by the node's id or the function's name."""
    streams: Mapping[str, InputStatistics] = field(default_factory=dict)
    """Of streams of the program that are not inputs, by their names."""

    def of_inputs(self, names: Iterable[str]) -> Statistics:
        """The same with what is assumed of those inputs of which nothing is known."""
        return replace(self, inputs={n: self.inputs.get(n, InputStatistics()) for n in names})

    def as_json(self) -> Mapping[str, Any]:
        """As `of` reads it."""
        return asdict(self)

    def longer(self, times: float) -> Statistics:
        """The same once the history of the input with the most new rows is so many times as long.

        Every stream gets as many rows in a tick as before. All inputs are given.
        """
        largest = max(self.inputs.values(), key=lambda i: i.rows, default=InputStatistics())
        span = self.ticks
        if largest.history is not None and largest.rows > 0:
            span = max(span, largest.history / largest.rows)
        more = span * (times - 1)

        def later(given: InputStatistics) -> InputStatistics:
            history = given.rows * self.ticks if given.history is None else given.history
            return replace(given, history=history + given.rows * more)

        inputs, streams = (
            {name: later(given) for name, given in known.items()}
            for known in (self.inputs, self.streams)
        )
        return replace(self, ticks=self.ticks + more, inputs=inputs, streams=streams)

    @staticmethod
    def of(data: Mapping[str, Any]) -> Statistics:
        """The statistics of a parsed file; raises `ValueError` where it makes no sense."""
        if not isinstance(data, Mapping):
            raise ValueError("statistics are a JSON object")  # noqa: TRY004 - it is the file's fault
        unknown = set(data) - {"ticks", "inputs", "selectivity", "streams"}
        if unknown:
            raise ValueError(f"statistics know nothing of {', '.join(sorted(unknown))}")
        try:
            inputs, streams = (
                {name: InputStatistics(**given) for name, given in data.get(kind, {}).items()}
                for kind in ("inputs", "streams")
            )
        except TypeError as problem:
            raise ValueError(f"streams have rows, history and keys: {problem}") from None
        return Statistics(
            float(data.get("ticks", TICKS)), inputs, dict(data.get("selectivity", {})), streams
        )
