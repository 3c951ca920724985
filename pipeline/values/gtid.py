"""GTID sets of MySQL and MariaDB: values, their algebra and their text.

Not here: their bytes in the replication protocol (`pipeline.binlog.stream.control`),
starting and ending a run at a set (`pipeline.start`, `pipeline.start.bounds`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from lockstep.pipeline.values.shown import pluralize, quote

Span = tuple[int, int]
"""The first and the last number of an interval, both included."""

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_INTERVAL = re.compile(r"([0-9]{1,20})(?:\s*-\s*([0-9]{1,20}))?")
_MARIADB = re.compile(r"([0-9]{1,10})-([0-9]{1,10})-([0-9]{1,20})(?:\.\.([0-9]{1,20}))?")
_MAX_NUMBER = (1 << 63) - 1
_MAX_ID = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class GtidSet:
    """A set of transactions: source → disjoint, ascending intervals of its numbers.

    MySQL: a source is `uuid` or `uuid:tag`. The text is what MySQL prints, without line
    breaks: UUIDs ascending, the untagged intervals of a UUID before its tags, tags in
    lower case (MySQL manual, "GTID Sets").

    MariaDB: a source is `domain-server`, and `0-1-5` is every number of that server in
    that domain up to 5, as `@@gtid_binlog_state` means it (MariaDB knowledge base,
    "Global Transaction ID"). Text: domains ascending, then servers. An interval that
    does not begin at 1, which only a difference has, is `0-1-6..7`. `gtid_binlog_state`
    puts the newest server of a domain last; a set has no such order.
    """

    intervals: Mapping[str, tuple[Span, ...]] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def parse(cls, text: str) -> GtidSet:
        """Parse a text as in `gtid_executed` or `gtid_binlog_state`; "" is the empty
        set.

        White space is accepted where MySQL accepts it; intervals may overlap, in any
        order. Raise ValueError, which says what was expected, if the text is not a set.
        """
        spans: dict[str, list[Span]] = {}
        for part in map(str.strip, text.split(",")):
            if not part:
                continue
            for source, span in _parse_mysql(part) if ":" in part else _parse_mariadb(part):
                spans.setdefault(source, []).append(span)
        return cls._of(spans)

    @classmethod
    def _of(cls, spans: Mapping[str, Iterable[Span]]) -> GtidSet:
        joined = {source: _merge_spans(spans[source]) for source in sorted(spans, key=_sort_key)}
        intervals = {source: disjoint for source, disjoint in joined.items() if disjoint}
        mysql_source = next(filter(_is_mysql, intervals), None)
        mariadb_source = next((source for source in intervals if not _is_mysql(source)), None)
        if mysql_source is not None and mariadb_source is not None:
            raise ValueError(
                "a GTID set is MySQL's or MariaDB's, never both; this one names "
                f"{mysql_source} (MySQL) and {mariadb_source} (MariaDB)"
            )
        return cls(MappingProxyType(intervals))

    @property
    def flavour(self) -> Literal["mysql", "mariadb"] | None:
        """The kind of server that made these GTIDs, or None for the empty set."""
        first = next(iter(self.intervals), None)
        if first is None:
            return None
        return "mysql" if _is_mysql(first) else "mariadb"

    @property
    def sources(self) -> tuple[str, ...]:
        """Its sources in order: `uuid`, `uuid:tag` or `domain-server`."""
        return tuple(self.intervals)

    def union(self, other: GtidSet) -> GtidSet:
        """Return the union. Raise ValueError if one set is MySQL's and the other
        MariaDB's."""
        sources = self.intervals.keys() | other.intervals.keys()
        return self._of(
            {s: (*self.intervals.get(s, ()), *other.intervals.get(s, ())) for s in sources}
        )

    def difference(self, other: GtidSet) -> GtidSet:
        return self._of(
            {
                s: _subtract_spans(spans, other.intervals.get(s, ()))
                for s, spans in self.intervals.items()
            }
        )

    def contains(self, other: GtidSet) -> bool:
        return not other.difference(self)

    def shortened_text(self, limit: int = 300) -> str:
        """Return the text for a message. If it is longer than `limit` characters,
        return as many of its first intervals as fit (at least one), and the number of
        the other intervals."""
        text = str(self)
        if len(text) <= limit:
            return text
        intervals = self._source_intervals()
        counts = range(len(intervals))
        count = max(1, bisect_right(counts, limit, key=lambda n: len(_text(intervals[:n]))) - 1)
        beginning, further_count = _text(intervals[:count]), len(intervals) - count
        if not further_count:
            return beginning
        return f"{beginning} and {pluralize(further_count, 'more interval')}"

    def __bool__(self) -> bool:
        return bool(self.intervals)

    def __hash__(self) -> int:
        return hash(tuple(self.intervals.items()))

    def __str__(self) -> str:
        return _text(self._source_intervals())

    def _source_intervals(self) -> list[tuple[str, Span]]:
        return [(source, span) for source, spans in self.intervals.items() for span in spans]


