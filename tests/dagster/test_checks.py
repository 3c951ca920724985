"""Each check passes on a run that went well, and tells what was broken behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from lockstep.assets.checks import CHECKS
from lockstep.assets.dagster_metadata import KEYS_CHECK, run_summary, stopped_tables_metadata
from lockstep.assets.names import SourceNames
from lockstep.assets.table_list import read_table_list
from lockstep.commands.run import run_source
from lockstep.pipeline.model.table_state import StoppedTable
from lockstep.pipeline.proof.proven import (
    ComparisonRecord,
    ComparisonResult,
    EqualityProof,
    ProofKind,
)
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.run.reports import MergeReport
from lockstep.pipeline.snapshot.condition import read_condition
from lockstep.pipeline.source_plan import RereadRows
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from tests.dagster.place import Stand, checks_of, source_of
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head

NAMES = SourceNames("shop")
NOW = datetime(2026, 11, 1, 6, tzinfo=UTC)


@pytest.fixture
def stand(mysql: MySqlStand, database: str, tmp_path: Path) -> Iterator[Stand]:
    """A source with one table, in which each operation came to rows, and the table was emptied."""
    statements = (
        "create table a (id int primary key, v int)",
        "insert into a values (0, 0)",
        "truncate table a",
        "insert into a values (1, 1), (2, 2), (3, 3)",
        "update a set v = 9 where id < 3",
        "delete from a where id = 3",
    )
    days = '[dagster]\npartitions = "daily"\n'
    with source_of(mysql, database, tmp_path, *statements, extra=days) as made:
        yield made


def checks(stand: Stand) -> dict[str, dg.AssetCheckEvaluation]:
    """Of the source, as a run without anything new leaves them."""
    result = stand.run()
    assert result.success
    return checks_of(result)


def failing(stand: Stand) -> dict[str, str]:
    return {name: one.severity.value for name, one in checks(stand).items() if not one.passed}


def test_rows_are_added_up_by_operation(stand: Stand, database: str) -> None:
    """Read, written and merged are the same; a row that is missing in a batch is an error, and
    one that no write has is a warning while its table follows."""
    found = checks(stand)
    assert {name for name, one in found.items() if not one.passed} == set()
    told = {name: one.value for name, one in found["rows_add_up"].metadata.items()}
    for where in ("written", "merged"):
        assert [told[f"rows {what}, {where}"] for what in ("inserted", "updated", "deleted")] == [
            4,
            2,
            1,
        ]
    assert told["images read"] == told["images written"] == 4 + 2 * 2 + 1 + 1
    tell = stand.adapters.books.database.tell
    [(batch, segment)] = tell("select batch, min(id) from lockstep.segments group by batch")
    tell("update lockstep.segments set inserted = inserted - 2 where id = %s", segment)
    assert failing(stand) == {"rows_add_up": "ERROR"}
    tell("update lockstep.segments set inserted = inserted + 2 where id = %s", segment)
    tell("create table clock.writes as select * from lockstep.writes")
    tell("delete from lockstep.writes")
    lost = checks(stand)["rows_add_up"]
    assert (lost.passed, lost.severity.value) == (False, "WARN")
    assert f"batch {batch}" in str(lost.description)
    tell("insert into lockstep.writes overriding system value table clock.writes")
    tell("drop table clock.writes")
    assert failing(stand) == {}


def test_rows_that_were_read_again_add_up(stand: Stand, mysql: MySqlStand, database: str) -> None:
    """Such a row is an update with one image. A row too many in the same batch is an error."""
    assert stand.run().success
    mysql.execute(
        "set sql_log_bin = 0",
        "update a set v = 5 where id = 1",
        "delete from a where id = 2",
        "set sql_log_bin = 1",
        "insert into a values (4, 4)",
        database=database,
    )
    order = RereadRows(TableName(database, "a"), read_condition("id < 9"), "ann", "because")
    adapters = stand.adapters
    record = run_source(adapters.settings, "shop", adapters, SilentProgress(), reread=order)
    assert record.error is None
    assert failing(stand) == {}
    tell = stand.adapters.books.database.tell
    tell(
        "update lockstep.segments set inserted = inserted + 9 "
        "where batch = (select max(batch) from lockstep.segments)"
    )
    assert failing(stand) == {"rows_add_up": "ERROR"}


def test_what_is_old_is_told(stand: Stand, mysql: MySqlStand, database: str) -> None:
    """A proof and a consumer that are older than versions are kept; not before. A consumer of a
    source that was idle is not late: it waits since there is something to read, however old what it
    read last is."""
    stand.run()
    books = stand.adapters.books
    books.consumers.make_consumer("shop", "billing", "earliest")
    cursor = books.cursors("shop").acknowledged
    assert cursor is not None
    proven = EqualityProof(ProofKind.EXACT, 2, cursor.position.at, "")
    books.note_compared("shop", [ComparisonResult(TableName(database, "a"), True, proven, 0)])
    stand.adapters.later = timedelta(days=29)
    assert failing(stand) == {}
    stand.adapters.later = timedelta(days=31)
    assert failing(stand) == {"proofs_are_recent": "WARN", "consumers_keep_up": "WARN"}
    stand.adapters.later = timedelta()
    books.consumers.drop_consumer("shop", "billing", author="ann", reason="it was idle")
    books.consumers.make_consumer("shop", "billing", cursor.batch)
    books.database.tell(
        "update lockstep.batches set acknowledged_at = acknowledged_at - interval '31 days'"
    )
    mysql.execute("insert into a values (8, 8)", database=database)
    assert failing(stand) == {}


def test_the_oldest_proof_is_that_of_a_table_which_follows() -> None:
    """As `lockstep status` shows it: the mirror of a stopped table may lack later changes."""
    proof = EqualityProof(ProofKind.EXACT, 2, Coordinates.parse("binlog.000007:4"), "")
    ages = {"follows": timedelta(hours=1), "stopped": timedelta(days=9)}
    facts: Any = SimpleNamespace(
        now=NOW,
        proofs=[
            ComparisonRecord(TableName("shop", name), True, NOW - age, 0, proof, NOW - age)
            for name, age in ages.items()
        ],
        stopped_tables=[StoppedTable(TableName("shop", "stopped"), "why", "how", "")],
    )
    [judge] = [judge for name, _, judge in CHECKS if name == "no_table_differs"]
    assert judge(facts).metadata["oldest proof in seconds"] == 3600.0


def test_thousands_of_tables_make_no_huge_event() -> None:
    """Dagster keeps what each run says: of stopped tables the first and the number of the others,
    of comparisons those with a difference first."""
    stopped = [StoppedTable(TableName("shop", f"t{n}"), "why", "how", "") for n in range(5000)]
    table = stopped_tables_metadata(stopped)
    assert isinstance(table, dg.TableMetadataValue)
    assert (len(table.records), table.records[-1].data["table"]) == (501, "and 4,500 more")
    report: Any = SimpleNamespace(quarantined=tuple(stopped))
    summary = run_summary(MergeReport((), (), (), (), 0.0, 0.0), report)
    assert (summary.count("**"), "and 4,950 more tables" in summary) == (100, True)
    records = [
        ComparisonRecord(TableName("shop", f"t{number}"), True, NOW, int(number == 999), None, None)
        for number in range(1000)
    ]
    facts: Any = SimpleNamespace(now=NOW, proofs=records, stopped_tables=())
    [judge] = [judge for name, _, judge in CHECKS if name == "no_table_differs"]
    assert judge(facts).metadata["compared"].records[0].data["table"] == "shop.t999"


def test_a_key_that_is_there_twice_is_found(stand: Stand, mysql: MySqlStand, database: str) -> None:
    """By the run that writes the mirror, and by a click, which counts the rows that it shows."""

    def told_by_a_run() -> list[bool]:
        found = stand.run().get_asset_check_evaluations()
        return [one.passed for one in found if one.check_name == KEYS_CHECK]

    assert told_by_a_run() == [True]
    assert told_by_a_run() == []
    settings = stand.adapters.settings
    (entry,) = read_table_list(settings.state_folder, "shop")
    key = dg.AssetCheckKey(NAMES.table_key(entry.table), KEYS_CHECK)

    def clicked() -> tuple[bool, object]:
        (found,) = stand.click((entry,), checks=[key]).get_asset_check_evaluations()
        return found.passed, found.metadata["rows with the key of another"].value

    assert clicked() == (True, 0)
    commits = stand.adapters.lake.tables[entry.mirror]
    rows = commits[-1].rows
    commits.append(replace(commits[-1], rows=pa.concat_tables([rows, rows.slice(0, 1)])))
    assert clicked() == (False, 1)
    mysql.execute("insert into a values (7, 7)", database=database)
    assert told_by_a_run() == [False]


def test_the_log_shows_its_head_and_the_lag(stand: Stand, mysql: MySqlStand, database: str) -> None:
    """An observation of each run, where nothing was read too."""
    for number in (1, 2):
        stand.run()
        records = stand.instance.fetch_observations(NAMES.log_key, limit=5).records
        assert len(records) == number
        seen = records[0].asset_observation
        assert seen is not None
        assert seen.metadata["head"].value == str(head(mysql))
        assert seen.metadata["lag bytes"].value == 0
        assert seen.metadata["lag seconds"].value == 0.0
