"""Fewer calls of the JVM: every one is a message to another process and back.

A plan of some thirty operators is made by thousands of calls. For each function PySpark asks for
its class and then for the function before it calls it, it names the same columns again and again,
fills each list item by item, and gives back one by one what it has made. Here the answers of the
first three are kept, lists are made ten items at a time, and what is not needed any more is given
back many at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER, JavaClient
from py4j.java_gateway import JavaClass, JavaMember, JavaObject, JVMView
from py4j.protocol import ENTRY_POINT_OBJECT_ID, GATEWAY_SERVER_OBJECT_ID, Py4JError

_CLASSES = (
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.SparkSession",
    "functions",
    "PythonUtils",
    "PythonSQLUtils",
    "SparkSession",
)
"""The classes, by the names by which PySpark asks for them all the time."""

_CONSTANT = {"col", "lit"}
"""The functions that give the same column for the same value."""

_LONGEST = 10
"""`List.of` takes so many items, one by one."""

_FEW = 8
"""So many objects are given back one by one: to do it at once makes two objects itself."""

_NOT_MADE = (ENTRY_POINT_OBJECT_ID, GATEWAY_SERVER_OBJECT_ID)
"""Objects that were there before any call."""

_GATHERING = 0.05
"""So many seconds what is not needed any more is gathered before it is given back."""


def with_fewer_calls(jvm: JVMView) -> None:
    """Makes what looks things up in this JVM keep the answers."""
    client = jvm._gateway_client  # noqa: SLF001 - it has no other way to its client
    if any(isinstance(converter, _Lists) for converter in client.converters):
        return  # a JVM serves several contexts, one after the other
    for name in _CLASSES:
        found = getattr(jvm, name)
        if isinstance(found, JavaClass):
            # Python asks a view for an attribute by name only if it has none.
            setattr(jvm, name, _Remembering(found._fqn, client))  # noqa: SLF001 - nor to a name
    client.converters = [_Lists(jvm), *client.converters]
    if isinstance(client, JavaClient):
        client.garbage_collect_object = _Releases(jvm, client).release


class _Remembering(JavaClass):  # type: ignore[misc]
    """A class of the JVM that looks each of its functions up once."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            found = _remembering(found) if name in _CONSTANT else found
            setattr(self, name, found)
        return found


def _remembering(function: JavaMember) -> Callable[[Any], Any]:
    """The function, which is called once for each text, whole number, truth value and None."""

    @lru_cache(maxsize=1000, typed=True)
    def known(value: Any) -> Any:
        return function(value)

    def call(value: Any) -> Any:
        # To compare other values may take calls, and 0.0 equals -0.0.
        is_plain = value is None or type(value) in (str, int, bool)
        return known(value) if is_plain else function(value)

    return call


class _Lists:
    """Lists as arguments, ten items by a call, where py4j's own converter takes one an item."""

    def __init__(self, jvm: JVMView) -> None:
        self._new, self._of = jvm.java.util.ArrayList, jvm.java.util.List.of

    def can_convert(self, given: object) -> bool:
        # `List.of` takes no nulls.
        return isinstance(given, list | tuple) and all(item is not None for item in given)

    def convert(self, given: list[Any] | tuple[Any, ...], client: JavaClient) -> Any:
        if len(given) <= _LONGEST:
            return self._of(*given)
        found = self._new()
        for start in range(0, len(given), _LONGEST):
            found.addAll(self._of(*given[start : start + _LONGEST]))
        return found


class _Releases:
    """Gives back what Python does not need any more: any number of objects by three calls."""

    def __init__(self, jvm: JVMView, client: JavaClient) -> None:
        self._client, self._one = client, client.garbage_collect_object
        gateway = JavaObject(GATEWAY_SERVER_OBJECT_ID, client).getGateway()
        self._held = gateway.getBindings().keySet()
        self._split = jvm.org.apache.commons.lang3.StringUtils.split
        self._as_list = jvm.java.util.Arrays.asList

    def release(self, target_id: str, enqueue: bool = True) -> None:
        """Py4j calls it when an object is gone, and again in its thread that gives objects back."""
        if enqueue:
            self._one(target_id)
            return
        time.sleep(_GATHERING)
        gone = [target_id, *self._waiting()]
        if len(gone) <= _FEW:
            for one in gone:
                self._one(one, False)
            return
        # Without a connection there is nobody to keep them.
        with suppress(Py4JError, OSError):
            made = " ".join(one for one in gone if one not in _NOT_MADE)
            self._held.removeAll(self._as_list(self._split(made, " ")))

    def _waiting(self) -> Iterator[str]:
        """What else is not needed any more."""
        queue = self._client.finalizer_deque
        while queue:
            task = queue.pop()
            if task == SHUTDOWN_FINALIZER_WORKER:
                queue.append(task)
                return
            yield task[1]
