"""Settings of shapes that change between two runs, and statements that meet them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from inspect import getsource
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pymysql.cursors import DictCursor

from lockstep.commands.run import sample_lines
from lockstep.pipeline.model.table_state import OrderKind, Supplier
from lockstep.pipeline.ports.source import Baseline, SourceServer
from lockstep.pipeline.run.orders import (
    OrderRequest,
    give_order,
    give_reload,
    plan_reload,
    plan_resume,
)
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.run.proof.verify_sample import verify_sample
from lockstep.pipeline.run.proof.verify_schema import verify_schema
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.schema import tracker
from lockstep.pipeline.schema.treatments import Conversion, Hash, Mask, read_mask
from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.shape.shape import ShapeRules
from lockstep.pipeline.shape.shaping import Shaping
from lockstep.pipeline.snapshot.chunks import Range
from lockstep.pipeline.snapshot.pace import Pace
from lockstep.pipeline.source_plan import SnapshotPlan
from lockstep.pipeline.values.errors import (
    ConfigurationError,
    LedgerRefused,
    Need,
    PastRefused,
    StructureMoved,
)
from lockstep.pipeline.values.policies import (
    LakePolicies,
    OnPositionLost,
    OnRewrite,
    StartPolicies,
)
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql import shaped
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import settings
from tests.positions.follower import SOURCE
from tests.shape import reference
from tests.shape.follower import KEY, ShapedFollower, followed_by_nobody

_TABLE = """
create table c (
  id int primary key, email varchar(50) default 'nobody@example', ssn char(9), phone varchar(20),
  active tinyint not null default 1, kind enum('gold', 'lead')
)
"""
_ROWS = """
insert into c values
  (1, 'ann@example', '111111111', '030123456', 1, 'gold'), (2, 'bob@example', null, '7', 0, 'lead'),
  (3, null, '333333333', null, 1, null)
