"""Upkeep's commits, on Postgres: `pipeline.ports.upkept`."""

from __future__ import annotations

from datetime import datetime

from pipeline.decisions import Lease
from resources.postgres.session import Books


class PostgresUpkept(Books):
    def upkept(self, source: str) -> dict[str, int]:
        return {row["mirror"]: row["delta_version"] for row in self._all("upkept", source=source)}

    def note_upkept(self, lease: Lease, mirror: str, *, shows: int, delta_version: int) -> None:
        with self._step(lease) as step:
            values = {"mirror": mirror, "shows": shows, "delta_version": delta_version}
            step.run("note_upkept", source=lease.source, token=lease.token, **values)

    def clock(self) -> datetime:
        moment: datetime = self._only("ledger_clock")["moment"]
        return moment
