"""Sensors: what starts a run, what asks for a person, what shows new tables."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time
from types import SimpleNamespace
from typing import Any, cast

import dagster as dg
import pytest

from lockstep import exits
from lockstep.assets.coverage import Coverage, fingerprint, read_coverage, write_coverage
from lockstep.assets.definitions import build_definitions
from lockstep.assets.notices import assess_source
from lockstep.assets.sensors import new_table_sensor, reason_to_start, reload_location
from lockstep.assets.table_list import read_table_list, update_table_list
from lockstep.commands import status
from lockstep.grammar import parse
from lockstep.pipeline.ports.source import SourceServer
from lockstep.pipeline.status.facts import Headroom, Lag
from lockstep.pipeline.status.verdict import State, Verdict
from lockstep.resources.config.sources import TriggerSection
from tests.dagster.place import MemoryAdapters, entry, settings_for, stand_for
from tests.positions.fake import FakeServer

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
HOUR = timedelta(hours=1)
SAFE = Headroom(False, 100 * HOUR, 99 * HOUR)
SOON = Headroom(False, 100 * HOUR, HOUR)
TRIGGER = TriggerSection(bytes=1000, seconds=60.0)

CASES = {
    "nothing behind": (Lag(0.0, 0), SOON, False),
    "enough bytes": (Lag(1.0, 1000), SAFE, True),
    "old enough": (Lag(60.0, 1), SAFE, True),
    "neither": (Lag(59.0, 999), SAFE, False),
    "the log may be purged soon": (Lag(1.0, 1), SOON, True),
    "nobody knows": (Lag(), None, False),
}


@pytest.mark.parametrize(("lag", "room", "starts"), CASES.values(), ids=CASES.keys())
def test_what_starts_a_run(lag: Lag, room: Headroom | None, starts: bool) -> None:
    """One row per rule."""
    assert (reason_to_start("shop", TRIGGER, lag, room, None) is not None) == starts


def test_traffic_starts_a_run_once_there_was_one(tmp_path: Path) -> None:
    """Not before the first run, which is a person's; then with enough log behind the cursor, and
    not again while that run waits to begin."""
    server = FakeServer(UUID, 1, clock=int(time()))
    server.write(1, 1)
    settings = settings_for(tmp_path, "shop", extra="[sources.trigger]\nbytes = 1")
    with stand_for(settings, cast("SourceServer", server)) as stand:
        sensor = stand.definitions().resolve_sensor_def("lockstep_shop_traffic")

        def asked() -> int:
            context = dg.build_sensor_context(instance=stand.instance)
            return len(sensor.evaluate_tick(context).run_requests or ())

        assert asked() == 0
        assert stand.run().success
        assert asked() == 0
        server.write(1, 2)
        assert asked() == 1
        job = stand.definitions().resolve_job_def("lockstep_shop")
        stand.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTING)
        assert asked() == 0


def test_trouble_is_told_once(tmp_path: Path) -> None:
    """To whoever is to be notified, with the hint; again when it is another, or when they could
    not be notified, which keeps no other trouble back."""
    settings = settings_for(tmp_path, "shop", start="binlog.000007:4")
    server = FakeServer(UUID, 1)
    server.write(1, 1)
    adapters = MemoryAdapters(settings, cast("SourceServer", server))
    heard: list[Verdict] = []
    failures = [OSError("nobody answers")]

    def notify(_: str, trouble: Verdict) -> None:
        if failures:
            raise failures.pop()
        heard.append(trouble)

    definitions = build_definitions(settings, {}, adapters.open, notify=notify)
    sensor = definitions.resolve_sensor_def("lockstep_attention")
    cursor, said = None, list[str]()
    with dg.DagsterInstance.ephemeral() as instance:
        for _ in range(3):
            context = dg.build_sensor_context(instance=instance, cursor=cursor)
            tick = sensor.evaluate_tick(context)
            cursor = tick.cursor
            said.append(tick.skip_message or "")
    [trouble] = heard
    assert trouble.state is State.REFUSED
    assert all(trouble.hint in sentence for sentence in said)
    failed = "OSError: nobody answers; the next tick tries again."
    assert [failed in sentence for sentence in said] == [True, False, False]


def test_settings_that_cannot_be_read_are_a_trouble_of_their_source(tmp_path: Path) -> None:
    """A reference without its variable: the verdict says so, and others are judged all the same."""
    settings = settings_for(tmp_path, "shop", start="env:NO_SUCH_PLACE")
    [source] = settings.sources
    adapters = MemoryAdapters(settings, cast("SourceServer", FakeServer(UUID, 1)))
    _, verdict = assess_source(adapters, source, datetime.now(UTC))
    assert verdict.state is State.CONFIGURATION
    assert "NO_SUCH_PLACE" in verdict.sentence
    context: Any = SimpleNamespace(
        sources=lambda _: settings.sources,
        adapters=lambda: nullcontext(adapters),
        say=lambda *_: None,
    )
    outcome = status.perform(parse(["status"]), context)
    assert outcome.code == exits.USAGE
    assert "NO_SUCH_PLACE" in outcome.payload["sources"]["shop"]["sentence"]


def test_new_tables_are_shown(tmp_path: Path) -> None:
    """The page is asked when tables came or a past began, and only then, although Dagster's daemon
    has loaded the definitions without the page; where it cannot be asked, the tick says what to
    do."""
    where = 'webserver = "http://127.0.0.1:1/base"\nlocation = "here"'
    settings = settings_for(tmp_path, "shop", extra=f"[dagster]\n{where}")
    folder = settings.state_folder
    update_table_list(folder, "shop", [entry("shop", "a")], complete=False)
    moved = replace(entry("shop", "a"), changelog="shop/_changes/a@2")
    for known in (entry("shop", "a"), moved):
        changed = update_table_list(folder, "shop", [known], complete=False)
        assert changed == (() if known is not moved else (moved.table,))
    asked: list[tuple[str, str]] = []
    cursor: str | None = None

    def present() -> str:
        coverage = read_coverage(folder, "shop")
        return fingerprint({"shop": read_table_list(folder, "shop")}, {"shop": coverage})

    def tick(loaded: str, answer: str) -> str:
        nonlocal cursor

        def reload(address: str, location: str) -> str:
            asked.append((address, location))
            return answer

        sensor = new_table_sensor(settings, loaded, reload)
        with dg.DagsterInstance.ephemeral() as instance:
            result = sensor.evaluate_tick(dg.build_sensor_context(instance=instance, cursor=cursor))
        cursor = result.cursor
        return result.skip_message or ""

    first = present()
    assert tick(first, "") == "The definitions are up to date."
    update_table_list(folder, "shop", [entry("shop", "b")], complete=False)
    assert "correct `webserver` and `location`" in tick(
        first, reload_location("http://127.0.0.1:1", "x")
    )
    assert "reloads the location here" in tick(present(), "")
    assert tick(first, "") == "The definitions are up to date."
    hour = datetime(2026, 1, 1, tzinfo=UTC)
    write_coverage(folder, "shop", Coverage(hour, hour))
    assert "reloads the location here" in tick(present(), "")
    write_coverage(folder, "shop", Coverage(hour, hour + HOUR))
    assert tick(present(), "") == "The definitions are up to date."
    assert asked == [("http://127.0.0.1:1/base", "here")] * 3
