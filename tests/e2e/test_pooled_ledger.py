"""A ledger behind a connection pooler that does not keep sessions."""

from __future__ import annotations

import os

import pytest

from demo.mysql_search import cache_folder
from lockstep.pipeline.values.errors import SetupIncomplete
from lockstep.resources.postgres.embedded import account_of, programs, reachable
from tests.e2e.conftest import Follow
from tests.e2e.project import Project
from tests.ledger.poolers import pgbouncer
from tests.ledger.servers import debian_server, run


def test_every_command_refuses_it_before_anything_is_locked(follow: Follow) -> None:
    """`check` and a run name the pooler and the cure, and leave nothing behind. (Each mode of it:
    `tests/ledger/test_poolers.py`.)"""
    project = follow(start="earliest", first=True)
    found = programs()
    with debian_server(reachable(account_of(found / "none"), found)) as server:
        try:
            with pgbouncer(cache_folder(os.environ), server, "transaction") as dsn:
                refuse(project, dsn)
        except SetupIncomplete as missing:
            pytest.skip(f"{missing.message}; {missing.hint}")
        assert run(server, "select to_regnamespace('lockstep')") == [(None,)]


def refuse(project: Project, dsn: str) -> None:
    settings = project.folder / "lockstep.toml"
    settings.write_text(settings.read_text().replace('"embedded"', '"env:LEDGER_DSN"'))
    for command in ("check", "run"):
        done = project.run(command, expect=2, LEDGER_DSN=dsn)
        said = done.stdout + done.stderr
        assert "A connection pooler (pgbouncer, or one like it) lies before the ledger" in said
        assert "pool_mode = session" in said
        assert "canary" not in said
