"""A story is made smaller as long as it fails as it did."""

from __future__ import annotations

import pytest

from tests.operating.known import STORIES
from tests.operating.made import kind_of, shrunk
from tests.operating.story import Story

NOTHING = "after 0: Op('tick', 1)\n  it ends with 1, and not with (0,): nothing to read at `/tmp/x`"
WRONG = "after {}: Op('deploy', {})\n  `o` of `main` at tick {} is [], not [('y', {})]"


@pytest.mark.parametrize(
    ("one", "other", "are_alike"),
    [
        (WRONG.format(16, 1, 1, 2), WRONG.format(4, 3, 0, 5), True),
        (NOTHING, NOTHING.replace("/tmp/x", "/tmp/other/place"), True),
        (WRONG.format(16, 1, 1, 2), NOTHING, False),
        (WRONG.format(16, 1, 1, 2), None, False),
    ],
)
def test_what_is_wrong_is_known_by_its_words(one: str, other: str | None, are_alike: bool) -> None:
    assert (kind_of(one) == kind_of(other)) is are_alike


def test_a_smaller_story_fails_as_the_larger_one() -> None:
    story = STORIES["a late row and a deployment"]

    def problem(one: Story) -> str | None:
        """Without a first row there is nothing to read; a deployment after a tick is wrong."""
        done = [op.what for op in one.ops]
        if done[:1] != ["land"]:
            return NOTHING
        is_wrong = "tick" in done and "deploy" in done[done.index("tick") :]
        return WRONG.format(len(done), 1, 1, len(done)) if is_wrong else None

    less = shrunk(story, problem, 60)
    assert [op.what for op in less.ops] == ["land", "tick", "deploy"]
