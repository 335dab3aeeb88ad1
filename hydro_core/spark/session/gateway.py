"""Fewer calls of the JVM: every one is a message to another process and back.

A plan of some thirty operators is made by thousands of calls. For each function PySpark asks for
its class and then for the function before it calls it, and it fills each list item by item. Here
the answers of the first two are kept, and short lists are made by one call.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import GatewayClient, JavaClass, JavaMember, JVMView

_CLASSES = (
    "org.apache.spark.sql.functions",
    "functions",
    "PythonUtils",
    "PythonSQLUtils",
    "SparkSession",
)
"""The classes, by the names by which PySpark asks for them all the time."""

_LONGEST = 10
"""`List.of` takes so many items, one by one."""


def with_fewer_calls(jvm: JVMView) -> None:
    """Makes what looks things up in this JVM keep the answers."""
    client = jvm._gateway_client  # noqa: SLF001 - it has no other way to its client
    if any(isinstance(converter, _ShortLists) for converter in client.converters):
        return  # a JVM serves several contexts, one after the other
    for name in _CLASSES:
        found = getattr(jvm, name)
        if isinstance(found, JavaClass):
            # Python asks a view for an attribute by name only if it has none.
            setattr(jvm, name, _Remembering(found._fqn, client))  # noqa: SLF001 - nor to a name
    client.converters = [_ShortLists(client), *client.converters]


class _Remembering(JavaClass):  # type: ignore[misc]
    """A class of the JVM that looks each of its functions up once."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            setattr(self, name, found)
        return found


class _ShortLists:
    """Lists as arguments: short ones by one call, where py4j's own converter takes one an item."""

    def __init__(self, client: GatewayClient) -> None:
        self._of = JavaMember("of", None, "z:java.util.List", client)

    def can_convert(self, given: object) -> bool:
        # `List.of` takes no nulls.
        return (
            isinstance(given, list | tuple)
            and 0 < len(given) <= _LONGEST
            and all(item is not None for item in given)
        )

    def convert(self, given: list[Any] | tuple[Any, ...], client: GatewayClient) -> Any:
        return self._of(*given)
