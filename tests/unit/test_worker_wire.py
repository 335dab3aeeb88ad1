"""Messages of a worker arrive, all of them and in order, however they come."""

from __future__ import annotations

import socket
import threading

from hydrotick.worker.wire import Channel


def _pair() -> tuple[Channel, Channel]:
    ours, its = socket.socketpair()
    return Channel(ours), Channel(its)


def test_what_came_with_the_first_message_is_read_after_it() -> None:
    ours, its = _pair()
    its.send({"kind": "taken"})
    its.send({"kind": "started"})
    its.close()
    assert next(ours.messages()) == {"kind": "taken"}
    assert list(ours.messages()) == [{"kind": "started"}]
    ours.close()


def test_who_waits_for_a_message_is_let_go_when_the_channel_is_closed() -> None:
    ours, its = _pair()
    its.send({"kind": "taken"})
    messages, seen = ours.messages(), list[object]()
    assert next(messages) == {"kind": "taken"}
    waits = threading.Thread(target=lambda: seen.extend(messages), daemon=True)
    waits.start()
    ours.close()
    waits.join(10)
    assert not waits.is_alive()
    assert seen == []
    its.close()
