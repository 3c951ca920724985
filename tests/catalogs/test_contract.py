"""What every catalog promises, on each that is there; and that readers find mirrors by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lockstep.pipeline.catalog import (
    CatalogEntry,
    EntryColumn,
    EntryName,
    WantedEntry,
    normal_location,
)
from lockstep.pipeline.ports.catalog import Catalog
from lockstep.pipeline.schema.types import sql_type
from lockstep.pipeline.values.errors import (
    CatalogRefused,
    CatalogUnavailable,
    ConfigurationError,
    LockstepError,
)
from lockstep.pipeline.values.table import TableName
from lockstep.resources.hive import HiveCatalog
from lockstep.resources.lake.spark_catalog import SparkCatalog
from lockstep.resources.unity import RestClient, UnityCatalog
from tests.catalogs.conftest import Asked
from tests.twins.catalog import MemoryCatalog

pytestmark = pytest.mark.acceptance

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "Name": ["a", "ü", None],
        "price": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(10, 2)),
        "at": pa.array([0, 1, None], pa.timestamp("us", tz="UTC")),
        "local": pa.array([0, 1, None], pa.timestamp("us")),
        "vector": pa.array([[1.5], [], None], pa.list_(pa.float32())),
        **{
            str(kind): pa.array([None] * 3, kind)
            for kind in (
                *(pa.int8(), pa.int16(), pa.int32(), pa.float32(), pa.float64()),
                *(pa.bool_(), pa.date32(), pa.binary()),
            )
        },
    }
)
LAKE = "the lake"
"""Spark and a metastore take a place as it is written, and decode no `%20`."""
COLUMNS = tuple(EntryColumn(field.name, sql_type(field.type)) for field in ROWS.schema)


@pytest.fixture(params=["memory", "hive", pytest.param("spark", marks=pytest.mark.soak), "unity"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    """Spark's, over Spark Connect, is in `test_connect`."""
    match request.param:
        case "hive":
            return HiveCatalog(request.getfixturevalue("metastore"))
        case "spark":
            return SparkCatalog(request.getfixturevalue("hive_spark"), "spark_catalog")
        case "unity":
            address = request.getfixturevalue("unity")
            RestClient(urlsplit(address)).post(
                "/catalogs", {"name": (name := f"lake_{uuid4().hex}")}
            )
            return UnityCatalog(address, name, "")
        case _:
            return MemoryCatalog(root=tmp_path.as_uri())


def entry(catalog: Catalog, tmp_path: Path, **other: Any) -> WantedEntry:
    """A mirror with rows, in a schema that is not there."""
    name = EntryName(f"shop_{uuid4().hex}", "orders")
    table = TableName(name.schema, "Orders")
    folder = tmp_path / LAKE / "shop" / name.schema / "Orders"
    folder.mkdir(parents=True)
    write_deltalake(folder, ROWS)
    columns = COLUMNS if catalog.has_columns else ()
    place = folder.as_uri() if isinstance(catalog, UnityCatalog) else f"file://{folder}"
    told = WantedEntry("shop", table, name, place, "What is ordered", columns)
    return replace(told, **other)


def test_an_entry_is_made_changed_renamed_and_dropped(catalog: Catalog, tmp_path: Path) -> None:
    """It says what it should, with the marks by which it is known again; none of it touches the
    mirror; what is gone already is dropped without a word. What we say a catalog does not take, it
    does not, and the next entry is made all the same."""
    made = entry(catalog, tmp_path)
    wrong = replace(made, name=EntryName(made.name.schema, "b d"))
    assert (catalog.reason_refused(made.name), catalog.reason_refused(wrong.name) is None) == (
        None,
        False,
    )
    with pytest.raises(CatalogRefused, match="refuses"):
        catalog.put(wrong, None)
    folder = tmp_path / LAKE / "shop" / made.name.schema / "Orders"
    files = sorted(folder.rglob("*"))
    assert catalog.find(made.name) is None
    catalog.put(made, None)
    require_found(catalog, made)

    told = (replace(COLUMNS[0], comment="the key's 'text' \\ ü"), *COLUMNS[1:3])
    changed = replace(made, comment="It's new: ü\nand long", columns=told)
    if not catalog.has_columns:
        changed = replace(changed, columns=())
    catalog.put(changed, changed.name)
    require_found(catalog, changed)

    renamed = replace(changed, name=EntryName(f"{made.name.schema}_b", "bestellungen"))
    catalog.put(renamed, changed.name)
    assert catalog.find(changed.name) is None
    require_found(catalog, renamed)

    for _ in range(2):
        catalog.drop(renamed.name)
        assert catalog.find(renamed.name) is None
    assert sorted(folder.rglob("*")) == files
    assert catalog.probe()


def require_found(catalog: Catalog, told: WantedEntry) -> None:
    found = catalog.find(told.name)
    assert found is not None and found.location is not None
    marks = CatalogEntry(normal_location(found.location), found.source, found.content_hash)
    source, content = (told.source, told.content_hash) if catalog.has_marks else (None, None)
    assert marks == CatalogEntry(normal_location(told.location), source, content)


