"""A JVM that is starting is waited for, whatever comes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from hydro_core.spark.session.launch import _interrupts_wait


@pytest.fixture
def _interrupts() -> Iterator[None]:
    """Ctrl-C as at a terminal: what a shell starts in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupts")
def test_an_interrupt_is_heeded_when_the_jvm_is_there() -> None:
    before, done = signal.getsignal(signal.SIGINT), []

    def start() -> None:
        with _interrupts_wait():
            signal.raise_signal(signal.SIGINT)
            done.append("started")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert done == ["started"]
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_have_no_interrupts() -> None:
    done: list[str] = []

    def start() -> None:
        with _interrupts_wait():
            done.append("started")

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert done == ["started"]
