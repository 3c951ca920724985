"""What a server gives to new sessions changes nothing of what we read of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.chance import by_chance
from tests.fix_mysql import MySqlStand
from tests.positions.unusual_variables import Unusual, differences, unusual_values, whole_way

SERVERS = ("mysql", "mariadb")
ALL = (*SERVERS, "mysql80", "mysql57", "mariadb11")
BUNCH = 20


@pytest.fixture
def stand(request: pytest.FixtureRequest) -> MySqlStand:
    """The server that a test names."""
    found: MySqlStand = request.getfixturevalue(request.param)
    return found


def test_a_source_is_read_alike_whatever_its_global_variables_are(
    request: pytest.FixtureRequest,
) -> None:
    """Each variable has a value that it does not have by default, all of them at once, on a server
    that is drawn."""
    chance = by_chance()
    stand: MySqlStand = request.getfixturevalue(chance.choice(SERVERS))
    chosen = dict[str, Unusual]()
    values = unusual_values(stand)
    chance.shuffle(values)
    chosen.update((one.name, one) for one in values)
    require_alike(stand, list(chosen.values()))


@pytest.mark.soak
@pytest.mark.parametrize("stand", ALL, indirect=True)
def test_each_unusual_value_changes_nothing_or_is_named(stand: MySqlStand) -> None:
    """In bunches, so that none hides what another one does."""
    values = unusual_values(stand)
    by_chance().shuffle(values)
    while values:
        bunch = {one.name: one for one in values[:BUNCH]}
        values = [one for one in values if one not in bunch.values()]
        require_alike(stand, list(bunch.values()))


def require_alike(stand: MySqlStand, unusual: Sequence[Unusual]) -> None:
    plain = whole_way(stand)
    assert plain.told == ()
    assert differences(stand, plain, unusual) == []
