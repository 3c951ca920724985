"""A changelog of several generations: read as one relation, by this package and by the
snippets that `lockstep read --changes` prints, as they are printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import lockstep
from lockstep.cli import main
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.errors import NothingMatches
from lockstep.pipeline.values.table import Column
from lockstep.resources.lake.spark.session import SparkProcess
from tests.consumers.shop import (
    NOTES,
    ORDERS,
    Shop,
    inserts,
    next_delivery,
    opened_shop,
    with_columns,
)
from tests.typed_pages import pasted

DAY = date(2026, 11, 1)
BEFORE = {
    Column("n", "int"): 7,
    Column('q"t', "int"): 3,
    Column("b`t", "smallint"): 5,
    Column("day", "date"): DAY,
    Column("f", "float"): 0.5,
    Column("flag", "bit", length=1): True,
    Column("other", "int"): 4,
}
AFTER = {
    Column("n", "bigint"): 1 << 40,
    Column('q"t', "double"): 0.5,
    Column("b`t", "decimal", precision=12, scale=2): Decimal("1.25"),
    Column("day", "datetime", length=0): datetime(2026, 11, 2, 3, 4, 5),
    Column("f", "double"): 0.25,
    Column("flag", "decimal", precision=5, scale=0): Decimal(9),
    Column("other", "date"): DAY,
}
"""Only the last one has no cast."""

SHOWN = {
    "n": (7, 1 << 40),
    'q"t': (3.0, 0.5),
    "b`t": (Decimal(5), Decimal("1.25")),
    "day": (datetime(2026, 11, 1), datetime(2026, 11, 2, 3, 4, 5)),
    "f": (0.5, 0.25),
    "flag": (Decimal(1), Decimal(9)),
    "other": (None, DAY),
    "other@1": (4, None),
}


MOMENT = datetime(2026, 11, 1, 6, 0, 0, 123456)
MORE = {"id": 2, "name": "ü", "at": MOMENT, "seen": MOMENT.replace(tzinfo=UTC)}


@pytest.fixture(scope="module")
def notes(
    ledger: Ledger, ledger_dsn: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shop]:
    """Two generations of a table whose folder's name looks like a partition."""
    folder = tmp_path_factory.mktemp("generations")
    with pytest.MonkeyPatch.context() as patch, opened_shop(folder, "generations", ledger) as shop:
        patch.setenv("LOCKSTEP_TEST_LEDGER", ledger_dsn)
        shop.batch({NOTES: inserts(0), ORDERS: inserts(0)})
        with_columns(shop, NOTES, *BEFORE)
        shop.batch({NOTES: [("insert", {"id": 1} | {c.name: v for c, v in BEFORE.items()})]})
        with_columns(shop, NOTES, *AFTER)
        shop.batch({NOTES: [("insert", MORE | {c.name: v for c, v in AFTER.items()})]})
        yield shop


def _require_all(table: pa.Table) -> None:
    rows = sorted(table.to_pylist(), key=lambda row: row["id"])
    assert [row["id"] for row in rows] == [0, 1, 2]
    for name, values in SHOWN.items():
        assert [row[name] for row in rows] == [None, *values], name
    assert [row["_schema_version"] for row in rows] == [1, 2, 3]


def test_all_generations_are_one_relation(notes: Shop, spark: SparkProcess) -> None:
    """By delta-rs and by Spark: the newest types, and NULL or another column where a value
    does not fit."""
    whole = lockstep.read_changelog(notes.source, str(NOTES), config=notes.config)
    assert [generation.number for generation in whole.generations] == [1, 2]
    changes = whole.arrow()
    assert changes.schema == whole.schema
    assert changes["_sequence"].to_pylist() == sorted(changes["_sequence"].to_pylist())
    _require_all(changes)
    frame = whole.spark(spark.session())
    assert frame.columns == whole.schema.names
    _require_all(frame.toArrow())


