"""`lockstep read` prints what works for a table as it is now, and names who cannot read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lockstep.snippets import refusals, table_snippets, version_snippets
from lockstep.store_snippets import store_lines
from resources.lake.jars import DELTA, locked_jars
from resources.lake.pin import head_of
from resources.lake.session import SparkProcess
from resources.lake.statement import quoted
from resources.lake.storage import delta_table
from tests.fix_objects import ObjectStore
from tests.lake.duck import duck

STEPS = {
    "rows marked as deleted": (
        "create table {t} using delta tblproperties ('delta.enableDeletionVectors' = 'true')"
        " as select * from values (1, 10), (2, 20), (3, 30) as t (id, v)",
        "delete from {t} where id = 3",
    ),
    "a column renamed": (
        "alter table {t} set tblproperties ('delta.columnMapping.mode' = 'name')",
        "alter table {t} rename column v to w",
        "insert into {t} values (4, 40)",
    ),
    "a type widened": (
        "alter table {t} set tblproperties ('delta.enableTypeWidening' = 'true')",
        "alter table {t} alter column w type bigint",
        "insert into {t} values (5, 50)",
    ),
}
IDS = {"rows marked as deleted": [1, 2], "a column renamed": [1, 2, 4]}
CANNOT = {"a column renamed": {"Polars"}, "a type widened": {"Polars", "delta-rs"}}
READERS = {"Spark", "delta-rs", "Polars", "DuckDB"}


def test_what_is_printed_reads_the_table(tmp_path: Path, spark: SparkProcess) -> None:
    """Each snippet that can be pasted here, after each of some changes of one table; a reader that
    is not named fails."""
    session, path = spark.session(), str(tmp_path / "it's")
    table = f"delta.{quoted(path)}"
    for name, statements in STEPS.items():
        for statement in statements:
            for key, value in head_of(Path(path)).pin().items():
                session.conf.set(key, value)
            session.sql(statement.format(t=table)).collect()
        features = delta_table(Path(path)).protocol().reader_features or ()
        cannot, there = CANNOT.get(name, set()), IDS.get(name, [1, 2, 4, 5])
        assert set(refusals(features)) == cannot, name
        newest = head_of(Path(path)).version
        for printed in (table_snippets(path, features), version_snippets(path, newest, features)):
            assert set(printed) == READERS - cannot, name
            with duck(tmp_path / "extensions") as connection:
                rows = connection.execute(printed.pop("DuckDB")).fetchall()
            assert sorted(number for number, *_ in rows) == there, name
            for reader, snippet in printed.items():
                assert _ids(snippet, session) == there, (name, reader)
        for reader in cannot:
            with pytest.raises(Exception):  # noqa: B017 - each reader has an error of its own
                _ids(table_snippets(path)[reader], session)


def test_what_is_printed_reads_a_table_in_a_store(
    tmp_path: Path,
    spark: SparkProcess,
    object_store: ObjectStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the lines that stand in front of it there."""
    path = object_store.prefix()
    write_deltalake(str(path), pa.table({"id": [1, 2]}), storage_options=path.options)
    options = object_store.options()
    for name in options:
        monkeypatch.setenv(f"AWS_{name.upper()}", "another")
    front, session = store_lines(str(path), options), spark.session()
    for printed in (table_snippets(str(path)), version_snippets(str(path), 0)):
        assert printed.keys() == front.keys()
        pasted = {reader: f"{front[reader]}\n{text}" for reader, text in printed.items()}
        with duck(tmp_path / "extensions") as connection:
            rows = connection.execute(pasted.pop("DuckDB")).fetchall()
        assert sorted(rows) == [(1,), (2,)]
        for snippet in pasted.values():
            assert _ids(snippet, session) == [1, 2]


def _ids(snippet: str, session: Any) -> list[int]:
    *lines, last = snippet.splitlines()
    names: dict[str, Any] = {"spark": session}
    exec("\n".join(lines), names)
    found = eval(last, names)
    if isinstance(found, polars.DataFrame):
        return sorted(found["id"].to_list())
    told = found.toArrow() if hasattr(found, "toArrow") else pa.table(found)
    return sorted(told["id"].to_pylist())


def test_the_session_is_that_of_the_jars() -> None:
    [spark] = [jar for jar in locked_jars(DELTA) if jar.artifact.startswith("delta-spark")]
    told = table_snippets("/lake/t")["Spark"]
    assert f"{spark.organisation}:{spark.artifact}:{spark.version}" in told