@pytest.mark.parametrize("read", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_spark_finds_a_mirror_by_its_name_in_the_metastore(
    metastore: str, by_name: Asked, tmp_path: Path, read: bool
) -> None:
    """It is the table of that place, with the mirror's columns; also once the entry was changed,
    and after the mirror had more rows; a metastore that knows comments shows them. `read`: it has
    every row."""
    catalog = HiveCatalog(metastore)
    told = entry(catalog, tmp_path)
    catalog.put(told, None)

    def require_found(rows: int) -> None:
        (shown,) = by_name(f"describe table extended {told.name}")
        assert [tuple(row[:2]) for row in shown[: len(COLUMNS)]] == [
            (column.name, column.type) for column in COLUMNS
        ]
        about = {name: value for name, value, _ in shown[len(COLUMNS) :]}
        assert about["Provider"] == "delta"
        assert normal_location(about["Location"]) == normal_location(told.location)
        if read:
            named, there = by_name(f"table {told.name}", f"table delta.`{told.location}`")
            assert len(named) == rows and sorted(named) == sorted(there)

    require_found(3)
    folder = tmp_path / LAKE / "shop" / told.name.schema / "Orders"
    write_deltalake(folder, ROWS, mode="append")
    columns = (replace(COLUMNS[0], comment="the key"), *COLUMNS[1:])
    catalog.put(replace(told, comment="All", columns=columns), told.name)
    require_found(6)
    kept = catalog._table(told.name)
    assert kept.parameters["comment"] == "All"
    assert [column.comment for column in kept.sd.cols][:2] == ["the key", ""]


def test_what_another_made_is_seen_as_it_is(metastore: str, by_name: Asked, tmp_path: Path) -> None:
    """A table that Spark made of the same folder has its place and no marks; a view has neither, so
    that nobody takes either for Lockstep's."""
    catalog = HiveCatalog(metastore)
    told = entry(catalog, tmp_path)
    by_name(
        f"create schema {told.name.schema}",
        f"create table {told.name} using delta location '{told.location}'",
        f"create view {told.name.schema}.seen as select 1 as one",
    )
    found = catalog.find(told.name)
    assert found is not None and found.location is not None
    assert (normal_location(found.location), found.source) == (normal_location(told.location), None)
    assert catalog.find(EntryName(told.name.schema, "seen")) == CatalogEntry(None)


def test_a_unity_catalog_has_columns_and_comments(unity: str, tmp_path: Path) -> None:
    """Every type of a mirror in its words."""
    rest = RestClient(urlsplit(unity))
    rest.post("/catalogs", {"name": (name := f"lake_{uuid4().hex}")})
    catalog = UnityCatalog(unity, name, "")
    columns = tuple(replace(one, comment=f"of {one.name}") for one in COLUMNS)
    told = entry(catalog, tmp_path, columns=columns)
    catalog.put(told, None)
    found = rest.get(f"/tables/{name}.{told.name}")
    assert found is not None and found["comment"] == told.comment
    shown = [(one["name"], one["type_text"], one["comment"]) for one in found["columns"]]
    assert shown == [(one.name, one.type, one.comment) for one in columns]
    assert found["columns"][2]["type_precision"] == 10


@contextmanager
def nobody_listens() -> Iterator[str]:
    """An address of this machine that refuses."""
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def test_a_catalog_that_is_down_is_one_sentence(caplog: pytest.LogCaptureFixture) -> None:
    """With what to do, and the run's business to try again; Thrift says nothing of its own."""
    with nobody_listens() as address:
        for catalog in (
            HiveCatalog(f"thrift://{address}"),
            UnityCatalog(f"http://{address}", "lake", "secret"),
        ):
            with pytest.raises(CatalogUnavailable, match=address) as refused:
                catalog.find(EntryName("shop", "orders"))
            assert "secret" not in f"{refused.value}{refused.value.hint}"
    assert caplog.records == []


class Moved(BaseHTTPRequestHandler):
    """A server, or a proxy before it, that answers that it is elsewhere."""

    def do_GET(self) -> None:
        self.send_response(301)
        self.send_header("Location", "https://catalog.example.com")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_unity_catalog_that_is_elsewhere_has_no_entry() -> None:
    """A redirect is no answer: neither that the catalog is there, nor that an entry was made."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Moved) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        catalog = UnityCatalog(f"http://127.0.0.1:{server.server_port}", "lake", "")
        name = EntryName("shop", "orders")
        told = WantedEntry("shop", TableName("shop", "orders"), name, "file:///t", "", COLUMNS)
        for asked in (catalog.probe, lambda: catalog.find(name), lambda: catalog.put(told, None)):
            with pytest.raises(CatalogRefused, match="answer 301"):
                asked()
        server.shutdown()


class Answering(BaseHTTPRequestHandler):
    """A server that answers each request for one table with the same status, and knows no other."""

    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path.endswith("orders") else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (401, ConfigurationError),
        (403, CatalogRefused),
        (500, CatalogRefused),
        *((status, CatalogUnavailable) for status in (429, 502, 503, 504)),
    ],
)
def test_what_a_unity_catalog_refuses_of_one_entry(
    status: int, expected: type[LockstepError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds up no other entry, unless the token or the whole catalog is meant."""
    monkeypatch.setattr(Answering, "status", status)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        catalog = UnityCatalog(f"http://127.0.0.1:{server.server_port}", "lake", "")
        with pytest.raises(expected, match=str(status)):
            catalog.find(EntryName("shop", "orders"))
        server.shutdown()


@pytest.mark.parametrize("token", ["a\nb", "a\n", "ö€"])
def test_a_token_that_no_request_can_have_is_refused(token: str) -> None:
    """As a variable has it that was set from a file with a newline."""
    with pytest.raises(ConfigurationError, match="such as a newline") as refused:
        UnityCatalog("http://127.0.0.1:9", "lake", token).probe()
    assert token not in refused.value.message


def test_a_unity_catalog_without_that_catalog_is_refused(unity: str) -> None:
    """A person has to make it."""
    with pytest.raises(ConfigurationError, match="has no catalog nowhere"):
        UnityCatalog(unity, "nowhere", "").probe()