def _parse_mysql(part: str) -> list[tuple[str, Span]]:
    """Parse `uuid:1-5:7:tag:3` into intervals, each with its source."""
    uuid, *pieces = [piece.strip().lower() for piece in part.split(":")]
    if not _UUID.fullmatch(uuid):
        raise ValueError(f"{quote(part)} is not a GTID set such as <uuid>:1-5")
    intervals: list[tuple[str, Span]] = []
    source = uuid
    for piece in pieces:
        if interval := _INTERVAL.fullmatch(piece):
            intervals.append((source, _span(piece, interval[1], interval[2] or interval[1])))
        elif _TAG.fullmatch(piece):
            source = f"{uuid}:{piece}"
        else:
            raise ValueError(
                f"{quote(piece)} in {quote(part)} is neither an interval such as 1-5 nor a tag "
                "(a letter or _, then up to 31 letters, digits or _)"
            )
    if _TAG.fullmatch(pieces[-1]):
        raise ValueError(f"{quote(part)} ends in a tag; expected <uuid>:<tag>:1-5")
    return intervals


def _parse_mariadb(part: str) -> list[tuple[str, Span]]:
    """Parse `0-1-5` into its source and interval. `0-1-0`, which MariaDB may print, has
    no interval."""
    match = _MARIADB.fullmatch(part)
    if match is None:
        raise ValueError(
            f"{quote(part)} is not a GTID set: expected <uuid>:1-5 (MySQL, with a tag "
            "<uuid>:<tag>:1-5) or <domain>-<server>-<number> such as 0-1-5 (MariaDB)"
        )
    domain, server = int(match[1]), int(match[2])
    if max(domain, server) > _MAX_ID:
        raise ValueError(f"{part!r}: a domain and a server are numbers up to {_MAX_ID}")
    source = f"{domain}-{server}"
    if match[4] is not None:
        return [(source, _span(part, match[3], match[4]))]
    return [(source, _span(part, "1", match[3]))] if int(match[3]) else []


def _span(text: str, first: str, last: str) -> Span:
    span = int(first), int(last)
    if not 1 <= span[0] <= span[1]:
        raise ValueError(f"{quote(text)} is not an interval such as 1-5: numbers ascend from 1")
    if span[1] > _MAX_NUMBER:
        raise ValueError(f"{quote(text)}: a transaction's number is at most {_MAX_NUMBER}")
    return span


def _is_mysql(source: str) -> bool:
    return source.count("-") > 1  # a UUID has four, a tag none


def _sort_key(source: str) -> tuple[int, int, str]:
    """Return the sort key of a source in the canonical text."""
    if _is_mysql(source):
        return 0, 0, source
    domain, _, server = source.partition("-")
    return int(domain), int(server), ""


def _text(source_intervals: Sequence[tuple[str, Span]]) -> str:
    members: dict[str, list[str]] = {}
    previous_source = ""
    for source, (first, last) in source_intervals:
        uuid, _, tag = source.partition(":")
        if _is_mysql(source):
            texts = members.setdefault(uuid, [uuid])
            if tag and source != previous_source:
                texts.append(tag)
            texts.append(f"{first}" if first == last else f"{first}-{last}")
        else:
            number = f"{last}" if first == 1 else f"{first}..{last}"
            members[f"{source}-{number}"] = [f"{source}-{number}"]
        previous_source = source
    return ",".join(":".join(texts) for texts in members.values())


def _merge_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the same numbers as ascending intervals that neither overlap nor touch."""
    result: list[Span] = []
    for first, last in sorted(spans):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return tuple(result)


def _subtract_spans(spans: Iterable[Span], holes: Sequence[Span]) -> list[Span]:
    """Return the spans without the holes, in one pass; both are disjoint and ascending."""
    remaining: list[Span] = []
    index = 0
    for first, last in spans:
        while index < len(holes) and holes[index][0] <= last:
            low, high = holes[index]
            if first < low:
                remaining.append((first, low - 1))
            first = max(first, high + 1)
            if high > last:
                break
            index += 1
        if first <= last:
            remaining.append((first, last))
    return remaining
