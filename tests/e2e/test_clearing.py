"""Less is shown of a table: the run that reads it again leaves nothing of before in the lake."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.e2e.conftest import Follow
from tests.e2e.project import Project
from tests.fix_mysql import MySqlStand

WORD = "canary"


def test_no_file_of_the_lake_has_what_is_hidden_now(
    mysql: MySqlStand, database: str, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word stands in rows, in a default, in texts of statements and, as statistics, in the
    mirror's log. A person has it stay at first, and the run leaves it; the next one clears it. A
    replay of all does not bring it back, and misses nothing."""
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", "")
    project = follow(
        "set session binlog_rows_query_log_events = on",
        f"create table c (id int primary key, secret varchar(50) default '{WORD} 0')",
        f"insert into c values (1, '{WORD} 1'), (2, '{WORD} 2')",
    )
    project.run("run")
    mysql.execute(
        "set session binlog_rows_query_log_events = on",
        f"update {database}.c set secret = '{WORD} 3' where id = 1",
        f"delete from {database}.c where id = 2",
    )
    project.run("run")
    assert len(found(project)) >= 4
    settings = project.config
    text = settings.read_text()
    block = f'\n[[sources.table]]\nmatch = "{database}.c"\nexclude_columns = ["secret"]\n'
    keep = 'keep_clear = "until the audit"\n'
    # The mirror gets another name as well: the folder it had before has the word, too.
    settings.write_text(text + block + keep + 'into = "{database}.d"\n')
    project.run("run")
    (note,) = project.status()["in_clear"]
    assert (note["columns"], note["kept_because"]) == (["secret"], "until the audit")
    assert found(project)
    assert project.status()["former_mirrors"] == [f"shop/{database}/c"]
    settings.write_text(text + block)
    mysql.execute(f"insert into {database}.c values (3, '{WORD} 4')")
    project.run("run")
    assert (found(project), project.status()["in_clear"]) == ([], [])
    mysql.execute(f"update {database}.c set id = 4 where id = 3")
    project.run("run")
    replayed = project.run("replay", "--from", "earliest", "--to", "latest")
    assert "is left out up to batch" in replayed.stderr
    assert "damaged" not in replayed.stdout + replayed.stderr
    assert found(project) == []
    project.run("verify", f"{database}.c")


def found(project: Project) -> list[Path]:
    """Files of the lake in which the word stands, in plaintext or packed."""
    files = [path for path in project.lake.rglob("*") if path.is_file()]
    return [path for path in files if WORD.encode() in content(path)]


def content(path: Path) -> bytes:
    if path.suffix != ".parquet":
        return path.read_bytes()
    with pq.ParquetFile(path) as file:
        return str(file.read().to_pylist()).encode()
