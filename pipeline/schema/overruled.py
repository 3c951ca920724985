"""Versions that never had a row: what was recorded while a table had stopped, and then came
out otherwise when it caught up.

Belongs here: which those are. Does not: catching up (`pipeline.runs.catch_up`).

While a table has stopped its structure is followed all the same. Its rows are read later,
by a batch that goes over the same places; where that batch knows better, by a person's word
or because a statement is followed that was not then, it records versions of its own from
that place on, and what earlier batches recorded for later places does not count.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from pipeline.schema.history import SchemaVersion, VersionOrigin


def out_of_order(versions: Sequence[SchemaVersion]) -> bool:
    """Whether some version is recorded behind one that holds from a later place on."""
    return any(not _is_before(version, other) for version, other in pairwise(versions))


def in_force(
    versions: Sequence[SchemaVersion], catching_up: Collection[int]
) -> list[SchemaVersion]:
    """`versions` of one table in their order, from one that its mirror shows on, without
    those that a batch of `catch_up` overruled. The first stays."""
    found = list(versions)
    for batch in sorted(catching_up):
        own = next((version for version in found if version.batch == batch), None)
        if own is not None and own is not found[0]:
            found = [
                version
                for version in found
                if version is found[0] or version.batch >= batch or _holds_before(version, own)
            ]
    return found


def _holds_before(version: SchemaVersion, own: SchemaVersion) -> bool:
    """A person's word at the very place of a version goes on from it."""
    goes_on = (
        own.origin is VersionOrigin.PERSON
        and version.schema is not None
        and version.since == own.since
    )
    return goes_on or _is_before(version, own)


def _is_before(version: SchemaVersion, other: SchemaVersion) -> bool:
    same = version.since.file.base == other.since.file.base
    return not same or version.since < other.since
