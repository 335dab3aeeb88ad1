"""Work in which Spark's JVM ended is done once more, and no other failure is."""

from __future__ import annotations

import pytest

from hydro_core.errors import DataError, Diagnostic, EngineEndedError, HydroError
from hydrotick.runner.correction import AGAIN, with_another_jvm

ENDED = EngineEndedError(Diagnostic("runtime", "it ended", help="run it again"))


def test_it_is_done_once_more() -> None:
    tries, said = iter([ENDED, None]), list[str]()

    def work() -> int:
        failed = next(tries)
        if failed:
            raise failed
        return 7

    assert with_another_jvm(work, said.append) == 7
    assert said == [AGAIN]


@pytest.mark.parametrize(
    ("failed", "tried"),
    [(ENDED, 2), (DataError(Diagnostic("state", "broken", help="mend it")), 1)],
)
def test_it_is_not_tried_for_ever(failed: HydroError, tried: int) -> None:
    tries = list[int]()

    def work() -> None:
        tries.append(1)
        raise failed

    with pytest.raises(type(failed)):
        with_another_jvm(work, lambda _: None)
    assert len(tries) == tried