"""
_FOREIGN = "executive"
HIDING = ShapeRules(
    exclude_columns=("ssn", "kind", "*_secret"),
    hash_columns={"email": Hash.EXACT},
    mask_columns={"phone": read_mask("last:4")},
    types={"active": Conversion.BOOLEAN},
)
HIDDEN = ("ssn", "kind")


class Customers:
    """One table of a database of its own, and its follower."""

    def __init__(self, stand: MySqlStand, name: str, rules: ShapeRules, **options: Any) -> None:
        self.stand, self.name = stand, name
        self.do(_TABLE, _ROWS)
        options = {"start": "snapshot", **options}
        self.follower = ShapedFollower(stand, [f"{name}.*"], {f"{name}.c": rules}, **options)

    def do(self, *statements: str) -> None:
        self.stand.execute(*statements, database=self.name)

    def copies(self, *names: str) -> None:
        """Tables like `c`, with its rows."""
        for name in names:
            self.do(f"create table {name} like c", f"insert into {name} select * from c")

    def purge_log(self) -> None:
        """The server has only what it logs from now on."""
        self.do("flush binary logs")
        self.stand.execute(f"purge binary logs to '{head(self.stand).file}'")

    def skip_log(self) -> None:
        """The next run begins with what the server logs from now on."""
        self.purge_log()
        self.follower.choose("earliest")

    def shape(self, rules: ShapeRules | None) -> None:
        self.follower.shapes = {} if rules is None else {f"{self.name}.c": rules}

    def run(self) -> None:
        self.follower.run()

    def reload(self, table: str, supplier: Supplier = Supplier.SOURCE) -> None:
        asked, ports = (
            OrderRequest(TableName(self.name, table), "ada", "because"),
            self.follower.ports(),
        )
        with self.follower.leased() as lease:
            give_reload(ports, lease, plan_reload(ports, asked, supplier))

    def order(self, kind: OrderKind, asked: OrderRequest) -> None:
        with self.follower.leased() as lease:
            give_order(self.follower.ports(), lease, kind, asked)

    def mirror(self, table: str = "c") -> list[dict[str, Any]]:
        return self.follower.mirror(f"{self.name}.{table}")

    def rows(self, table: str = "c") -> list[dict[str, Any]]:
        with self.stand.connect(self.name) as connection, connection.cursor(DictCursor) as cursor:
            cursor.execute(f"select * from {table} order by 1")
            return [dict(row) for row in cursor.fetchall()]

    def require_consent(self, table: str, hidden: str) -> None:
        """The table waits for consent over two runs, and neither its mirror nor any file has the
        hidden value; once it is resumed, the mirror does."""
        name = TableName(self.name, table)
        for _ in range(2):
            self.run()
            files = [rows.to_pylist() for rows in self.follower.lake.files.values()]
            assert hidden not in str([self.mirror(table), files])
            assert self.follower.states()[name].need is Need.CONSENT
        self.order(OrderKind.RESUME, OrderRequest(name, "ada", "because"))
        self.run()
        assert hidden in str(self.mirror(table))

    def stopped(self, table: str = "c") -> str | None:
        state = self.follower.states()[TableName(self.name, table)]
        return state.reason if state.has_stopped else None


def hiding(row: Mapping[str, Any]) -> dict[str, Any]:
    """What `HIDING` shows of a row, by the second implementation."""
    shown = {name: value for name, value in row.items() if name not in HIDDEN}
    shown["email"] = reference.hashed(KEY, "varchar", row["email"])
    shown["phone"] = reference.masked("last", 4, row["phone"])
    shown["active"] = bool(row["active"])
    return shown


def test_a_shape_comes_and_goes(mysql: MySqlStand, database: str) -> None:
    """Until a run has read the table as its settings say now, nothing can be compared with it."""
    customers = Customers(mysql, database, HIDING)
    customers.run()
    assert customers.mirror() == [hiding(row) for row in customers.rows()]
    customers.do("update c set ssn = '9' where id = 1", "update c set email = 'x' where id = 2")
    customers.run()
    assert customers.mirror() == [hiding(row) for row in customers.rows()]
    for rules in (None, HIDING):
        customers.shape(rules)
        customers.do("insert into c (id) values (10) on duplicate key update phone = '12345'")
        told = verify(customers.follower.ports())
        assert not told.differs
        assert [str(table.table) for table in told.not_proven] == [f"{database}.c"]
        customers.run()
        shown = [dict(row) if rules is None else hiding(row) for row in customers.rows()]
        assert customers.mirror() == shown
        assert customers.stopped() is None


def test_a_run_refuses_to_hide_a_column_that_no_table_has(mysql: MySqlStand, database: str) -> None:
    """What was meant would be shown: nothing is written, also when the name comes later."""
    wrong = (
        ShapeRules(hash_columns={"emial": Hash.EXACT, "phone": Hash.EXACT}),
        ShapeRules(exclude_columns=("ssn", "emial")),
        ShapeRules(mask_columns={"emial": Mask("null")}),
    )
    customers = Customers(mysql, database, HIDING)

    def require_refused() -> None:
        for rules in wrong:
            customers.shape(rules)
            with pytest.raises(ConfigurationError, match="'emial', and no column of its tables"):
                customers.run()

    require_refused()
    assert customers.follower.states() == {}
    customers.shape(HIDING)
    customers.run()
    require_refused()
    assert customers.mirror() == [hiding(row) for row in customers.rows()]
    customers.do("drop table c")  # which the log of the next run has to say first
    require_refused()


def test_a_hidden_column_may_be_dropped_and_come_back(mysql: MySqlStand, database: str) -> None:
    """Its name is no mistake, nor is one of another table of the block."""
    customers = Customers(mysql, database, HIDING)
    customers.do("create table d (id int primary key, other int)")
    shared = replace(HIDING, exclude_columns=("ssn", "kind", "other"))
    customers.follower.shapes = {f"{database}.*": shared}
    customers.run()
    customers.do("alter table c drop ssn")
    customers.run()
    customers.run()
    customers.do("alter table c add ssn char(9) default '7'")
    customers.run()
    assert customers.mirror() == [hiding(row) for row in customers.rows()]


def test_statements_about_tables_that_nobody_captures_are_kept_without_values(
    mysql: MySqlStand, database: str
) -> None:
    """Of a source that hides columns; one that concerns a captured table without settings stays."""
    customers = Customers(mysql, database, HIDING)
    customers.run()
    with mysql.own_database() as foreign:
        mysql.execute(
            f"create table pay (id int primary key, grade char(9) default '{_FOREIGN}')",
            f"alter table pay comment '{_FOREIGN}'",
            f"create table {database}.d (id int primary key, kind char(9) default 'open')",
            f"rename table pay to {database}.e",
            database=foreign,
        )
        customers.run()
    texts = [one.text for one in customers.follower.ledger.schema_statements(SOURCE)]
    shown = " ".join(texts)
    assert _FOREIGN not in shown
    assert ("default 'open'" in shown, "rename table" in shown, len(texts) >= 4) == (True,) * 3
    assert customers.rows("e") == customers.mirror("e") == []


def test_it_comes_while_captured_batches_wait(mysql: MySqlStand, database: str) -> None:
    customers = Customers(mysql, database, ShapeRules(exclude_columns=("ssn",)))
    customers.run()
    customers.do("insert into c values (7, 'g', '777', '12345', 1, 'gold')")
    customers.follower.capture()
    customers.shape(HIDING)
    customers.do("update c set email = 'h' where id = 7")
    customers.run()
    assert customers.mirror() == [hiding(row) for row in customers.rows()]


def test_it_comes_in_the_middle_of_a_load(mysql: MySqlStand, database: str) -> None:
    slow = SnapshotPlan(max_seconds=0.0, pace=Pace(first_rows=1, least_rows=1, most_rows=1))
    customers = Customers(mysql, database, ShapeRules(exclude_columns=("ssn",)), snapshot=slow)
    customers.run()
    assert customers.mirror() == []
    customers.shape(HIDING)
    for _ in range(8):
        customers.run()
        if customers.mirror():
            break
    assert customers.mirror() == [hiding(row) for row in customers.rows()]


def test_a_table_of_which_no_row_was_taken_is_rewritten_from_its_changelog(
    mysql: MySqlStand, database: str
) -> None:
    """Its changelog has all its rows, also those that came while the others were read, over several
    runs."""
    slow = SnapshotPlan(max_seconds=0.0, pace=Pace(first_rows=1, least_rows=1, most_rows=1))
    customers = Customers(mysql, database, ShapeRules(rows="active"), snapshot=slow)
    customers.do("update c set active = 0")
    customers.run()
    customers.do("insert into c (id, active) values (0, 1)")
    for _ in range(8):
        customers.run()
    assert [row["id"] for row in customers.mirror()] == [0]
    customers.reload("c", Supplier.CHANGELOG)
    customers.run()
    assert [row["id"] for row in customers.mirror()] == [0]


ALL_HIDDEN = (
    'hash_columns = ["email"], mask_columns = { "phone" = "last:4" }, '
    'exclude_columns = ["ssn", "kind"]'
)
OTHER_NAMES = (
    ("rename table t0 to t0_old", "t0_old", "email", ALL_HIDDEN),
    ("create table t1_like like t1", "t1_like", "email", ALL_HIDDEN),
    ("alter table t2 rename column email to mail", "t2", "mail", 'hash_columns = ["mail"]'),
    ("alter table t3 rename column ssn to social", "t3", "social", 'exclude_columns = ["social"]'),
    (
        "alter table t4 rename column phone to mobile",
        "t4",
        "mobile",
        'mask_columns = { "mobile" = "last:4" }',
    ),
)
"""A statement, the table that stops behind it, for the sake of a column, and the settings that are
missing."""


@pytest.mark.parametrize("has_dropped_column", [False, True])
@pytest.mark.parametrize("method", ["snapshot", "chunk", "next_bound"])
def test_a_table_that_is_not_seen_is_not_read_as_it_is(
    mysql: MySqlStand,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    *,
    has_dropped_column: bool,
) -> None:
    """MariaDB omits a table that it could not open in time, and may open it when rows are read. A
    replica may still have the column that is gone at the source."""
    table = TableName(database, "customers")
    mysql.execute(
        "create table customers (id int primary key, ssn char(9))",
        "insert into customers values (1, 'secret')",
        database=database,
    )
    rules = ShapeRules(hash_columns={"ssn": Hash.EXACT})
    shaping = Shaping({table: rules}.get, PrivacyKey(KEY), has_rules=True)
    server = MySqlServer(settings(mysql), shaping=shaping)
    (schema,) = MySqlServer(settings(mysql)).baseline([table]).tables
    seen = (replace(schema, columns=schema.columns[:1]),) if has_dropped_column else ()
    monkeypatch.setattr(shaped, "read_schemas", lambda *_: seen)
    reads: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "snapshot": lambda: server.snapshot(schema),
        "chunk": lambda: server.chunk(schema, Range()),
        "next_bound": lambda: nullcontext(server.next_bound(schema, None, 1)),
    }
    with pytest.raises(StructureMoved), reads[method]():
        pytest.fail("it was read")


WITHOUT_VALUES = {
    *("facts", "survey", "dump", "dump_after", "prepared", "tables", "engines", "missing_grants"),
    *(
        "is_view_or_sequence",
        "empty_tables",
        "estimated_rows_where",
        "estimated_rows",
        "estimated_bytes",
        "source_load",
    ),
}


def test_each_answer_is_shaped_or_has_no_values() -> None:
    """An answer that the server gives from some version on shows nothing before somebody decided
    here what it may show."""
    answers = {name for name in dir(SourceServer) if not name.startswith("_")}
    shaped_answers = {
        name
        for name in answers
        if re.search(r"self\._(shap|lake_structure)", getsource(getattr(MySqlServer, name)))
    }
    assert answers - shaped_answers == WITHOUT_VALUES


def test_nothing_is_shown_under_another_name(mysql: MySqlStand, database: str) -> None:
    """Nor under a second one, where the first one stopped in this run or in the one before."""
    customers = Customers(mysql, database, HIDING)
    for table in ("t0", "t1", "t2", "t3", "t4", "twice", "again"):
        customers.copies(table)
        customers.follower.shapes[f"{database}.{table}"] = HIDING
    customers.run()
    customers.do("rename table again to again_old")
    customers.reload("t4")  # which is read by the run that comes upon the statement
    for statement, table, *_ in OTHER_NAMES:
        customers.do(statement, f"insert into {table} (id) values (100)")
    customers.run()
    for statement, table, column, setting in OTHER_NAMES:
        assert repr(column) in (customers.stopped(table) or ""), statement
        hint = customers.follower.states()[TableName(database, table)].hint or ""
        assert hint.startswith(
            f"add {setting} to a [[sources.table]] block that matches {database}.{table}"
        )
        assert "rename column" in statement or customers.mirror(table) == []
        # To have it reloaded is no consent, nor is it after somebody paused it.
        asked = OrderRequest(TableName(database, table), "ada", "because")
        for is_paused in (False, True) if table == "t1_like" else (False,):
            if is_paused:
                customers.order(OrderKind.PAUSE, asked)
            for supplier in (None, Supplier.SOURCE):
                with pytest.raises(LedgerRefused, match=repr(column)) as refused:
                    plan_reload(customers.follower.ports(), asked, supplier)
            assert "is your consent to show it" in refused.value.hint
    # A person may consent to it, and is told before that this is what it comes to.
    consented = TableName(database, "t0_old")
    assert "is your consent to show it" in (customers.follower.states()[consented].hint or "")
    customers.follower.order(OrderKind.RESUME, consented)
    recorded = customers.follower.kept_ledger().rows["table_orders"]
    assert all(word in recorded for word in ("resume", "ada", "because"))
    customers.run()
    assert customers.mirror("t0_old") == customers.rows("t0_old")
    customers.do(
        "rename table twice to twice_old",
        "rename table twice_old to twice_older",
        "rename table again_old to again_older",
        "insert into twice_older (id) values (100)",
        "insert into again_older (id) values (100)",
    )
    for _ in range(2):
        customers.run()
        for table in ("twice_older", "again_older"):
            assert customers.stopped(table)
            assert customers.mirror(table) == []


def test_rows_that_tables_exchange_are_not_shown(mysql: MySqlStand, database: str) -> None:
    """Whatever is wanted of other rows that the log does not have."""
    policies = LakePolicies(on_rewrite=OnRewrite.RESNAPSHOT)
    customers = Customers(mysql, database, HIDING, lake_policies=policies)
    customers.do(
        "create table p like c",
        "alter table p partition by range (id) (partition a values less than (9))",
    )
    customers.run()
    customers.do("alter table p exchange partition a with table c")
    for _ in range(2):
        customers.run()
        for table in ("p", "c"):
            assert customers.stopped(table)
            asked = OrderRequest(TableName(database, table), "ada", "because")
            with pytest.raises(LedgerRefused, match="the settings hide values of one of them"):
                plan_reload(customers.follower.ports(), asked, Supplier.SOURCE)
        assert customers.mirror("p") == []


def test_a_table_that_has_no_sample_is_no_difference(mysql: MySqlStand, database: str) -> None:
    """Rows are left out, so that nobody knows which of the server's are to be in the lake."""
    customers = Customers(mysql, database, replace(HIDING, rows="id <> 3", types={}))
    customers.run()
    report = verify_sample(customers.follower.ports(), None, 100, Random(1))
    assert not report.differs
    assert ["rows are left out" in table.reason for table in report.not_proven] == [True]
    assert [*sample_lines(SOURCE, report)] == []


