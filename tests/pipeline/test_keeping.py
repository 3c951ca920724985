"""How long versions stay: what properties say, and what holds a promise."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lockstep.pipeline.check.findings import MirrorEvidence, findings_of
from lockstep.pipeline.check.mirrors import MIRROR_RULES
from lockstep.pipeline.values.retention import DEFAULT_KEEP, FILES_PROPERTY, LOG_PROPERTY, Retention
from tests.pipeline.preflight_made import ORDERS, looked

DAY = timedelta(days=1)


@pytest.mark.parametrize("keep", [DEFAULT_KEEP, DAY, 400 * DAY, timedelta(hours=36)])
def test_a_promise_is_read_back_as_it_was_written(keep: timedelta) -> None:
    """And holds: the log longer than the files, or versions would go with its checkpoints."""
    promised = Retention.for_keep(keep)
    assert Retention.of(promised.properties()) == promised
    assert promised.covers(keep)
    assert promised.log > promised.files == keep


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, Retention(7 * DAY, 30 * DAY)),
        ({FILES_PROPERTY: "interval 2 weeks"}, Retention(14 * DAY, 30 * DAY)),
        ({FILES_PROPERTY: "1 day 12 hours"}, Retention(36 * timedelta(hours=1), 30 * DAY)),
        ({LOG_PROPERTY: "INTERVAL 90 DAYS"}, Retention(7 * DAY, 90 * DAY)),
        ({FILES_PROPERTY: "interval 1 month"}, None),
        ({LOG_PROPERTY: "for ever"}, None),
        ({LOG_PROPERTY: "interval 2147483647 days"}, None),
    ],
)
def test_what_properties_say(properties: dict[str, str], expected: Retention | None) -> None:
    """Delta's defaults where they say nothing; None where they are not understood."""
    assert Retention.of(properties) == expected


@pytest.mark.parametrize(("files", "log"), [(29, 60), (30, 29)])
def test_a_shorter_one_is_a_warning_with_what_to_type(files: int, log: int) -> None:
    """The statement names the mirror, and what it sets holds the promise."""
    mirror = MirrorEvidence(ORDERS, "/lake/shop/orders", Retention(files * DAY, log * DAY))
    (found,) = findings_of(MIRROR_RULES, looked(mirrors=(mirror,)))
    assert (found.level, found.subject) == ("warning", "shop.orders")
    assert found.hint is not None
    assert "ALTER TABLE delta.`/lake/shop/orders` SET TBLPROPERTIES" in found.hint
    assert f"'{LOG_PROPERTY}' = 'interval 60 days'" in found.hint


def test_a_log_may_be_kept_as_short_as_its_files() -> None:
    """Both as long as was promised: no warning."""
    mirror = MirrorEvidence(ORDERS, "/lake/shop/orders", Retention(DEFAULT_KEEP, DEFAULT_KEEP))
    assert [one.level for one in findings_of(MIRROR_RULES, looked(mirrors=(mirror,)))] == ["ok"]
