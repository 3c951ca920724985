"""`lockstep read` prints what works for a table as it is now, and names who cannot read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lockstep.commands.read import refusal_reasons, store_lines, table_snippets
from lockstep.resources.lake.spark.jars import DELTA_LOCK, locked_jars
from lockstep.resources.lake.spark.session import SparkProcess
from lockstep.resources.lake.store.storage import delta_table
from tests.fix_objects import ObjectStore
from tests.lake.both_ways import MARKED, RENAMED, WIDER, BothWays
from tests.lake.duck import duck
from tests.typed_pages import pasted

pytestmark = pytest.mark.acceptance

STATES: dict[str, tuple[int, set[str]]] = {
    "rows marked as deleted": (MARKED, set()),
    "a column renamed": (RENAMED, {"Polars"}),
    "a type widened": (WIDER, {"Polars", "delta-rs"}),
}
"""A table at a version, and who cannot read it."""
READERS = {"Spark", "delta-rs", "Polars", "DuckDB"}


@pytest.mark.parametrize("state", STATES)
def test_what_is_printed_reads_the_table(
    both_ways: BothWays, state: str, tmp_path: Path, spark: SparkProcess
) -> None:
    """Each snippet that can be pasted here; a reader that is not named fails."""
    session, path = spark.session(), tmp_path / "it's"
    version, cannot = STATES[state]
    both_ways.copied(path, at=version)
    there = [
        row["id"] for row in both_ways.shown[max(v for v in both_ways.shown if v <= version)][1]
    ]
    features = delta_table(path).protocol().reader_features or ()
    assert set(refusal_reasons(features)) == cannot
    for printed in (
        table_snippets(str(path), features),
        table_snippets(str(path), features, version),
    ):
        assert set(printed) == READERS - cannot
        with duck(tmp_path / "extensions") as connection:
            rows = connection.execute(printed.pop("DuckDB")).fetchall()
        assert sorted(number for number, *_ in rows) == there
        for reader, snippet in printed.items():
            assert _ids(snippet, session) == there, reader
    for reader in cannot:
        with pytest.raises(Exception):  # noqa: B017 - each reader has an error of its own
            _ids(table_snippets(str(path))[reader], session)


def test_what_is_printed_reads_a_table_in_a_store(
    tmp_path: Path,
    spark: SparkProcess,
    object_store: ObjectStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the lines that stand in front of it there."""
    path = object_store.prefix()
    write_deltalake(str(path), pa.table({"id": [1, 2]}), storage_options=path.delta_options)
    options = object_store.options()
    for name in options:
        monkeypatch.setenv(f"AWS_{name.upper()}", "another")
    front, session = store_lines(str(path), options), spark.session()
    for printed in (table_snippets(str(path)), table_snippets(str(path), version=0)):
        assert printed.keys() == front.keys()
        pasted = {reader: f"{front[reader]}\n{text}" for reader, text in printed.items()}
        with duck(tmp_path / "extensions") as connection:
            rows = connection.execute(pasted.pop("DuckDB")).fetchall()
        assert sorted(rows) == [(1,), (2,)]
        for snippet in pasted.values():
            assert _ids(snippet, session) == [1, 2]


def test_duckdb_takes_an_endpoint_from_the_environment(tmp_path: Path) -> None:
    """Its shell has `getenv`."""
    keys = {"access_key_id": "a", "secret_access_key": "b"}  # without them it needs an extension
    lines = store_lines("s3://lake", {"endpoint": "env:ENDPOINT", **keys})["DuckDB"]
    with duck(tmp_path / "extensions") as connection:
        connection.execute("create macro getenv(name) as 'http://' || lower(name) || ':9000'")
        connection.execute(lines)
        [(told,)] = connection.execute("select secret_string from duckdb_secrets()").fetchall()
    assert "endpoint=endpoint:9000;" in told
    assert "use_ssl=false" in told


def _ids(snippet: str, session: Any) -> list[int]:
    found = pasted(snippet, {"spark": session})
    if isinstance(found, polars.DataFrame):
        return sorted(found["id"].to_list())
    told = found.toArrow() if hasattr(found, "toArrow") else pa.table(found)
    return sorted(told["id"].to_pylist())


def test_the_session_is_that_of_the_jars() -> None:
    [spark] = [jar for jar in locked_jars(DELTA_LOCK) if jar.artifact.startswith("delta-spark")]
    told = table_snippets("/lake/t")["Spark"]
    assert f"{spark.organisation}:{spark.artifact}:{spark.version}" in told