def test_all_that_a_new_name_would_show_is_named(mysql: MySqlStand, database: str) -> None:
    """Each column and the condition on rows, with the lines that hide all of it; who adds some of
    them is told what the lake will show. With all of them nothing more is shown than before."""
    hiding_rows = replace(HIDING, rows="id <> 3", types={})
    customers = Customers(mysql, database, hiding_rows)
    customers.run()
    customers.do("rename table c to d")
    customers.run()
    table = TableName(database, "d")
    state = customers.follower.states()[table]
    for column in ("email", "ssn", "phone", "kind"):
        assert f"its column {column!r} shows more" in (state.reason or "")
    assert "leave rows out" in (state.reason or "")
    hidden = (state.hint or "").partition(" to a [[sources.table]]")[0].removeprefix("add ")
    assert hidden == f'{ALL_HIDDEN}, rows = "id <> 3"'
    asked = OrderRequest(table, "ada", "because")
    consent = "your consent to what the lake then shows of it: "
    customers.follower.shapes = {}
    told = plan_resume(customers.follower.ports(), asked).sentence
    assert told.endswith(f"{consent}every column and row as it is")
    customers.follower.shapes = {f"{database}.d": ShapeRules(hash_columns={"email": Hash.EXACT})}
    told = plan_resume(customers.follower.ports(), asked).sentence
    assert "email" in told.partition(consent)[2]
    assert "phone" not in told.partition(consent)[2]
    customers.follower.shapes = {f"{database}.d": hiding_rows}
    customers.order(OrderKind.RESUME, asked)
    customers.run()
    wanted = [{**hiding(row), "active": row["active"]} for row in customers.rows("d")]
    assert customers.mirror("d") == [row for row in wanted if row["id"] != 3]


AWAY = {
    "left out": (),
    "paused": (OrderKind.PAUSE,),
    "paused, left out": (OrderKind.PAUSE,),
    "resumed, left out": (OrderKind.PAUSE, OrderKind.RESUME),
}
"""What a person orders of a table that nothing captures for a time."""

MEANWHILE = {
    "a column": ("alter table {c} rename column ssn to social",),
    "all rows": ("drop table {c}", "rename table t_{c} to {c}"),
}


