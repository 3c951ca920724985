"""The partitions by which Dagster replays a source's past: hours or days of commit
time, UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum


class Partitions(StrEnum):
    """The length of each partition."""

    HOURLY = "hourly"
    DAILY = "daily"

    @property
    def length(self) -> timedelta:
        return timedelta(hours=1) if self is Partitions.HOURLY else timedelta(days=1)

    @property
    def key_format(self) -> str:
        """The strftime format of a partition's key in Dagster. The key is the
        partition's first moment."""
        return "%Y-%m-%d-%H:%M" if self is Partitions.HOURLY else "%Y-%m-%d"

    def begin_of(self, moment: datetime) -> datetime:
        """Return the beginning of the partition that a moment is in. The moment has a
        time zone."""
        hour = moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        return hour if self is Partitions.HOURLY else hour.replace(hour=0)
