"""Which version of a mirror can be an origin, when files of some are gone."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lockstep.pipeline.values.intent import MirrorVersion
from lockstep.pipeline.values.table import TableName
from tests.outside import RunPorts, earliest_readable_version, newest_readable_version

VERSIONS = [
    MirrorVersion(number, TableName("shop", "t"), "shop/shop/t", number, number)
    for number in reversed(range(4))
]


@pytest.mark.parametrize("gone", [*product((False, True), repeat=4)])
def test_if_one_way_finds_a_version_so_does_the_other(gone: tuple[bool, ...]) -> None:
    """A rebuild begins with the newest that can be read, a reload with an early one: the oldest,
    unless that is gone."""

    def reason_unreadable(mirror: str, version: int, **_: Any) -> str | None:
        return "a file of it is missing" if gone[version] else None

    ports = cast(
        "RunPorts", SimpleNamespace(mirrors=SimpleNamespace(reason_unreadable=reason_unreadable))
    )
    readable = [number for number in range(4) if not gone[number]]
    newest = newest_readable_version(ports, VERSIONS)
    earliest = earliest_readable_version(ports, VERSIONS)
    assert (newest and newest.delta_version) == (readable[-1] if readable else None)
    assert (earliest is None) == (newest is None)
    assert earliest is None or earliest.delta_version in readable
    if not gone[0]:
        assert earliest == VERSIONS[-1]