@pytest.mark.parametrize("is_log_gone", [False, True], ids=["log", "purged"])
@pytest.mark.parametrize("ways", [["left out"], [*AWAY]], ids=["a gap", "no gap"])
def test_what_got_another_name_meanwhile_needs_consent(
    mysql: MySqlStand, database: str, ways: list[str], is_log_gone: bool
) -> None:
    """Whoever stopped the table, and whether its log is still there; an order that was given before
    is no consent, nor is a reload."""
    hidden, has_gap = "333333333", len(ways) == 1
    customers = Customers(mysql, database, ShapeRules(exclude_columns=("ssn",)))
    follower = customers.follower
    cases = {f"{way}, {change}": (way, change) for way in ways for change in MEANWHILE}
    tables = {case: TableName(database, f"c{number}") for number, case in enumerate(cases)}
    for table in tables.values():
        twin = TableName(database, f"t_{table.name}")
        follower.shapes[str(table)] = ShapeRules(exclude_columns=("ssn",))
        follower.shapes[str(twin)] = ShapeRules(exclude_columns=("phone",))
        customers.copies(table.name, twin.name)
        customers.do(f"update {twin} set ssn = null, phone = '{hidden}' where id = 1")
    customers.run()
    requests = {case: OrderRequest(table, "ada", "because") for case, table in tables.items()}
    for case, (way, _) in cases.items():
        for kind in AWAY[way]:
            customers.order(kind, requests[case])
    left_out = {table for case, table in tables.items() if "left out" in case}
    follower.tables = [
        str(table) for table in {TableName(database, "c"), *tables.values()} - left_out
    ]
    customers.do("insert into c (id) values (10)")
    customers.run()
    for case, (_, change) in cases.items():
        customers.do(*(text.format(c=tables[case].name) for text in MEANWHILE[change]))
    customers.do("flush binary logs", "insert into c (id) values (11)")
    customers.run()
    if has_gap:
        follower.choose("latest")
        customers.do("insert into c (id) values (12)")
        customers.run()
    if is_log_gone:
        mysql.execute(f"purge binary logs to '{head(mysql).file}'")
    follower.tables = [f"{database}.*"]
    assert left_out <= {*make_plan(follower.ports()).new_quarantines}
    for _ in range(2):
        customers.run()
        for case, table in tables.items():
            assert follower.states()[table].need is Need.CONSENT, case
            assert "your consent" in (follower.states()[table].hint or ""), case
            assert hidden not in str(customers.mirror(table.name)), case
    for asked in requests.values():
        with pytest.raises(LedgerRefused, match="might show more"):
            plan_reload(follower.ports(), asked, Supplier.SOURCE)
        assert "your consent" in plan_resume(follower.ports(), asked).sentence
        customers.order(OrderKind.RESUME, asked)
    customers.run()
    for case, table in tables.items():
        assert hidden in str(customers.mirror(table.name)), case


EXCHANGED = "alter table {c} rename column ssn to phone, rename column phone to ssn"
UNREAD = {
    "exchanged": (EXCHANGED,),
    "exchanged in steps": (
        "alter table {c} rename column ssn to x",
        "alter table {c} rename column phone to ssn",
        "alter table {c} rename column x to phone",
    ),
    "exchanged with the places": (
        EXCHANGED,
        "alter table {c} modify ssn varchar(20) after email, modify phone char(9) after ssn",
    ),
    "another has the name": (
        "alter table {c} rename column ssn to social, add column ssn char(9) after email",
    ),
}
"""Statements after which every hidden name is there, and a shown one has the values."""


@pytest.mark.parametrize("ways", [["reloaded", "reshaped"], ["skipped", "skipped, altered"]])
def test_what_is_hidden_is_not_read_under_a_name_that_the_log_has_yet_to_tell(
    mysql: MySqlStand, database: str, ways: list[str]
) -> None:
    """The log is read first. Where that is gone, a structure that differs tells it, also one that
    is known from a later statement on. A new table with the columns of one that is gone may be
    that."""
    hidden, rules = "333333333", ShapeRules(exclude_columns=("ssn",))
    customers = Customers(mysql, database, rules)
    follower, is_skipped = customers.follower, "skipped" in ways
    cases = {f"{way}, {change}": (way, change) for way in ways for change in UNREAD}
    tables = {case: TableName(database, f"c{number}") for number, case in enumerate(cases)}
    for table in tables.values():
        customers.copies(table.name)
        follower.shapes[str(table)] = rules
    customers.run()
    for case, (way, change) in cases.items():
        table = tables[case]
        if way == "reloaded":
            customers.reload(table.name)
        if way == "reshaped":
            follower.shapes[str(table)] = replace(rules, rows="id < 9")
        customers.do(*(text.format(c=table.name) for text in UNREAD[change]))
    if is_skipped:
        customers.do("rename table c to d")
        customers.skip_log()
        for case, (way, change) in cases.items():
            table, column = tables[case], "social" if "another" in change else "phone"
            alters = [f"alter table {table} add column more int"] * ("altered" in way)
            customers.do(*alters, f"update {table} set {column} = '{hidden}' where id = 1")
        customers.do("update d set phone = '1' where id = 3", "create table e (id int)")
        tables["a new table"] = TableName(database, "d")
    for _ in range(2):
        customers.run()
        for case, table in tables.items():
            assert follower.states()[table].need is Need.CONSENT, case
        files = [rows.to_pylist() for rows in follower.lake.files.values()]
        mirrors = [customers.mirror(table.name) for table in tables.values()]
        assert hidden not in str([mirrors, files])
    for table in tables.values():
        asked = OrderRequest(table, "ada", "because")
        assert "your consent" in plan_resume(follower.ports(), asked).sentence
        customers.order(OrderKind.RESUME, asked)
    customers.run()
    for case, table in tables.items():
        assert hidden in str(customers.mirror(table.name)), case


@pytest.mark.parametrize(
    "skipped, read",
    [
        ("alter table c comment 'more', rename to d", "add column more int"),
        ("alter table c add column more int, rename to d", "comment 'more'"),
        ("alter table c rename column ssn to social, rename to d", None),
        ("alter table c drop email, drop kind, modify ssn char(9) after phone, rename to d", None),
        ("alter table c add column more int, rename to d", None),
        ("rename table c to d; create table c like d", None),
    ],
)
def test_a_new_table_with_half_of_the_columns_of_one_that_hides_some_needs_consent(
    mysql: MySqlStand, database: str, skipped: str, read: str | None
) -> None:
    """In the part of the log that was skipped, it may have got its name, and other columns: its
    settings show what the settings of the former name hide, also if the log that is read alters it
    again. A new table with few of the columns needs none."""
    hidden, renamed, new = "333333333", TableName(database, "d"), TableName(database, "e")
    customers = Customers(mysql, database, ShapeRules(exclude_columns=("ssn",)))
    follower = customers.follower
    customers.run()
    customers.do(
        *skipped.split("; "),
        "create table e (id int primary key, title char(9))",
    )
    customers.skip_log()
    customers.do(*([] if read is None else [f"alter table d {read}"]))
    customers.do("update d set phone = '1' where id = 3", "insert into e values (1, 'one')")
    for _ in range(2):
        customers.run()
        assert (follower.states()[renamed].need, follower.states()[new].need) == (
            Need.CONSENT,
            None,
        )
        files = [rows.to_pylist() for rows in follower.lake.files.values()]
        assert hidden not in str([customers.mirror("d"), files])
    customers.order(OrderKind.RESUME, OrderRequest(renamed, "ada", "because"))
    customers.run()
    assert hidden in str(customers.mirror("d"))


PAST = {
    "its name was another table's": ["create table d (id int primary key, v int)", "drop table d"],
    "its structure is unknown": ["alter table c rename column kind to sort"],
    "its former name waits for consent": ["rename table c to f"],
    "and so do all that it had": ["rename table c to e", "rename table e to f"],
}
"""What the log tells before the part that is skipped."""


