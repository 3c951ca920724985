"""Events told at once are those that would be told one by one, in fewer commits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import dagster as dg
import pytest
from dagster._serdes import serialize_value
from sqlalchemy import event
from sqlalchemy.engine import Engine

from assets import event_batch
from assets.event_batch import at_once
from assets.event_text import remembering
from assets.hints import evaluated
from assets.home import dagster_home, open_instance
from tests.dagster.place import QUIET

TABLES = 50
SHARING = 40
"""Events of one commit: one is full, and one is not."""


@contextmanager
def commits() -> Iterator[list[object]]:
    seen: list[object] = []
    event.listen(Engine, "commit", seen.append)
    try:
        yield seen
    finally:
        event.remove(Engine, "commit", seen.append)


def told(
    instance: dg.DagsterInstance, batch: AbstractContextManager[None]
) -> tuple[list[tuple[str, str]], int]:
    """What a run's log has that tells of tables and then fails, and the commits while it told."""
    counted: list[int] = []

    @dg.multi_asset(specs=[dg.AssetSpec("tables", skippable=True)])
    @evaluated
    def tables(context: dg.AssetExecutionContext) -> None:
        with commits() as seen:
            try:
                with batch:
                    for number in range(TABLES):
                        key = f"t{number}"
                        context.log_event(dg.AssetMaterialization(key, metadata={"n": number}))
                    context.log.info("between")
                    raise ValueError("behind the last")
            finally:
                counted.append(len(seen))

    result = dg.materialize([tables], instance=instance, raise_on_error=False, run_config=QUIET)
    assert not result.success
    logged = [
        (str(entry.dagster_event_type), entry.message or entry.user_message)
        for entry in instance.all_logs(result.run_id)
    ]
    keys = [
        entry.get_dagster_event().asset_key
        for entry in instance.all_logs(
            result.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
        )
    ]
    assert keys == [dg.AssetKey(f"t{number}") for number in range(TABLES)]
    return logged, counted[0]


def test_events_are_told_in_few_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of a run is the same, what was told before an error included; each table's last
    event is known; the storage is as it was before."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setattr(event_batch, "EVENTS", SHARING)
    with open_instance(dagster_home(tmp_path)) as instance:
        single, many = told(instance, nullcontext())
        batched, few = told(instance, at_once(instance))
        assert len(batched) == len(single)
        assert [kind for kind, _ in batched] == [kind for kind, _ in single]
        assert many > 2 * TABLES
        assert few < 10
        last = instance.get_latest_materialization_event(dg.AssetKey(f"t{TABLES - 1}"))
        assert last is not None
        assert last.run_id == instance.get_runs(limit=1)[0].run_id
        assert "_connect" not in vars(instance.event_log_storage)
        record = instance.fetch_materializations(dg.AssetKey(f"t{TABLES - 1}"), limit=1).records[0]
    text = remembering(serialize_value)
    for _ in range(2):
        for value in (record.event_log_entry, record, dg.AssetKey("t")):
            assert text(value) == serialize_value(value)
