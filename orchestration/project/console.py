"""Progress and questions of a command, and the flow that it is about."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from hydro_core.cli import output
from hydro_core.cli.command import Asked, MisuseError
from hydro_core.errors import DataError, in_a_line
from hydro_core.lang.source import did_you_mean
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow, span
from hydro_core.types.item import BOOLEAN, STRING, ItemType, is_numeric
from hydro_core.types.json import from_json

from . import project
from .logs import are_json, as_it_is, log, open_logs
from .project import Project
from .settings import ProjectSettings


class Console:
    """Progress and questions of a command: on standard error where it gives JSON."""

    def __init__(self, options: Asked) -> None:
        self.gives_json = options.format == "json"
        self.to = as_it_is(sys.stderr if self.gives_json else sys.stdout)
        self._yes = bool(getattr(options, "yes", False))

    def say(self, *lines: str) -> None:
        for line in lines:
            if are_json():
                log("progress", line.strip())
            else:
                output.write(f"{line}\n", self.to)

    def agreed(self, unchanged: str = "Nothing was changed.") -> bool:
        """Asks whether to go on, unless that was said with `--yes`; what follows from a no is told.

        Raises:
            DataError: there is nobody to ask (code `config`).
        """
        if self._yes:
            return True
        if not sys.stdin.isatty():
            message = "this is asked before it is done, and there is no terminal to ask at"
            cure = "give `--yes` to do it without a question"
            raise DataError.of("config", message, help=cure)
        return self._proceeds(self._answer("Go on? [y/N] ").lower() in ("y", "yes"), unchanged)

    def named(self, name: str, unchanged: str) -> bool:
        """Asks for a name to be typed, for what cannot be undone."""
        return self._yes or self._proceeds(
            self._answer(f"Type {name} to go on: ") == name, unchanged
        )

    def _answer(self, question: str) -> str:
        self.to.write(question)
        self.to.flush()
        return sys.stdin.readline().strip()

    def _proceeds(self, agreed: bool, unchanged: str) -> bool:
        if not agreed:
            self.say(unchanged)
        return agreed


def asked_flow(asked: Asked) -> tuple[FlowAsset, ProjectSettings]:
    """The flow that a command is about, and the project's settings, by which it logs.

    Raises:
        HydroError: there is no project, or what it says of the flow is wrong.
        MisuseError: the project has no such flow.
    """
    found = project.current()
    open_logs(found.settings.log_format)
    return flow_named(asked.flow, found), found.settings


def flow_named(name: str, found: Project) -> FlowAsset:
    """The flow of that name.

    Raises:
        HydroError: what the project says of the flow is wrong.
        MisuseError: there is none.
    """
    flow = found.flow(name)
    if flow is not None:
        return flow
    there = ", ".join(found.names) or f"none in {found.settings.root}/assets"
    near = did_you_mean(name, found.names)
    near = f": {near}" if near else ""
    raise MisuseError(f"there is no flow `{name}`{near} (flows: {there})")


def telling_computed(
    say: Callable[[str], None], total: int, first: int = 0
) -> Callable[[Sequence[TickWindow]], None]:
    """What is called with ticks that have been computed: says how many of all that is, and after
    which time. The ticks begin with `first`.
    """
    began = time.monotonic()

    def computed(windows: Sequence[TickWindow]) -> None:
        done, spent = windows[-1].tick + 1 - first, time.monotonic() - began
        ticks = span(window.key for window in windows)
        say(f"{ticks}: computed; {done:,} of {total:,} after {spent:.1f} s")

    return computed


class ProgressLine:
    """Says nothing where standard error is no terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def say(self, text: str) -> None:
        self._write(f"\r  {in_a_line(text)} ")

    def end(self) -> None:
        self._write("\r\033[K")

    def _write(self, text: str) -> None:
        if self._shown:
            sys.stderr.write(text)
            sys.stderr.flush()


def value_in(text: str, item: ItemType) -> Any:
    """The value of a type that a text names: itself, between double quotes or not, or as in JSON.

    Raises:
        ValueProblem: it is none of that type.
    """
    if item == STRING:
        return _read(text) if len(text) > 1 and text[:1] == text[-1:] == '"' else text
    return from_json(_read(text) if is_numeric(item) or item == BOOLEAN else text, item)


def wrong_where(text: str, problem: str, cure: str) -> DataError:
    return DataError.of("config", f"`--where {text}`: {problem}", help=cure)


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
