"""OpenLineage's events of whole runs, as a backend gets them, and backends that are in trouble."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from openlineage.client import event_v2, facet_v2

from tests.chance import by_chance
from tests.e2e.conftest import Follow
from tests.e2e.points import Point
from tests.fix_connect import free_port
from tests.fix_mysql import MySqlStand

pytestmark = pytest.mark.acceptance

FACETS = {
    "columnLineage": facet_v2.column_lineage_dataset.ColumnLineageDatasetFacet,
    "errorMessage": facet_v2.error_message_run.ErrorMessageRunFacet,
    "schema": facet_v2.schema_dataset.SchemaDatasetFacet,
    "tags": facet_v2.tags_run.TagsRunFacet,
}
"""All that are sent, and the client's own; `lockstep_run` is Lockstep's."""


def valid(told: dict[str, Any]) -> dict[str, Any]:
    """The same, once the client's models have taken every part of it."""

    def facets(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
        return {
            name: FACETS[name](**{k: v for k, v in facet.items() if not k.startswith("_")})
            for name, facet in found.items()
            if name != "lockstep_run"
        }

    def datasets(kind: Any, more: str) -> list[Any]:
        return [
            kind(
                one["namespace"],
                one["name"],
                facets(one.get(more, {})),
                facets=facets(one["facets"]),
            )
            for one in told[f"{more.removesuffix('Facets')}s"]
        ]

    event_v2.RunEvent(
        eventType=event_v2.RunState(told["eventType"]),
        eventTime=told["eventTime"],
        producer=told["producer"],
        run=event_v2.Run(told["run"]["runId"], facets(told["run"]["facets"])),
        job=event_v2.Job(
            told["job"]["namespace"], told["job"]["name"], facets(told["job"]["facets"])
        ),
        inputs=datasets(event_v2.InputDataset, "inputFacets"),
        outputs=datasets(event_v2.OutputDataset, "outputFacets"),
    )
    return told


def by_name(datasets: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {one["name"]: {**one["facets"], "namespace": one["namespace"]} for one in datasets}


def test_what_runs_did_can_be_read_as_events(
    mysql: MySqlStand, database: str, follow: Follow
) -> None:
    """A START and an end for each run that found something, every facet in the client's words; none
    for an idle one; and the end of one that was killed, from the run that finds it."""
    file = '{ type = "file", log_file_path = "events.jsonl", append = true }'
    project = follow(
        "create table a (id int primary key comment 'number', s varchar(40))",
        *(f"create table {t} (id int primary key, s varchar(40))" for t in "bcx"),
        *(f"insert into {t} values (1, 'one'), (2, 'two')" for t in "abcx"),
        start="snapshot",
        top=f"[lineage]\ntransport = {file}\n",
        extra='dropped_tables = "drop"\n',
    )
    assert "OpenLineage events are sent by the client" in project.run("check", expect=None).stdout

    def events(*command: str) -> list[dict[str, Any]]:
        path = project.folder / "events.jsonl"
        before = path.read_text().count("\n") if path.exists() else 0
        project.run(*command)
        return [valid(json.loads(line)) for line in path.read_text().splitlines()[before:]]

    start, complete = events("run")
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert (complete["job"]["namespace"], complete["job"]["name"]) == ("lockstep", "shop")
    read, written = by_name(complete["inputs"]), by_name(complete["outputs"])
    assert sorted(read) == [f"{database}.{t}" for t in "abcx"]
    assert {one["namespace"] for one in read.values()} == {f"mysql://127.0.0.1:{mysql.port}"}
    mirrors = {t: f"{project.lake}/shop/{database}/{t}" for t in "abcdx"}
    assert sorted(written) == [mirrors[t] for t in "abcx"]
    a = written[mirrors["a"]]
    described = [
        (one["name"], one["type"], one.get("description")) for one in a["schema"]["fields"]
    ]
    assert described == [("id", "int", "number"), ("s", "string", None)]
    assert events("run") == []

    mysql.execute(
        f"use {database}",
        "alter table a rename column s to t",
        "update a set t = 'changed'",
        "rename table b to d",
        "truncate c",
        "drop table x",
    )
    start, complete = events("run")
    read, written = by_name(complete["inputs"]), by_name(complete["outputs"])
    assert {name.rpartition(".")[2] for name in read} == set("abcdx")
    a = written[mirrors["a"]]
    assert [one["name"] for one in a["schema"]["fields"]] == ["id", "t"]
    (origin,) = a["columnLineage"]["fields"]["t"]["inputFields"]
    assert (origin["name"], origin["field"]) == (f"{database}.a", "t")
    assert f"{project.lake}/shop/_changes/{database}/a" in written
    assert mirrors["x"] not in written

    mysql.execute(f"delete from {database}.d")
    project.killed(Point.BATCH_ACKNOWLEDGED, "before")
    mysql.execute(f"delete from {database}.a")
    found = [one for one in events("run") if one["eventType"] != "START"]
    assert [one["eventType"] for one in found] == ["ABORT", "COMPLETE"]
    assert "process is gone" in found[0]["run"]["facets"]["errorMessage"]["message"]


@dataclass
class Backend:
    """`answer`: a status, or None for a server that takes a request and says nothing."""

    answer: int | None
    port: int = 0
    taken: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)


@contextmanager
def listening(backend: Backend) -> Iterator[Backend]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            backend.taken.append((self.headers.get("Authorization", ""), json.loads(body)))
            if backend.answer is None:
                backend.released.wait()
                return
            self.send_response(backend.answer)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing is told."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    backend.port = server.server_port
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield backend
    finally:
        backend.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def test_no_backend_stands_in_the_way_of_a_run(
    mysql: MySqlStand, database: str, follow: Follow
) -> None:
    """It acknowledges, and says in one line what was not sent, whether the backend refuses, is
    silent or away (one of the three, by chance). One that answers has both events, and the key that
    the file refers to."""
    project = follow(
        "create table a (id int primary key)",
        start="snapshot",
        top='[lineage]\ntransport = { type = "noop" }\n',
    )
    toml = project.config
    kept = toml.read_text()
    for number, answer in enumerate((201, by_chance().choice((401, None, "nobody")))):
        print(answer)
        mysql.execute(f"insert into {database}.a values ({number})")
        with listening(Backend(None if isinstance(answer, str) else answer)) as backend:
            port = free_port() if answer == "nobody" else backend.port
            transport = (
                f'{{ type = "http", url = "http://127.0.0.1:{port}", '
                'auth = { type = "api_key", apiKey = "env:LINEAGE_KEY" } }'
            )
            toml.write_text(kept.replace('{ type = "noop" }', transport))
            done = project.run("run", "--json", LINEAGE_KEY="the-key")
        run = json.loads(done.stdout)["sources"]["shop"]
        assert (run["acknowledged"], run["batch"]) == (run["end"], number + 1)
        assert project.unequal(mysql, f"{database}.a") == {}
        told = [line for line in done.stderr.splitlines() if "OpenLineage" in line]
        assert "the-key" not in done.stdout + done.stderr
        if answer == 201:
            kinds = [event["eventType"] for key, event in backend.taken if key == "Bearer the-key"]
            assert (kinds, told) == (["START", "COMPLETE"], [])
        else:
            (line,) = told
            assert "not sent" in line
