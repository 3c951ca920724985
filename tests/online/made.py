"""A source of a few tables under online schema changes, and what must be true afterwards.

Belongs here: the tables, a run of all steps in this process, the proof. Does not: who writes
(`load`), who changes structures (`toolkit`, `gh_ost`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pymysql

from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.values.errors import StreamEndedEarly
from lockstep.pipeline.values.retries import STEP
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.online.load import KEYS
from tests.positions.follower import SOURCE, Follower

FIRST_STILL, STILL = 1000, 600
"""Rows that nobody writes to: only a tool's copying brings them into its table."""

ALTER = "add column note varchar(20) not null default 'none', modify v bigint"


def make_table(mysql: MySqlStand, table: str, rows: int = STILL) -> None:
    """`id`, `v`, with rows that writers meet and rows that they do not."""
    mysql.execute(
        f"create table {table} (id int primary key, v int)",
        f"insert into {table} with recursive n as"
        f" (select 0 as i union all select i + 1 from n where i < {2 * KEYS - 1})"
        " select i, i from n where i % 3 = 0",
        f"insert /*+ set_var(cte_max_recursion_depth = {rows}) */ into {table}"
        f" with recursive n as (select 0 as i union all select i + 1 from n where i < {rows - 1})"
        f" select {FIRST_STILL} + i, i from n",
        # A tool that finds no statistics takes the table for an empty one, and copies it at once.
        f"analyze table {table}",
    )


def copied(mysql: MySqlStand, database: str, helper: str) -> int:
    """How many rows that nobody writes to are in a tool's table by now."""
    try:
        ((count,),) = mysql.rows(
            f"select count(*) from {database}.{helper} where id >= {FIRST_STILL}"
        )
    except pymysql.err.ProgrammingError:
        return 0  # it is not there yet, or no more
    return int(count)


@dataclass
class Shop:
    """Tables of `database`, followed by the pattern `database.*` and, with `helped`, by one that
    asks for helper tables."""

    mysql: MySqlStand
    database: str
    tables: Sequence[str]
    follower: Follower
    helped: bool = False

    @classmethod
    def made(
        cls,
        mysql: MySqlStand,
        database: str,
        tables: Sequence[str],
        *,
        rows: int = STILL,
        helped: bool = False,
    ) -> Shop:
        """After a first run, which reads the log from before the tables were there."""
        file, offset = mysql.head()
        patterns = [f"{database}.*", *([f"{database}._*"] if helped else [])]
        follower = Follower(server(mysql), patterns, start=f"{file}:{offset}")
        made = cls(mysql, database, tables, follower, helped)
        for name in made.names:
            make_table(mysql, name, rows)
        made.run()
        return made

    def run(self) -> None:
        """All steps, as often as a session tries them: a busy server tells of an end of its log
        that it does not send before it is durable."""
        for _ in STEP.pauses:
            try:
                self.follower.run()
            except StreamEndedEarly:
                continue
            return
        self.follower.run()

    @property
    def names(self) -> list[str]:
        return [f"{self.database}.{table}" for table in self.tables]

    def helpers(self) -> set[str]:
        """The tables that are there besides."""
        found = {str(name) for (name,) in self.mysql.rows(f"show tables from {self.database}")}
        return found - set(self.tables)

    def commits(self, table: str) -> list[str]:
        """The application of each commit of the mirror, `…/evolve` for a step of its columns."""
        commits = self.follower.lake.tables[f"{SOURCE}/{self.database}/{table}"]
        return [commit.app_id for commit in commits]

    def columns(self, table: str) -> list[str]:
        """What the mirror shows now."""
        commits = self.follower.lake.tables[f"{SOURCE}/{self.database}/{table}"]
        return list(commits[-1].rows.column_names)

    def read_anew(self) -> list[str]:
        """The tables that runs read from the source, one for each time."""
        ledger = self.follower.ledger
        batches = ledger.batches(SOURCE, limit=1000)
        parts = [
            part for batch in batches for part in batch_content(ledger, SOURCE, batch.id).snapshots
        ]
        return [part.table.name for part in parts]

    def require_followed(self) -> None:
        """Every table is in the lake as it is in the source, and no other one ever was, but for
        helpers that were asked for."""
        report = verify(self.follower.ports())
        if self.helped:
            equal = {str(one.table): one.equal for one in report.tables}
            assert all(equal[name] for name in self.names)
            return
        assert dict.fromkeys(self.names, True) == {
            str(one.table): one.equal for one in report.tables
        }
        states = self.follower.ledger.table_states(SOURCE)
        assert dict.fromkeys(self.names, True) == {
            str(name): state.is_complete for name, state in states.items()
        }
        mirrors = {f"{SOURCE}/{self.database}/{table}" for table in self.tables}
        logs = {f"{SOURCE}/_changes/{self.database}/{table}" for table in self.tables}
        found = {path.partition("@")[0] for path in self.follower.lake.tables}
        assert mirrors | logs == {path for path in found if f"/{self.database}/" in path}
