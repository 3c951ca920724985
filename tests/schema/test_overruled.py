"""Versions that a table's catching up overruled never count for its mirror."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.pipeline.schema.history import (
    Knowledge,
    SchemaVersion,
    VersionOrigin,
    is_out_of_order,
    valid_versions,
)
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import TableName

TABLE = TableName("shop", "orders")


def version(
    number: int, batch: int, offset: int, origin: VersionOrigin = VersionOrigin.STATEMENT
) -> SchemaVersion:
    at = Coordinates(LogFile("binlog", 1), offset)
    schema = TableSchema(TABLE, ())
    return SchemaVersion(TABLE, number, at, Knowledge.KNOWN, origin, schema, batch=batch)


def unknown(number: int, batch: int, offset: int) -> SchemaVersion:
    at = Coordinates(LogFile("binlog", 1), offset)
    reason, origin = "nobody knows", VersionOrigin.STATEMENT
    return SchemaVersion(TABLE, number, at, Knowledge.UNKNOWN, origin, reason=reason, batch=batch)


def numbers(versions: Sequence[SchemaVersion]) -> list[int]:
    return [one.version for one in versions]


def test_an_ordinary_history_stays() -> None:
    """Places ascend with the batches: nothing is asked."""
    versions = [version(1, 1, 4), version(2, 1, 100), version(3, 2, 300)]
    assert not is_out_of_order(versions)
    assert numbers(valid_versions(versions, {2})) == [1, 2, 3]


def test_what_was_recorded_for_later_places_does_not_count() -> None:
    """From the first place on of which the batch that caught up knew better."""
    versions = [
        version(1, 1, 4),
        version(2, 2, 100),
        unknown(3, 2, 200),
        version(4, 3, 300),
        version(5, 4, 200, VersionOrigin.PERSON),
        version(6, 4, 300),
        version(7, 5, 400),
    ]
    assert is_out_of_order(versions)
    assert numbers(valid_versions(versions, {4})) == [1, 2, 5, 6, 7]
    assert numbers(valid_versions(versions, set())) == [1, 2, 3, 4, 5, 6, 7]


def test_a_persons_word_goes_on_from_what_was_known_there() -> None:
    """At the very place of a version: its columns come from that one's."""
    versions = [version(1, 1, 4), version(2, 4, 200), version(3, 5, 200, VersionOrigin.PERSON)]
    assert numbers(valid_versions(versions, {4, 5})) == [1, 2, 3]
    followed = [version(1, 1, 4), version(2, 4, 200), version(3, 5, 200)]
    assert numbers(valid_versions(followed, {5})) == [1, 3]


def test_what_the_mirror_shows_stays() -> None:
    """It is where the way begins, whatever came after it."""
    versions = [version(2, 2, 300), version(5, 4, 200, VersionOrigin.PERSON)]
    assert numbers(valid_versions(versions, {4})) == [2, 5]
