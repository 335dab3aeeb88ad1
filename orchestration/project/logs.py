"""What processes log of their work, to standard error: lines for people, or JSON objects.

A record has a time, a level, an event and a message; the rest is what the event is about.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

from hydro_core.errors import visible

FORMAT = "HYDROTICK_LOG_FORMAT"
TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)

_LOG = logging.getLogger("hydrotick")
_SAID = "hydrotick_said"
"""The attribute of a record that has what its event is about."""


def open_logs(style: str, name: str = "") -> None:
    """Has this process log from now on.

    Args:
        style: `json`: an object a line, also of warnings and of what libraries log; `text`: a line
            that begins with the name, where there is one, else nothing is logged.
        name: of the process, for people.
    """
    is_json = style == JSON
    if are_json() or not (is_json or name):
        return
    handler = logging.StreamHandler(as_it_is(sys.stderr))
    handler.setFormatter(_AsJson() if is_json else _AsText(name))
    _LOG.handlers, _LOG.propagate = [handler], False
    _LOG.setLevel(logging.INFO)
    if is_json:
        logging.captureWarnings(True)
        for library in ("py.warnings", "py4j", "deltalake", "alembic"):
            logging.getLogger(library).handlers = [handler]


def are_json() -> bool:
    return any(isinstance(handler.formatter, _AsJson) for handler in _LOG.handlers)


def as_it_is(stream: TextIO) -> TextIO:
    """The stream as it is now: while a run goes on, Dagster has all that is printed go to a file,
    and what a command says is for who sits in front of it.
    """
    try:
        return os.fdopen(os.dup(stream.fileno()), "w", encoding="utf-8", buffering=1)
    except OSError:  # what is no file of the system is not led elsewhere
        return stream


def log(event: str, message: str, level: int = logging.INFO, **about: Any) -> None:
    """Logs an event: in words, and what it is about, of which None says nothing."""
    known = {name: value for name, value in about.items() if value is not None}
    _LOG.log(level, message, extra={_SAID: {"event": event, **known}})


def log_bug(message: str) -> None:
    """Logs the exception that is being told of, with where it came from."""
    _LOG.exception(message, extra={_SAID: {"event": "bug"}})


class _AsJson(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": "log",
            "process": os.getpid(),
            **getattr(record, _SAID, {"logger": record.name}),
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["trace"] = "".join(traceback.format_exception(*record.exc_info))
        return visible(json.dumps(said, ensure_ascii=False, default=str))


class _AsText(logging.Formatter):
    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def format(self, record: logging.LogRecord) -> str:
        trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
        said = f"{self._name}: {record.getMessage()}{trace and chr(10)}{trace.rstrip()}"
        return visible(said)
