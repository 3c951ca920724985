"""People are told of each trouble once, by real HTTP, whoever looks and however often."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import dagster as dg
import pytest

from lockstep.assets.notices import notify_addresses, notify_people
from lockstep.commands.check import _check_notify
from lockstep.pipeline.ports.source import SourceServer
from lockstep.pipeline.status.verdict import State, Verdict
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.resources.apprise import send
from lockstep.resources.config import Settings
from tests.dagster.place import settings_for, stand_for
from tests.e2e.project import Project
from tests.positions.fake import FakeServer

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
FINE = Verdict(State.FINE, "every captured table is in the lake as it was at binlog.000001:4")


@dataclass
class Service:
    """A webhook: what it was sent, and what it answers; `hung` until it may answer."""

    heard: list[dict[str, str]] = field(default_factory=list)
    status: int = 200
    hung: threading.Event = field(default_factory=threading.Event)
    while_heard: Callable[[], object] = lambda: None
    url: str = ""

    def titles(self) -> list[str]:
        found, self.heard = [one["title"] for one in self.heard], []
        return found


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    made.hung.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.hung.wait(20)
            made.while_heard()
            if made.status == 200:
                made.heard.append(json.loads(body))
            self.send_response(made.status)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made.url = f"json://127.0.0.1:{server.server_port}/secret-token"
        yield made
        made.hung.set()
        server.shutdown()


@pytest.fixture
def settings(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("LOCKSTEP_TEST_HOOK", service.url)
    extra = '[notify]\nurls = ["env:LOCKSTEP_TEST_HOOK"]'
    return settings_for(tmp_path, "shop", start="binlog.000007:4", extra=extra)


def quarantined(*tables: str, minutes: int = 0) -> Verdict:
    sentence = f"{', '.join(tables)} quarantined for {minutes} minutes"
    return Verdict(State.QUARANTINED, sentence, "do it", stable_text=", ".join(tables))


def test_each_trouble_is_told_once_and_when_it_is_over(
    settings: Settings, service: Service
) -> None:
    """Whatever changes in its sentence; not while a run may be mending it, or its end cannot be
    seen; another is told."""
    notes: list[str] = []
    busy = Verdict(State.BUSY, "a run is going on")
    away = Verdict(State.UNREACHABLE, "nobody answers", "start it")
    away_for_long = replace(away, outlasts_patience=True)
    told, over = "Lockstep: shop needs a person", "Lockstep: shop is well again"
    for found, titles in (
        (FINE, []),
        (quarantined("a.t1"), [told]),
        (quarantined("a.t1", minutes=5), []),
        (busy, []),
        (away, []),
        (quarantined("a.t1", minutes=9), []),
        (quarantined("a.t1", "a.t2"), [told]),
        (FINE, [over]),
        (FINE, []),
        (away, []),
        (away_for_long, [told]),
        (Verdict(State.FAILED, "it failed", outlasts_patience=True), []),
        (away, []),
        (FINE, [over]),
        (quarantined("a.t1"), [told]),
    ):
        notify_addresses(settings, "shop", found, notes.append)
        assert service.titles() == titles, found
    assert notes == []


def test_what_a_service_shows_as_bad_is_the_trouble(settings: Settings, service: Service) -> None:
    """apprise's type of a message gives it its colour."""
    notes: list[str] = []
    for found in (quarantined("a.t1"), FINE):
        notify_addresses(settings, "shop", found, notes.append)
    assert [one["type"] for one in service.heard] == ["failure", "success"]


def test_runs_commands_and_the_sensor_tell_a_trouble_once_together(
    settings: Settings, service: Service
) -> None:
    """A start that is refused again and again, with another number of attempts each time."""
    server = FakeServer(UUID, 1)
    server.write(1, 1)
    notes: list[str] = []
    with stand_for(settings, cast("SourceServer", server)) as stand:
        sensor = stand.definitions().resolve_sensor_def("lockstep_attention")
        for _ in range(3):
            assert not stand.run().success
            notify_people(settings, stand.adapters, ["shop"], notes.append)
            sensor.evaluate_tick(dg.build_sensor_context(instance=stand.instance))
    [one] = service.heard
    assert one["title"] == "Lockstep: shop needs a person"
    assert "What to do:" in one["message"]
    assert notes == []


def test_the_command_line_tells_it_once(service: Service, tmp_path: Path) -> None:
    """`lockstep run` in two processes, whose password is nowhere."""
    notify = '[notify]\nurls = ["env:LOCKSTEP_TEST_HOOK"]'
    project = Project.made(tmp_path / "project", port=1, tables=["shop.*"], top=notify)
    config = project.folder / "lockstep.toml"
    config.write_text(config.read_text().replace("LOCKSTEP_TEST_PASSWORD", "LOCKSTEP_TEST_NOWHERE"))
    for _ in range(2):
        project.run("run", expect=2, LOCKSTEP_TEST_HOOK=service.url)
    [one] = service.heard
    assert "LOCKSTEP_TEST_NOWHERE" in one["message"]


def test_a_service_that_fails_is_noted_and_told_the_next_time(
    settings: Settings, service: Service
) -> None:
    """Without its address, which holds a secret."""
    notes: list[str] = []
    service.status = 500
    notify_addresses(settings, "shop", quarantined("a.b"), notes.append)
    refused = "[notify]: env:LOCKSTEP_TEST_HOOK did not accept it. The next run tries again."
    assert notes == [refused]
    service.status = 200
    notify_addresses(settings, "shop", quarantined("a.b"), notes.append)
    notify_addresses(settings, "shop", quarantined("a.b"), notes.append)
    assert service.titles() == ["Lockstep: shop needs a person"]


def test_nothing_is_told_that_cannot_be_recorded(settings: Settings, service: Service) -> None:
    """Each run would tell it again. What could not be recorded after it was told is noted."""
    notes: list[str] = []
    file = settings.state_folder / "notified.json"

    def block() -> None:
        file.unlink(missing_ok=True)
        file.mkdir(parents=True)

    block()
    for _ in range(2):
        notify_addresses(settings, "shop", quarantined("a.b"), notes.append)
    assert service.titles() == []
    assert [note.partition(":")[0] for note in notes] == ["Nobody was notified of shop"] * 2
    file.rmdir()
    service.while_heard = block
    for _ in range(2):
        notify_addresses(settings, "shop", quarantined("a.b"), notes.append)
    assert service.titles() == ["Lockstep: shop needs a person"]
    assert [note.partition(":")[0] for note in notes[2:]] == [
        "The next run may notify people of shop again",
        "Nobody was notified of shop",
    ]


def test_a_service_that_hangs_holds_nobody_up(service: Service) -> None:
    """A run waits as long as it is told to, and goes on."""
    service.hung.clear()
    assert send(service.url, "env:X", "title", "body", timeout_seconds=0.2) == (
        "env:X did not answer within 0.2 s"
    )


def test_addresses_are_references_that_apprise_knows(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An address in the file is refused, and `check` refuses one of an unknown kind; neither shows
    it."""
    assert _check_notify(settings) == "what needs a person is sent to env:LOCKSTEP_TEST_HOOK"
    monkeypatch.setenv("LOCKSTEP_TEST_HOOK", "nothing://secret-token")
    with pytest.raises(ConfigurationError, match="env:LOCKSTEP_TEST_HOOK") as unknown:
        _check_notify(settings)
    with pytest.raises(ConfigurationError, match="write env:NAME") as literal:
        settings_for(tmp_path, "shop", extra='[notify]\nurls = ["json://h/secret-token"]')
    assert "secret-token" not in f"{unknown.value.message}{literal.value.message}"
