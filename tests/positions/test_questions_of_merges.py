"""How often a merge asks the ledger."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from lockstep.pipeline.run.merge import merge
from lockstep.resources.postgres.session import Session
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import Follower


def test_more_tables_are_no_more_questions(
    mysql: MySqlStand, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the one of each commit, whether the source is still held (`fence`)."""
    asked, ask = Counter[str](), Session.all

    def counted(session: Session, name: str, /, **values: Any) -> Any:
        asked[name] += 1
        return ask(session, name, **values)

    monkeypatch.setattr(Session, "all", counted)
    follower = Follower(server(mysql), [f"{database}.*"], start="earliest")
    questions = []
    for names in ("ab", "cdefgh"):
        for name in names:
            mysql.execute(
                f"create table {database}.{name} (id int primary key)",
                f"alter table {database}.{name} add v int",
                f"insert into {database}.{name} values (1, 2)",
            )
        follower.capture()
        asked.clear()
        with follower.leased() as lease:
            merge(follower.ports(), lease)
        assert follower.mirror(f"{database}.{names[-1]}") == [{"id": 1, "v": 2}]
        del asked["fence"]
        questions.append(dict(asked))
    assert questions[0] == questions[1]
