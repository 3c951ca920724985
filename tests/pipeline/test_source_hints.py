"""Commands in hints name the source they are for."""

from __future__ import annotations

import pytest

from lockstep.pipeline.values.errors import LockstepError, StartUnreachable, named, naming


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (
            "choose: `lockstep start-at PLACE --reason …`; or wait",
            "choose: `lockstep start-at PLACE --source shop --reason …`; or wait",
        ),
        (
            "`lockstep start-at gtid:a:1-5 --reason …`, then `lockstep start-at latest --reason x`",
            "`lockstep start-at gtid:a:1-5 --source shop --reason …`, "
            "then `lockstep start-at latest --source shop --reason x`",
        ),
        (
            "`lockstep start-at latest --source other --reason …`",
            "`lockstep start-at latest --source other --reason …`",
        ),
        ("`lockstep verify`, or start-at", "`lockstep verify`, or start-at"),
    ],
)
def test_a_start_is_for_one_source(hint: str, expected: str) -> None:
    """Once; other commands, and hints that name theirs, stay as they are."""
    once = named(StartUnreachable("gone", hint=hint), "shop")
    assert once.hint == expected
    assert named(once, "shop").hint == expected


def test_a_refusal_names_it_where_it_leaves_the_source() -> None:
    with pytest.raises(LockstepError) as caught, naming("shop"):
        raise StartUnreachable("gone", hint="`lockstep start-at earliest --reason …`")
    assert caught.value.hint == "`lockstep start-at earliest --source shop --reason …`"
