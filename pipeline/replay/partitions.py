"""A source's past in parts of commit time, UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum


class Partitions(StrEnum):
    """How long a part is."""

    HOURLY = "hourly"
    DAILY = "daily"

    @property
    def length(self) -> timedelta:
        return timedelta(hours=1) if self is Partitions.HOURLY else timedelta(days=1)

    @property
    def key_format(self) -> str:
        """Of a part's beginning, as Dagster spells the keys of its partitions."""
        return "%Y-%m-%d-%H:%M" if self is Partitions.HOURLY else "%Y-%m-%d"

    def begin_of(self, moment: datetime) -> datetime:
        """Of the part that a moment (with a zone) is in."""
        hour = moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        return hour if self is Partitions.HOURLY else hour.replace(hour=0)
