"""A run's tag `lockstep/until`: where it ends, as `--until` says it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from lockstep.assets.names import SOURCE_TAG, UNTIL_TAG, job_name
from lockstep.resources.mysql.connection import ConnectionSettings
from lockstep.resources.mysql.server import MySqlServer
from tests.dagster.place import QUIET, Stand, settings_for, stand_for
from tests.fix_mysql import MySqlStand
from tests.positions.servers import head


@pytest.fixture
def stand(mysql: MySqlStand, database: str, tmp_path: Path) -> Iterator[Stand]:
    """A source with a table that nobody captured yet."""
    file, offset = head(mysql)
    mysql.execute(f"create table {database}.t (id int primary key)")
    start = f"{file}:{offset}"
    settings = settings_for(tmp_path, "shop", tables=f"{database}.*", start=start)
    # The tests' server has no certificate that could be verified.
    server = MySqlServer(
        ConnectionSettings(mysql.host, mysql.port, mysql.account, mysql.password, tls="required")
    )
    with stand_for(settings, server) as made:
        yield made


def launched(stand: Stand, until: str) -> dg.ExecuteInProcessResult:
    """The job, with the tag as a person types it on the launchpad."""
    job = stand.definitions().resolve_job_def(job_name("shop"))
    return job.execute_in_process(
        instance=stand.instance,
        run_config=QUIET,
        tags={SOURCE_TAG: "shop", UNTIL_TAG: until},
        raise_on_error=False,
    )


def test_a_run_ends_at_its_tag(stand: Stand, mysql: MySqlStand, database: str) -> None:
    """And a run without one at the head. A tag that is no place fails with the form: the sentence
    and the cure are on the page; nothing is retried, nothing is recorded."""
    result = launched(stand, "tomorrow")
    assert not result.success
    [failed] = [event for event in result.all_events if event.is_step_failure]
    told = failed.step_failure_data.user_failure_data
    assert told is not None
    for part in (UNTIL_TAG, "expected 2026-11-01T06:00:00Z", "hint: "):
        assert part in (told.description or "")
    assert stand.adapters.books.lease("shop") is None
    mysql.execute(f"insert into {database}.t values (1)")
    file, offset = head(mysql)
    mysql.execute(f"insert into {database}.t values (2)")
    assert launched(stand, f"{file}:{offset}").success
    mirror = stand.adapters.lake.tables[f"shop/{database}/t"]
    assert mirror[-1].rows.to_pylist() == [{"id": 1}]
    assert stand.run().success
    assert mirror[-1].rows.to_pylist() == [{"id": 1}, {"id": 2}]