def test_spark_reads_the_same_of_a_delivery(notes: Shop, spark: SparkProcess) -> None:
    """With types of its own: moments with and without a zone, text, NULL. A table without changes
    is empty."""
    lockstep.make_consumer(notes.source, "by spark", start="earliest", config=notes.config)
    session = spark.session()
    with notes.consume("by spark") as consumer:
        assert consumer.get(max_batches=1) is not None
        delivery = next_delivery(consumer)
        arrow = delivery.arrow(str(NOTES))
        frame = delivery.spark(str(NOTES), session)
        none = delivery.spark("shop.orders", session)
        rows = frame.toArrow().sort_by("_sequence").to_pylist()
        empty = none.toArrow()
        columns = delivery.arrow("shop.orders").schema.names
    assert (empty.schema.names, empty.num_rows) == (columns, 0)
    assert rows == arrow.to_pylist()
    assert [row["id"] for row in rows] == [1, 2]
    kinds = dict(frame.dtypes)
    assert (kinds["other"], kinds["other@1"], kinds["at"]) == ("date", "int", "timestamp_ntz")


@pytest.mark.acceptance
def test_the_snippets_run_as_they_are_printed(
    notes: Shop,
    spark: SparkProcess,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Each gives all rows of all generations."""
    monkeypatch.chdir(notes.folder)
    assert main(["read", str(NOTES), "--changes", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert [one["generation"] for one in told["generations"]] == [1, 2]
    assert list(told["columns"])[-1] == "other@1"
    snippets = told["snippets"]
    assert list(snippets) == ["Python", "Spark"]
    _require_all(pasted(snippets["Python"], {}))
    _require_all(pasted(snippets["Spark"], {"spark": spark.session()}).toArrow())


def test_a_changelog_of_one_generation(notes: Shop) -> None:
    """As any table; without a change there is none."""
    whole = lockstep.read_changelog(notes.source, "shop.orders", config=notes.config)
    assert [
        (generation.number, whole.arrow()["id"].to_pylist()) for generation in whole.generations
    ] == [(1, [0])]
    with pytest.raises(NothingMatches):
        lockstep.read_changelog(notes.source, "shop.unknown", config=notes.config)


def test_a_delivery_tells_its_generations(notes: Shop) -> None:
    """With the columns of each; deliveries before and behind the change of type have one."""
    lockstep.make_consumer(notes.source, "billing", start="earliest", config=notes.config)
    with notes.consume() as consumer:
        before, behind = next_delivery(consumer, 2), next_delivery(consumer)
        told = [
            (generation.number, str(generation.schema.field("n").type))
            for delivery in (before, behind)
            for generation in delivery.generations(str(NOTES))
        ]
        assert told == [(1, "int32"), (2, "int64")]
        assert before.arrow(str(NOTES))["id"].to_pylist() == [0, 1]
        assert behind.arrow(str(NOTES))["id"].to_pylist() == [2]
        consumer.rollback()
        both = next_delivery(consumer)
        assert [generation.number for generation in both.generations(str(NOTES))] == [1, 2]
        _require_all(both.arrow(str(NOTES)))
        assert both.generations("shop.orders")[0].schema.names[-4:] == ["id", "name", "at", "seen"]


def test_a_column_that_is_called_like_a_generations(billing: Shop) -> None:
    """The other one makes room."""
    billing.batch({ORDERS: inserts(0)})
    with_columns(billing, ORDERS, Column("x", "int"), Column("x@1", "int"))
    billing.batch({ORDERS: [("insert", {"id": 1, "x": 1, "x@1": 2})]})
    with_columns(billing, ORDERS, Column("x", "date"))
    billing.batch({ORDERS: [("insert", {"id": 2, "x": DAY, "x@1": 3})]})
    whole = lockstep.read_changelog(billing.source, "shop.orders", config=billing.config).arrow()
    assert whole.select(["x", "x@1", "_x@1"]).to_pylist() == [
        {"x": None, "x@1": None, "_x@1": None},
        {"x": None, "x@1": 2, "_x@1": 1},
        {"x": DAY, "x@1": 3, "_x@1": None},
    ]
