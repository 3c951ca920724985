"""OpenLineage's events as values: how a run ended, and how large they become."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from openlineage.client.serde import Serde

from lockstep.assets.run_events import RunEventSender, last_event
from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.run.reports import AcknowledgeReport, MergeReport, TableMerge
from lockstep.pipeline.run.run import RunRecord, RunSession
from lockstep.pipeline.run.status.run_news import MOST_COLUMNS, MOST_TABLES, RunNews, TableNews
from lockstep.pipeline.schema.model import ColumnSchema, TableSchema
from lockstep.pipeline.values.errors import (
    ConfigurationError,
    LeaseLost,
    LedgerUnavailable,
    SetupIncomplete,
    SourceBusy,
    SourceUnavailable,
)
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.table import TableName
from lockstep.resources.config import Settings
from lockstep.resources.config.model import LineageSection
from lockstep.resources.openlineage.events import DatasetAddresses, run_event
from lockstep.resources.openlineage.sending import open_client, require_client
from tests.dagster.place import settings_for, stand_for

NOW = datetime(2026, 11, 23, tzinfo=UTC)
IDLE = RunRecord(
    "shop",
    began_at=NOW,
    merge_report=MergeReport((), (), (), (), 0.0, 0.0),
    acknowledge_report=AcknowledgeReport((), None, {}, (), 0.0),
)


@pytest.mark.parametrize(
    ("record", "ended"),
    [
        (IDLE, None),
        (RunRecord("shop", error=SourceBusy("busy", hint="wait")), None),
        (RunRecord("shop", error=SourceUnavailable("It is away.", hint="start it")), "FAIL"),
        (RunRecord("shop", error=LeaseLost("another has it", hint="wait")), "ABORT"),
        (RunRecord("shop", defect=KeyError("a row's value")), "FAIL"),
        (RunRecord("shop", defect=KeyboardInterrupt()), "ABORT"),
        (RunRecord("shop", began_at=NOW), "ABORT"),
    ],
)
def test_how_a_run_ended(record: RunRecord, ended: str | None) -> None:
    """Nothing is sent of a run that had nothing to do, or never began; a defect is named, and not
    what it says, which may hold a value."""
    found = last_event(record)
    assert (None if found is None else found[0]) == ended
    assert "value" not in str(found)


def news(number: int, columns: int) -> TableNews:
    table = TableName("warehouse", f"order_positions_{number:05}")
    mirror, changelog = f"shop/warehouse/{table.name}", f"shop/_changes/warehouse/{table.name}"
    state = TableState(table, TableCondition.FOLLOWING, 1, mirror, changelog)
    names = [f"delivery_address_{at:03}" for at in range(columns)]
    shown = tuple((name, pa.string()) for name in names)
    counts = RowCounts(1, 2, 3)
    merge = TableMerge(table, counts, 7, mirror, changelog, 1.0, 1, 1, shown, 1)
    schema = TableSchema(table, tuple(ColumnSchema(name, "varchar", length=200) for name in names))
    described = schema if columns else None
    return TableNews(
        state,
        merge,
        has_changed_rows=True,
        schema=described,
        comments=dict.fromkeys(names, "c" * 60),
    )


def test_an_event_is_below_a_megabyte() -> None:
    """Of as many tables and columns as are told of."""
    wide = MOST_COLUMNS // 10
    tables = tuple(news(at, wide if at < 10 else 0) for at in range(MOST_TABLES))
    place = DatasetAddresses("lockstep", "shop", "db.example.com", 3306, "s3://lake", "prod")
    event = run_event("COMPLETE", place, "run", NOW, None, RunNews(tables, 9_750))
    assert (event.run.facets or {}).keys() == {"lockstep_run"}
    size = len(Serde.to_json(event).encode())
    assert 500_000 < size < 1_000_000
    assert event.outputs is not None
    assert (event.outputs[0].namespace, event.outputs[0].name) == (
        "s3://lake",
        "prod/shop/warehouse/order_positions_00000",
    )


def test_a_client_that_is_missing_or_not_told_where(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both are said with their cure before anything runs."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="names no transport"):
        open_client({})
    with pytest.raises(ConfigurationError, match="refuses its transport"):
        open_client({"type": "http"})
    monkeypatch.setitem(sys.modules, "openlineage", None)
    with pytest.raises(SetupIncomplete, match="not installed") as told:
        require_client()
    assert "lockstep[openlineage]" in told.value.hint
    with stand_for(with_lineage(tmp_path), None) as stand:
        [failed] = [event for event in stand.run().all_events if event.is_step_failure]
    assert "not installed" in str(failed.step_failure_data.user_failure_data)


def with_lineage(folder: Path) -> Settings:
    settings = settings_for(folder, "shop")
    return replace(settings, file=settings.file.model_copy(update={"lineage": LineageSection()}))


def test_the_end_is_sent_although_the_lock_is_not_released(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The ledger may be away by then."""
    ends = []

    def fail(_: RunSession) -> None:
        raise LedgerUnavailable("It is gone.", hint="start it")

    monkeypatch.setattr(RunSession, "close", fail)
    monkeypatch.setattr(RunEventSender, "__init__", lambda *_: None)
    monkeypatch.setattr(RunEventSender, "send_end", lambda *_, **__: ends.append("end"))
    with stand_for(with_lineage(tmp_path), None) as stand:
        assert not stand.run().success
    assert ends == ["end"]