@pytest.mark.parametrize("past", PAST)
def test_a_table_that_is_renamed_in_a_skipped_part_needs_consent_whatever_it_was_before(
    mysql: MySqlStand, database: str, monkeypatch: pytest.MonkeyPatch, past: str
) -> None:
    """A table had its new name once, which is gone; or nobody knows the structure of the table any
    more that was renamed: the versions of before say what it hides."""
    customers = Customers(mysql, database, ShapeRules(exclude_columns=("ssn",)))
    nobody = partial(followed_by_nobody, TableName(database, "c"))
    monkeypatch.setattr(tracker, "read_change", nobody)
    customers.run()
    for statement in PAST[past]:
        customers.do(statement)
        customers.run()
    [former] = {"c", "f"} & {table for (table,) in mysql.rows(f"show tables from {database}")}
    customers.do(f"rename table {former} to d")
    customers.skip_log()
    customers.do("update d set phone = '1' where id = 3")
    customers.require_consent("d", "333333333")


@pytest.mark.parametrize("is_read", [False, True])
def test_a_new_table_may_have_the_rows_of_one_that_was_never_shown(
    mysql: MySqlStand, database: str, is_read: bool
) -> None:
    """Its settings could never be applied, so nobody knows its columns. It is renamed in a skipped
    part of the log, or right after that."""
    rules = ShapeRules(exclude_columns=("ssn",), rows="absent < 9")
    customers = Customers(mysql, database, rules)
    follower = customers.follower
    customers.run()
    assert follower.states()[TableName(database, "c")].has_stopped
    rename = ["rename table c to d"]
    customers.do(*rename * (not is_read))
    customers.skip_log()
    customers.do(*rename * is_read, "update d set phone = '1' where id = 3")
    customers.require_consent("d", "333333333")


def test_a_new_table_may_have_the_rows_of_each_table_that_hides_columns(
    mysql: MySqlStand, database: str
) -> None:
    """Its settings hide what those of one such table hide, but not what those of the other do."""
    customers = Customers(mysql, database, ShapeRules(exclude_columns=("ssn",)))
    follower = customers.follower
    customers.copies("t")
    for name, hidden in (("t", "phone"), ("d", "ssn")):
        follower.shapes[f"{database}.{name}"] = ShapeRules(exclude_columns=(hidden,))
    customers.run()
    customers.do("rename table t to d", "drop table c")
    customers.skip_log()
    customers.do("update d set ssn = '1' where id = 3")
    customers.run()
    assert follower.states()[TableName(database, "d")].need is Need.CONSENT
    assert customers.mirror("d") == []


@pytest.mark.parametrize(
    "skipped", ["rename table c to d", "rename table c to d; create table c like d", EXCHANGED]
)
def test_a_table_without_changes_after_a_skipped_part_needs_consent(
    mysql: MySqlStand, database: str, skipped: str
) -> None:
    """No row of it stops it in the log, and the next run would read it from the source; nor is it
    read because a person has it reloaded."""
    hidden = "333333333"
    customers = Customers(mysql, database, ShapeRules(exclude_columns=("ssn",)))
    follower, name = customers.follower, "c" if skipped == EXCHANGED else "d"
    table = TableName(database, name)
    customers.run()
    customers.do(*skipped.format(c="c").split("; "))
    customers.skip_log()
    for number in range(3):
        customers.do(f"create table e{number} (id int primary key)")
        customers.run()
        assert follower.states()[table].need is Need.CONSENT
        with pytest.raises(LedgerRefused, match="might show more"):
            customers.reload(name)
        files = [rows.to_pylist() for rows in follower.lake.files.values()]
        assert hidden not in str([customers.mirror(name), files])


PLAIN = (
    "like c0",
    "(id int primary key, x int)",
    "(id int primary key, phone varchar(20), ssn char(9), more int, other int)",
)
"""Columns of a table without settings: all of those of the one with settings, none, or some."""


@pytest.mark.parametrize("is_altered", [False, True])
@pytest.mark.parametrize("way", ["chosen", "reloaded", "policy"])
def test_a_table_that_exchanged_names_in_a_skipped_part_needs_consent(
    mysql: MySqlStand, database: str, way: str, is_altered: bool
) -> None:
    """It was known under its name, but has the columns of another one that hides some; also if the
    log that is read alters it, or if it is to be read from the source at once. A table that kept
    its own columns needs none."""
    hidden, renamed = "333333333", [TableName(database, f"d{n}") for n, _ in enumerate(PLAIN)]
    customers = Customers(mysql, database, ShapeRules(exclude_columns=("ssn",)))
    follower = customers.follower
    if way == "policy":
        follower.policies = StartPolicies(on_position_lost=OnPositionLost.RESNAPSHOT)
    for number, columns in enumerate(PLAIN):
        customers.copies(f"c{number}")
        follower.shapes[f"{database}.c{number}"] = ShapeRules(exclude_columns=("ssn",))
        customers.do(f"create table d{number} {columns}", f"insert into d{number} (id) values (50)")
    customers.do("create table own (id int primary key, email int, kind int, note int)")
    customers.run()
    for number, table in enumerate(renamed):
        customers.do(f"rename table c{number} to t, d{number} to c{number}, t to d{number}")
        if way == "reloaded":
            customers.reload(table.name)
    customers.do("alter table own add column more int")
    customers.purge_log()
    if way != "policy":
        follower.choose("earliest")
    for name in (*map(str, renamed), "own"):
        alter = [f"alter table {name} add column new int"] * is_altered
        customers.do(*alter, f"update {name} set id = 33 where id = 3")
    for _ in range(2):
        customers.run()
        files = [rows.to_pylist() for rows in follower.lake.files.values()]
        assert hidden not in str([files, *(customers.mirror(table.name) for table in renamed)])
        assert {follower.states()[table].need for table in renamed} == {Need.CONSENT}
    assert follower.states()[TableName(database, "own")].need is not Need.CONSENT
    for table in renamed:
        customers.order(OrderKind.RESUME, OrderRequest(table, "ada", "because"))
    customers.run()
    for table in renamed:
        assert customers.mirror(table.name) == customers.rows(table.name)


@pytest.mark.parametrize("is_skipped", [False, True])
def test_a_table_that_cannot_be_shown_as_its_settings_say_stops_also_after_a_skipped_part(
    mysql: MySqlStand, database: str, is_skipped: bool
) -> None:
    """Without a change of it in the log that is read, its mirror would stay as it was, and nobody
    would hear of it. The plan says the same before."""
    customers = Customers(mysql, database, ShapeRules(rows="active < 9"))
    follower, table = customers.follower, TableName(database, "c")
    customers.run()
    customers.do("alter table c drop column active")
    if is_skipped:
        customers.skip_log()
    customers.do("create table e (id int primary key)")
    foreseen = make_plan(follower.ports())
    customers.run()
    reason = "its condition cannot be evaluated: the table has no column 'active'"
    assert customers.stopped() == reason
    assert foreseen.reading is not None
    assert {stop.table: stop.reason for stop in foreseen.reading.quarantines} == {table: reason}
    assert foreseen.new_quarantines == [table]


