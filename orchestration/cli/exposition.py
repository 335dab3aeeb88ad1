"""Metrics as Prometheus reads them: the text format, version 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class MetricFamily:
    """Samples of one name: what they count, and a value for each set of labels."""

    name: str
    help: str
    kind: Literal["gauge", "counter"] = "gauge"
    samples: list[tuple[Mapping[str, str], float]] = field(default_factory=list)

    def add(self, value: float, **labels: str) -> None:
        """A sample with these labels."""
        self.samples.append((labels, value))


def as_text(families: Iterable[MetricFamily]) -> str:
    """The families that have samples.

    >>> up = MetricFamily("up", "Whether it is.")
    >>> up.add(1, flow="totals")
    >>> print(as_text([up]), end="")
    # HELP up Whether it is.
    # TYPE up gauge
    up{flow="totals"} 1
    """
    lines = []
    for family in families:
        if family.samples:
            said = family.help.replace("\\", "\\\\").replace("\n", "\\n")
            lines.append(f"# HELP {family.name} {said}")
            lines.append(f"# TYPE {family.name} {family.kind}")
            lines += [
                f"{family.name}{_labels(labels)} {_number(value)}"
                for labels, value in family.samples
            ]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: Mapping[str, str]) -> str:
    said = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{said}}}" if said else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
