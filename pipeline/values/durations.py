"""Time spans in words."""

from __future__ import annotations

from datetime import timedelta


def duration_text(span: timedelta) -> str:
    """Return a time span in days, hours, minutes or seconds."""
    seconds = span.total_seconds()
    units = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
    size, unit = next((unit for unit in units if seconds >= unit[0]), units[-1])
    number = f"{seconds / size:.{0 if size == 1 else 1}f}".removesuffix(".0")
    return f"{number} {unit}{'' if number == '1' else 's'}"