@pytest.mark.parametrize(
    "way", ["recovered", "recovered without mirrors", "reloaded", "reloaded, unknown", "exchanged"]
)
def test_a_table_is_not_read_before_the_log_that_gives_it_its_name(
    mysql: MySqlStand, database: str, way: str
) -> None:
    """Nor before the log that gives it another one's rows. What the settings hide of those would be
    in the files of what was read."""
    hidden, name = "333333333", TableName(database, "d")
    customers = Customers(mysql, database, ShapeRules(exclude_columns=("ssn",)))
    follower = customers.follower
    if way == "reloaded, unknown":
        customers.shape(ShapeRules(exclude_columns=("ssn",), types={"phone": Conversion.UUID}))
    if way.startswith("reloaded"):
        customers.do("create table d like c", "insert into d (id) values (50)")
        customers.run()
        customers.reload("d")
        customers.do("rename table c to t, d to c, t to d")
    elif way == "exchanged":
        customers.do("create table d like c", "alter table c partition by hash (id) partitions 1")
        customers.run()
        customers.reload("d")
        customers.do("alter table c exchange partition p0 with table d")
    else:
        is_exchanged = way == "recovered without mirrors"
        customers.do(*["create table d like c", "insert into d (id) values (50)"] * is_exchanged)
        customers.run()
        customers.do("create table w (id int primary key)")
        customers.run()
        customers.do(
            "rename table c to t, d to c, t to d" if is_exchanged else "rename table c to d"
        )
        follower.lose_ledger()
        for table in ["c", "d"] * is_exchanged:
            del follower.lake.tables[f"{SOURCE}/{database}/{table}"]
        follower.recover()
    for _ in range(2):
        customers.run()
        files = [rows.to_pylist() for rows in follower.lake.files.values()]
        assert hidden not in str([customers.mirror("d"), files])
        assert follower.states()[name].need is Need.CONSENT


@pytest.mark.parametrize("change", UNREAD)
def test_a_table_whose_columns_nobody_knows_is_not_read_before_the_log_that_renames_them(
    mysql: MySqlStand, database: str, change: str
) -> None:
    """Nor after it: ledger and mirror are lost, so that the log cannot be followed, which says what
    became of a hidden column."""
    customers = Customers(mysql, database, ShapeRules(exclude_columns=("ssn",)))
    customers.run()
    customers.do("create table w (id int primary key)")
    customers.run()
    customers.do(*(statement.format(c="c") for statement in UNREAD[change]))
    customers.follower.lose_ledger()
    del customers.follower.lake.tables[f"{SOURCE}/{database}/c"]
    customers.follower.recover()
    customers.require_consent("c", "333333333")


