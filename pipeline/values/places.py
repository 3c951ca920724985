"""The grammar of places in time, as a person may write them in settings and commands.

    2026-11-01T06:00:00Z                     a moment; an offset is required
    binlog.000012:4567                       a file and an offset in bytes
    binlog.000012@2026-11-01T06:00:00Z       a moment inside one file
    gtid:<set>                               after all transactions of the set
    run:<id>                                 the end of that run
    earliest, latest                         the beginning of the oldest log, the end of the log
    snapshot                                 only as the start of a source

Not here: finding the place in a log (`pipeline.binlog`), deciding whether a run may
start there (`pipeline.start`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.shown import quote

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_AND_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
_WITHOUT_ZONE = re.compile(_DATE_AND_TIME)
_MOMENT = re.compile(_DATE_AND_TIME + r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])")
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_FILE_END = re.compile(r"\.[0-9]{6,}\Z")
_BARE_GTIDS = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]+\s*:|[0-9]+-[0-9]+-[0-9]+", re.IGNORECASE
)

_FORMS = (
    "2026-11-01T06:00:00Z, binlog.000012:4567, binlog.000012@2026-11-01T06:00:00Z, gtid:<set>, "
    "run:<id>, earliest"
)
_MOMENT_FORM = "2026-11-01T06:00:00Z, or with an offset as in 2026-11-01T08:00:00+02:00"


def start_at(place: object, source: str) -> str:
    """Return the command, for a hint, with which the next run of a source starts at a
    place."""
    return f"`lockstep start-at {place} --source {source} --reason …`"


@dataclass(frozen=True, slots=True)
class Earliest:
    """The beginning of the oldest log file that the server still has."""

    def __str__(self) -> str:
        return "earliest"


@dataclass(frozen=True, slots=True)
class Latest:
    """The end of the log at the moment of the question."""

    def __str__(self) -> str:
        return "latest"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A start that reads the tables first, and then the log from the place at which
    they were read."""

    def __str__(self) -> str:
        return "snapshot"


@dataclass(frozen=True, slots=True)
class AtCoordinates:
    """A file and an offset that need not lie between two transactions."""

    at: Coordinates

    def __str__(self) -> str:
        return str(self.at)


@dataclass(frozen=True, slots=True)
class AtMoment:
    """The first transaction committed at or after a moment, in UTC to the microsecond."""

    moment: datetime

    def __post_init__(self) -> None:
        _require_zone(self.moment)

    def __str__(self) -> str:
        return moment_text(self.moment)


@dataclass(frozen=True, slots=True)
class InFile:
    """The first transaction of one file at or after a moment. If the file has none, a
    start is the beginning of the file and an end is its end."""

    file: LogFile
    moment: datetime

    def __post_init__(self) -> None:
        _require_zone(self.moment)

    def __str__(self) -> str:
        return f"{self.file}@{moment_text(self.moment)}"


@dataclass(frozen=True, slots=True)
class AfterGtids:
    """After all transactions of a set that is not empty."""

    gtids: GtidSet

    def __str__(self) -> str:
        return f"gtid:{self.gtids}"


@dataclass(frozen=True, slots=True)
class OfRun:
    """The place where a run ended. `run` is its id, or a unique beginning of it."""

    run: str

    def __str__(self) -> str:
        return f"run:{self.run}"


Place = Earliest | Latest | AtCoordinates | AtMoment | InFile | AfterGtids | OfRun


def parse_place(text: str) -> Place:
    """Return the place that a person wrote, without regard to white space around it.
    Raise ValueError with one sentence that names the form that the text resembles, or
    else all forms."""
    place = _parse(text, f"{_FORMS} or latest")
    if isinstance(place, Snapshot):
        raise ValueError(  # noqa: TRY004 - it is the wrong text
            f"'snapshot' is a way to start, not a place in time; expected {_FORMS} or latest"
        )
    return place


def parse_start(text: str) -> Place | Snapshot:
    """Return the start that a person wrote, as `parse_place` does."""
    return _parse(text, f"{_FORMS}, latest or snapshot")


def parse_end(text: str) -> Place:
    """Return the place that a person wrote for the end of a run, as `parse_place` does."""
    place = parse_place(text)
    if place == Earliest():
        raise ValueError(
            "'earliest' is where the log begins: nothing ends there; expected "
            f"{_FORMS.removesuffix(', earliest')} or latest"
        )
    return place


def _parse(text: str, forms: str) -> Place | Snapshot:
    text = text.strip()
    words: tuple[Place | Snapshot, ...] = (Earliest(), Latest(), Snapshot())
    word = next((word for word in words if str(word) == text), None)
    return word or _parse_in_log(text) or _parse_prefixed(text) or _refuse(text, forms)


def _parse_in_log(text: str) -> Place | None:
    """Return the place for `file:offset`, `file@moment` or a moment; None for any other
    form. Files are tried first, because their base names may look like any of the other
    forms."""
    before, colon, _ = text.rpartition(":")
    if colon and _FILE_END.search(before):
        return AtCoordinates(Coordinates.parse(text))
    file, at, moment = text.rpartition("@")
    if at and (_FILE_END.search(file) or _DATE.match(moment)):
        return InFile(LogFile.parse(file), parse_moment(moment))
    if _DATE.match(text) and not _FILE_END.search(text):
        return AtMoment(parse_moment(text))
    return None


def _parse_prefixed(text: str) -> Place | None:
    """Return the place for `gtid:…` or `run:…`; None for any other form."""
    kind, colon, rest = text.partition(":")
    if colon and kind == "gtid":
        return AfterGtids(_parse_gtids(rest))
    if colon and kind == "run":
        return OfRun(_parse_run(rest))
    return None


def _refuse(text: str, forms: str) -> NoReturn:
    """Raise ValueError with the form that the text resembles most."""
    if _FILE_END.search(text):
        raise ValueError(
            f"{quote(text)} names a log file and no place in it; expected binlog.000012:4567 or "
            "binlog.000012@2026-11-01T06:00:00Z"
        )
    if _BARE_GTIDS.match(text):
        raise ValueError(
            f"{quote(text)} looks like a GTID set; expected it after gtid:, as gtid:<set>"
        )
    raise ValueError(f"{quote(text)} is not a place in time; expected {forms}")


def parse_moment(text: str) -> datetime:
    """Return the moment in UTC. Raise ValueError if the text has no offset or is no
    moment."""
    if _WITHOUT_ZONE.fullmatch(text):
        raise ValueError(f"{text!r} does not say in which time zone; expected {_MOMENT_FORM}")
    if not _MOMENT.fullmatch(text):
        raise ValueError(f"{text!r} is not a moment; expected {_MOMENT_FORM}")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is not in the calendar: {error}") from error


def moment_text(moment: datetime) -> str:
    """Return a moment in the grammar's form: UTC, with a fraction only if it has one."""
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def _require_zone(moment: datetime) -> None:
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} does not say in which time zone")


def _parse_gtids(text: str) -> GtidSet:
    gtids = GtidSet.parse(text)
    if not gtids:
        raise ValueError(
            "the GTID set after 'gtid:' is empty; expected gtid:<uuid>:1-5 (MySQL) or gtid:0-1-5 "
            "(MariaDB); 'earliest' is the beginning of the log"
        )
    return gtids


def _parse_run(text: str) -> str:
    if not _RUN.fullmatch(text):
        raise ValueError(
            f"{text!r} after 'run:' is not a run's id; expected letters, digits, -, _ and ., as in "
            "run:0f3c1d2e (`lockstep status --json` shows them)"
        )
    return text