def test_a_table_whose_columns_stay_is_read_before_the_log(
    mysql: MySqlStand, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index, or a partition, tells nothing of what is hidden: else a table with a new partition
    each day, whose reading takes days, would be read from its beginning for ever."""
    voided: list[str] = []
    customers = Customers(mysql, database, ShapeRules(exclude_columns=("ssn",)))
    customers.run()
    monkeypatch.setattr(
        customers.follower.ledger, "void_load", lambda lease, load, why: voided.append(why)
    )
    customers.reload("c")
    customers.do(
        "alter table c add index (phone), comment 'more'",
        "alter table c partition by hash (id) partitions 2",
        "create index e on c (email)",
    )
    customers.run()
    assert (voided, customers.stopped()) == ([], None)


def test_a_table_altered_when_its_reading_begins_needs_no_consent(
    mysql: MySqlStand, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has the statement, and is read first."""
    customers = Customers(mysql, database, ShapeRules(exclude_columns=("ssn",)))
    customers.run()
    baseline, statements = MySqlServer.baseline, list[str]()

    def altered(server: MySqlServer, names: Collection[TableName] | None = None) -> Baseline:
        if names and statements:
            customers.do(statements.pop())
        return baseline(server, names)

    monkeypatch.setattr(MySqlServer, "baseline", altered)
    for change in ("add more int", "modify phone varchar(30)"):
        customers.reload("c")
        statements.append(f"alter table c {change}")
        customers.run()
        assert (customers.stopped(), statements) == (None, [])
        shown = [{n: v for n, v in row.items() if n != "ssn"} for row in customers.rows()]
        assert customers.mirror() == shown


def test_a_new_column_is_not_read_under_a_name_that_the_log_has_yet_to_tell(
    mysql: MySqlStand, database: str
) -> None:
    """It would be read alone, by key, and has exchanged name and place with a hidden one."""

    class Written(dict[str, pa.Table]):
        """Files of a lake, also those that are gone."""

        def __setitem__(self, path: str, rows: pa.Table) -> None:
            written.append(rows.to_pylist())
            super().__setitem__(path, rows)

    written = list[Any]()
    customers = Customers(mysql, database, ShapeRules(exclude_columns=("ssn",)))
    customers.follower.lake.files = Written()
    customers.run()
    customers.do("alter table c add column note char(9) default (concat('n', id)) after ssn")
    customers.follower.run(str(head(mysql)))
    name = TableName(database, "c")
    assert customers.follower.states()[name].need is Need.COLUMNS
    customers.do(
        "alter table c rename column ssn to note, rename column note to ssn",
        "alter table c modify ssn char(9) after email, modify note char(9) after ssn",
    )
    for _ in range(2):
        customers.run()
        state = customers.follower.states()[name]
        assert state.need is Need.CONSENT, state
        assert "333333333" not in str([customers.mirror(), written])


@pytest.mark.parametrize("way", ["left out", "paused"])
def test_a_statement_that_nobody_follows_may_rename_what_is_hidden(
    mysql: MySqlStand, database: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run does not read such a table by itself, and a person is told what a resume shows."""
    table, customers = TableName(database, "c"), Customers(mysql, database, HIDING)
    monkeypatch.setattr(tracker, "read_change", partial(followed_by_nobody, table))
    follower, asked = customers.follower, OrderRequest(table, "ada", "because")
    customers.do("create table o (i int)")
    customers.run()
    if way == "paused":
        customers.order(OrderKind.PAUSE, asked)
    else:
        follower.tables = [f"{database}.o"]
    customers.run()
    customers.do("alter table c rename column ssn to social", "insert into o values (2)")
    customers.run()
    follower.tables = [f"{database}.*"]
    for _ in range(2):
        customers.run()
        assert "social" not in str(customers.mirror())
    assert (follower.states()[table].need is Need.CONSENT) == (way == "left out")
    customers.purge_log()
    assert "your consent" in plan_resume(follower.ports(), asked).sentence


@pytest.mark.parametrize(
    ("start", "suppliers"),
    [("snapshot", (None,)), ("latest", (None, Supplier.SOURCE, Supplier.LOG))],
)
def test_rows_that_got_a_name_which_is_captured_later_need_consent(
    mysql: MySqlStand, database: str, start: str, suppliers: tuple[Supplier | None, ...]
) -> None:
    """Nothing captured the table before, so that nobody could stop it."""
    hidden = "333333333"
    customers = Customers(mysql, database, ShapeRules(exclude_columns=("ssn",)), start=start)
    follower = customers.follower
    tables = {TableName(database, f"d{n}"): supplier for n, supplier in enumerate(suppliers)}
    for table in tables:
        customers.copies(f"c_{table.name}")
        follower.shapes[f"{database}.c_{table.name}"] = ShapeRules(exclude_columns=("ssn",))
    customers.do("create table o (i int)", "insert into o values (1)")
    follower.tables = [f"{database}.o"]
    customers.run()
    customers.do(*(f"rename table c_{table.name} to {table.name}" for table in tables))
    customers.do("flush binary logs", *(f"update {table} set phone = 9" for table in tables))
    customers.run()
    mysql.execute(f"purge binary logs to '{head(mysql).file}'")
    follower.tables = [f"{database}.[do]*"]
    for table, supplier in tables.items():
        if supplier is not None:
            with pytest.raises(PastRefused) if supplier is Supplier.LOG else nullcontext():
                follower.reload(table, supplier)
            customers.do(f"update {table} set phone = 8")
    assert {*tables} <= {*make_plan(follower.ports()).new_quarantines}
    for _ in range(2):
        customers.run()
        for table in tables:
            assert follower.states()[table].need is Need.CONSENT
            assert hidden not in str(customers.mirror(table.name))
        assert hidden not in str([*follower.lake.files.values()])
    for table in tables:
        customers.order(OrderKind.RESUME, OrderRequest(table, "ada", "because"))
    customers.run()
    for table in tables:
        assert hidden in str(customers.mirror(table.name))


def test_a_structure_that_a_person_gives_is_no_consent(mysql: MySqlStand, database: str) -> None:
    """A hidden column stays hidden under the name that it is given; also where nobody refused the
    order, and no row in the log tells that the structure is another."""
    customers = Customers(mysql, database, HIDING)
    customers.run()
    table = TableName(database, "c")
    customers.order(OrderKind.PAUSE, OrderRequest(table, "ada", "because"))
    customers.do(
        "set sql_log_bin = 0", "alter table c rename column ssn to social", "set sql_log_bin = 1"
    )
    customers.run()
    given, renames = _TABLE.replace("ssn", "social"), (("ssn", "social"),)
    asked, ports = OrderRequest(table, "ada", "because", given, renames), customers.follower.ports()
    with pytest.raises(ConfigurationError, match="'social' shows more than") as refused:
        plan_resume(ports, asked)
    assert "is your consent to show it" in refused.value.hint
    known = ports.ledger.schema_versions(ports.source.name, table)[-1].schema
    assert known is not None
    columns = (
        replace(one, name={"ssn": "social"}.get(one.name, one.name)) for one in known.columns
    )
    schema = replace(known, columns=tuple(columns))
    with customers.follower.leased() as lease:
        customers.follower.ledger.order_table(
            lease, table, OrderKind.RESUME, author="ada", reason="", schema=schema, renames=renames
        )
    for _ in range(2):
        customers.run()
        assert "'social' shows more than" in (customers.stopped() or "")
        assert not any("social" in row for row in customers.mirror())
    customers.order(OrderKind.RESUME, OrderRequest(table, "ada", "shown from now on"))
    customers.run()
    assert [row["social"] for row in customers.mirror()] == ["111111111", None, "333333333"]


def test_a_quarantine_for_the_settings_is_no_fault_of_the_history(
    mysql: MySqlStand, database: str
) -> None:
    """Neither before nor after somebody consents, whatever else is altered meanwhile."""
    customers = Customers(mysql, database, HIDING)
    customers.run()
    for statements in (
        ("alter table c rename column email to mail", "alter table c add n1 int"),
        ("alter table c add n2 int",),
    ):
        customers.do(*statements)
        customers.run()
        found = verify_schema(customers.follower.ports())
        assert found.equal, found.history_disagreements
    customers.follower.order(OrderKind.RESUME, TableName(database, "c"))
    customers.run()
    customers.do("alter table c add n3 int")
    customers.run()
    found = verify_schema(customers.follower.ports())
    assert found.equal, found.history_disagreements
    assert found.unknown_versions == ()
    assert customers.mirror()


def test_a_structure_that_a_person_gives_is_kept_without_values(
    mysql: MySqlStand, database: str
) -> None:
    customers = Customers(mysql, database, HIDING)
    customers.run()
    customers.do("alter table c rename column email to mail")
    customers.run()
    given = _TABLE.replace("char(9)", "char(9) default 'secret'").replace("'gold'", "'secrets'")
    asked = OrderRequest(TableName(database, "c"), "ada", "because", given)
    customers.order(OrderKind.RESUME, asked)
    assert "secret" not in repr(customers.follower.kept_ledger().rows)


def test_bounds_of_chunks_are_sealed(mysql: MySqlStand, database: str) -> None:
    """Also of a table whose key is shown, since the row of a bound may be left out."""
    slow = SnapshotPlan(max_seconds=0.0, pace=Pace(first_rows=1, least_rows=1, most_rows=1))
    rules = ShapeRules(rows="active")
    customers = Customers(mysql, database, rules, snapshot=slow)
    customers.do("update c set id = id + 424242420 order by id desc")
    customers.run()
    chunks = customers.follower.kept_ledger().rows["load_chunks"]
    assert "sealed'" in chunks
    assert "42424242" not in chunks
    customers.follower.snapshot = SnapshotPlan()
    for _ in range(2):
        customers.run()
    assert customers.mirror() == [row for row in customers.rows() if row["active"]]


def test_what_the_server_computes_of_hidden_columns_is_not_shown(
    mysql: MySqlStand, database: str
) -> None:
    """A column that comes later stops the table, until it is hidden as well."""
    customers = Customers(mysql, database, HIDING)
    customers.run()
    customers.do(
        "alter table c add shown varchar(60) as (concat(phone_, '-', `SSN`)) virtual"
        ", add phone_ varchar(9)",
        "update c set ssn = '424242424'",
    )
    for _ in range(2):
        customers.run()
        assert "'shown' is computed from 'ssn'" in (customers.stopped() or "")
    customers.shape(replace(HIDING, exclude_columns=(*HIDDEN, "shown")))
    customers.follower.order(OrderKind.RESUME, TableName(database, "c"))
    customers.run()
    assert customers.stopped() is None
    hidden = [{n: v for n, v in hiding(row).items() if n != "shown"} for row in customers.rows()]
    assert customers.mirror() == hidden


def test_rows_enter_and_leave(mysql: MySqlStand, database: str) -> None:
    rules = ShapeRules(rows="active and phone is not null")
    customers = Customers(mysql, database, rules)
    customers.run()
    for statements in (
        (
            "update c set active = 1 where id = 2",
            "update c set phone = null where id = 1",
            "insert into c (id, phone) values (5, '1'), (6, null)",
        ),
        ("update c set id = 9 where id = 5", "delete from c where id in (2, 6)"),
        (
            "alter table c modify active smallint not null",
            "alter table c add more int default 1",
        ),
    ):
        customers.do(*statements)
        customers.run()
        taken = [row for row in customers.rows() if row["active"] and row["phone"] is not None]
        assert customers.mirror() == taken, statements
    customers.do("alter table c drop phone")
    customers.run()
    assert "phone" in (customers.stopped() or "")


def test_a_lost_ledger_finds_the_shape_of_each_mirror(mysql: MySqlStand, database: str) -> None:
    """One that shows something else than the settings now say is read again."""
    customers = Customers(mysql, database, HIDING)
    customers.run()
    customers.do("insert into c values (7, 'g', '777', '12345', 1, 'gold')")
    customers.run()
    for rules in (HIDING, ShapeRules(exclude_columns=("ssn",))):
        customers.shape(rules)
        customers.follower.lose_ledger()
        customers.follower.recover()
        customers.do("update c set phone = concat(phone, '1')")
        customers.run()
        rows = customers.rows()
        without = [{name: row[name] for name in row if name != "ssn"} for row in rows]
        shown = [hiding(row) for row in rows] if rules == HIDING else without
        assert customers.mirror() == shown


def test_a_lost_ledger_asks_for_consent_again(mysql: MySqlStand, database: str) -> None:
    """A table got a name without settings, and nobody consented to show it: the ledger that is made
    from the lake has nothing else of it, and does not have it read before somebody does."""
    customers = Customers(mysql, database, HIDING)
    customers.run()
    customers.do("rename table c to d")
    customers.run()
    for _ in range(2):
        customers.follower.lose_ledger()
        customers.follower.recover()
        customers.do("insert into d (id) values (10) on duplicate key update ssn = '778'")
        customers.run()
        assert "hidden under another name" in (customers.stopped("d") or "")
        assert f"{SOURCE}/{database}/d" not in customers.follower.lake.tables
    customers.order(OrderKind.RESUME, OrderRequest(TableName(database, "d"), "ada", "because"))
    customers.run()
    assert customers.mirror("d") == customers.rows("d")


@pytest.mark.parametrize(
    "name, change",
    [
        ("e", "rename table d to t, e to d, t to e"),
        ("f", "create table f like d; insert into f select * from d"),
    ],
)
def test_what_waits_for_consent_in_a_lost_ledger_waits_under_its_next_name(
    mysql: MySqlStand, database: str, name: str, change: str
) -> None:
    """The ledger that is made from the lake does not know which columns were hidden."""
    customers = Customers(mysql, database, HIDING)
    customers.do("create table e like c", "insert into e (id) values (50)")
    customers.run()
    customers.do("rename table c to d")
    customers.run()
    customers.follower.lose_ledger()
    customers.follower.recover()
    customers.do(*change.split("; "))
    customers.require_consent(name, "333333333")


@pytest.mark.parametrize("is_undone", [False, True], ids=["no run knew", "undone"])
@pytest.mark.parametrize(
    "rename",
    ["rename table c to e, e to d", "alter table c rename to d, drop column kind"],
    ids=["RENAME TABLE", "ALTER TABLE"],
)
def test_a_lost_ledger_follows_a_rename_before_it_reads_the_table(
    mysql: MySqlStand, database: str, rename: str, is_undone: bool
) -> None:
    """The log after the place at which the ledger goes on gives the table a name without settings:
    its rows are not read under that name, which nobody has consented to show, into any file."""
    hidden = "222222222"
    customers = Customers(mysql, database, ShapeRules(exclude_columns=("ssn",)))
    customers.run()
    customers.do(f"update c set ssn = '{hidden}' where id = 1")
    customers.run()
    newest = customers.follower.batches(limit=1)[0].id
    customers.do(rename)
    if is_undone:
        customers.run()
    customers.follower.lose_ledger()
    customers.follower.recover(after_batch=newest)
    for _ in range(2):
        customers.run()
        assert customers.follower.states()[TableName(database, "d")].need is Need.CONSENT
        files = [rows.to_pylist() for rows in customers.follower.lake.files.values()]
        assert hidden not in str(files)
    customers.order(OrderKind.RESUME, OrderRequest(TableName(database, "d"), "ada", "because"))
    customers.run()
    assert customers.mirror("d") == customers.rows("d")


def test_a_lost_ledger_shows_nothing_that_lost_its_hidden_name(
    mysql: MySqlStand, database: str
) -> None:
    """The lake has the structure under which the column was hidden, and no statement since of a
    table that was left out, if only until the ledger is made from the lake, or that got another
    name: its commits say that somebody has to consent."""
    rules, hidden = ShapeRules(exclude_columns=("ss*",)), "333333333"
    customers = Customers(mysql, database, rules)
    follower = customers.follower
    for name in ("followed", "left_out", "back", "named"):
        customers.copies(name)
        follower.shapes[f"{database}.{name}"] = rules
    follower.tables = [f"{database}.[cflbn]*"]
    customers.run()
    follower.tables = [f"{database}.[cfn]*"]
    renames = [
        f"alter table {name} rename column ssn to social"
        for name in ("followed", "left_out", "back")
    ]
    for statements in ((), (*renames, "rename table named to else_"), ()):
        customers.do(*statements, "update c set active = 1 - active")
        customers.run()
    follower.tables = [f"{database}.[cfb]*"]
    tables = [TableName(database, n) for n in ("followed", "left_out", "back", "else_")]
    for _ in range(2):
        captured = follower.ledger.cursors(SOURCE).captured
        assert captured is not None
        follower.lose_ledger()
        follower.recover(after_batch=captured.batch)
        customers.do("update c set active = 1 - active")
        customers.run()
        follower.tables = [f"{database}.*"]
        customers.run()
        for table in tables:
            if f"{SOURCE}/{database}/{table.name}" in follower.lake.tables:
                assert hidden not in str(customers.mirror(table.name))
            assert follower.states()[table].need is Need.CONSENT, table
            assert "your consent" in (follower.states()[table].hint or "")
    for table in tables:
        customers.order(OrderKind.RESUME, OrderRequest(table, "ada", "because"))
    customers.run()
    for table in tables:
        assert customers.mirror(table.name) == customers.rows(table.name)


def test_what_repeats_a_time_before_shows_the_same(mysql: MySqlStand, database: str) -> None:
    """A replay finds the files that a run wrote, and a comparison the rows, also structures."""
    customers = Customers(mysql, database, HIDING)
    customers.run()
    for number in range(2):
        customers.do(
            f"insert into c (id, email, ssn) values ({10 + number}, 'g', '777')",
            "update c set ssn = '1' where id = 1",
            f"update c set phone = '{number}' where id = 2",
            f"alter table c add n{number} varchar(9) default 'a', add x{number}_secret int",
            "update c set email = 'z' where id = 3",
        )
        customers.run()
    ports = customers.follower.ports()
    report = verify(ports)
    assert report.equal, report
    replayed = customers.follower.replay(commit=True)
    assert not replayed.has_differences, replayed
    structures = verify_schema(ports)
    assert not structures.history_disagreements + structures.server_disagreements
    shown = [
        {name: value for name, value in hiding(row).items() if not name.endswith("_secret")}
        for row in customers.rows()
    ]
    assert customers.mirror() == shown
