"""What people are told of shapes, on a real server: by a plan, a check and the history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lockstep import exits
from lockstep.commands.plan import exit_code, plan_lines, plan_values
from lockstep.commands.schema import schema_values
from lockstep.pipeline.check import Finding, SourceEvidence, preflight
from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.model.table_state import OrderKind
from lockstep.pipeline.run.orders import OrderRequest, plan_resume
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.run.status.schema_history import show_schema
from lockstep.pipeline.schema.treatments import Hash, read_mask
from lockstep.pipeline.shape.shape import ShapeRules
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.pipeline.values.shown import name_list
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE
from tests.positions.foreseen import carried_out, planned_supplies
from tests.shape.follower import ShapedFollower
from tests.shape.test_settings import Customers

HIDING = ShapeRules(
    exclude_columns=("ssn",),
    hash_columns={"email": Hash.EXACT},
    mask_columns={"phone": read_mask("last:4")},
    rows="id > 1",
)
KEPT = (
    "email, ssn, phone and rows that a condition leaves out are in plaintext in what was captured "
    "before: the run that reads it again clears them, once nobody needs them"
)


@pytest.fixture(scope="module")
def customers(mysql: MySqlStand) -> Iterator[Customers]:
    """Shown as they are by the first run."""
    with mysql.own_database() as name:
        made = Customers(mysql, name, ShapeRules())
        made.shape(None)
        made.run()
        yield made


def test_settings_are_told_before_and_after_they_are_followed(customers: Customers) -> None:
    """A plan says what is read again and what stays, and writes nothing; settings that cannot be
    followed, and another key, are told instead; the history says what became of each column."""
    table, follower = TableName(customers.name, "c"), customers.follower
    assert make_plan(follower.ports()).shapes == {}
    customers.shape(ShapeRules(exclude_columns=("id",)))
    refused = make_plan(follower.ports()).shapes[table]
    assert (refused.refusal_hint, "it belongs to a key" in refused.reason) == (
        "take 'id' out of exclude_columns",
        True,
    )
    customers.shape(HIDING)
    plan = make_plan(follower.ports())
    shape = plan.shapes[table]
    assert shape.refusal_hint is None
    assert shape.reason == "other settings apply to email, ssn, phone, so it is read again"
    [step] = plan.table_plans.plans[table].steps
    assert (step.price.rows, (step.price.bytes or 0) > 0, bool(plan.load_forecasts)) == (
        3,
        True,
        True,
    )
    assert shape.remains == KEPT
    assert to_json(plan_values(plan))["shapes"][str(table)]["remains"] == KEPT
    assert follower.ledger.schemas_at(SOURCE, shaped=True) == []

    done = carried_out(follower)
    assert planned_supplies(plan) == done.supplied
    assert make_plan(follower.ports()).shapes == {}
    told = show_schema(follower.ledger, SOURCE, table, None, follower.ports)
    values = to_json(schema_values(SOURCE, told, None))
    assert {column["name"]: column.get("shown") for column in values["columns"]} == {
        "id": None,
        "email": "hashed",
        "ssn": "left out",
        "phone": "masked last:4",
        "active": None,
        "kind": None,
    }
    shaping = follower.ports().shaping
    assert shaping.key is not None
    assert (values["row_condition"], values["key_fingerprint"]) == (
        "id > 1",
        shaping.key.fingerprint,
    )

    customers.shape(replace(HIDING, exclude_columns=("kind",), types=None))
    shape = make_plan(follower.ports()).shapes[table]
    assert shape.reason == (
        "the settings show more of ssn and other settings apply to kind, so it is read again"
    )

    customers.shape(HIDING)
    follower.key = b"another key that nobody guesses"
    assert isinstance(make_plan(follower.ports()).refusal, ConfigurationError)


def test_a_table_that_settings_stopped_says_what_brings_it_back(
    mysql: MySqlStand, database: str
) -> None:
    """Settings alone do not: a person resumes it, and hears first whether it would stop again."""
    made, table = Customers(mysql, database, ShapeRules()), TableName(database, "c")
    made.shape(None)
    made.run()
    made.shape(ShapeRules(exclude_columns=("id",)))
    made.run()
    state = made.follower.ledger.table_states(SOURCE)[table]
    hint = "take 'id' out of exclude_columns"
    assert state.hint == f"{hint}; then `lockstep resume {table} --reason …` brings it back"
    asked = OrderRequest(table, "ann", "settings")
    refused = plan_resume(made.follower.ports(), asked).sentence
    assert refused.startswith("it would be quarantined again: ")
    assert refused.endswith(f"First {hint}")
    made.shape(HIDING)
    assert "quarantined" not in plan_resume(made.follower.ports(), asked).sentence


def refusals(follower: ShapedFollower) -> list[Finding]:
    """What a check refuses of what settings show."""
    ports = follower.ports()
    evidence = SourceEvidence(
        ports.server.survey(),
        ports.source,
        shaping=ports.shaping,
    )
    found = preflight(ports.server, evidence, {})
    return [one for one in found if (one.topic, one.level) == ("what is shown", "refusal")]


def test_a_check_sees_the_columns_of_the_server(customers: Customers) -> None:
    """Of the tables of which the settings say something; a wrong name is told with the block."""
    customers.shape(ShapeRules(exclude_columns=("sn",), rows="kind > 'a'"))
    assert {one.subject: one.sentence for one in refusals(customers.follower)} == {
        f"{customers.name}.c": "its condition cannot be evaluated: column 'kind' is ENUM, whose "
        "order is not that of its texts",
        f'[[sources.table]] match = ["{customers.name}.c"]': "exclude_columns names 'sn', and no "
        "column of its tables has or had that name",
    }


COMPUTED = (
    "create table p (id int primary key, born date, age int as (year('2026-01-01') - year(born)), "
    "older int as (age + 1), name varchar(9))"
)
PERSONS = ShapeRules(mask_columns={"born": read_mask("year")})


def test_a_check_refuses_all_columns_that_show_hidden_ones_at_once(mysql: MySqlStand) -> None:
    """Also one that is computed from another computed one. A run, whose rows come from the log
    alone, shows none of them."""
    with mysql.own_database() as name:
        mysql.execute(COMPUTED, database=name)
        follower = ShapedFollower(mysql, [f"{name}.*"], {f"{name}.p": PERSONS})
        sentence = (
            "hidden values would be shown: column 'age' is computed from 'born'; "
            "column 'older' is computed from 'age'"
        )
        hint = "add 'age', 'older' to exclude_columns or hash_columns of this table"
        [found] = refusals(follower)
        assert (found.subject, found.sentence, found.hint) == (f"{name}.p", sentence, hint)
        follower.run()
        mysql.execute("insert into p (id, born) values (1, '1970-05-05')", database=name)
        follower.run()
        state = follower.states()[TableName(name, "p")]
        assert (state.reason, (state.hint or "").partition("; ")[0]) == (sentence, hint)
        assert f"{name}.p" not in follower.lake.tables
        follower.shapes[f"{name}.p"] = replace(PERSONS, exclude_columns=("age", "older"))
        follower.order(OrderKind.RESUME, TableName(name, "p"))
        follower.run()
        assert follower.mirror(f"{name}.p") == [{"id": 1, "born": 1970, "name": None}]


def test_a_table_whose_structure_is_unknown_is_only_to_be_read(
    mysql: MySqlStand, database: str
) -> None:
    """The log has rows of it from before a statement, and its settings can be applied."""
    customers = Customers(mysql, database, HIDING, start="earliest")
    customers.purge_log()
    customers.do("insert into c (id) values (10)", "alter table c add more int")
    customers.run()
    state = customers.follower.states()[TableName(database, "c")]
    assert "its structure before them was not recorded" in (state.reason or "")
    assert state.hint == f"`lockstep resume {database}.c --reason …` reads it from the source"


FORESEEN = {
    "to a name without settings": ("rename table {c} to {c}_else",),
    "a hidden column": ("alter table {c} rename column phone to telephone",),
    "computed from a hidden column": (
        "alter table {c} add tail varchar(9) as (right(phone, 2)) virtual",
    ),
    "a hidden column, after what has the table read again": (
        "alter table {c} drop primary key, add primary key (id, active)",
        "alter table {c} rename column phone to telephone",
    ),
    "from a table that is not captured": ("rename table {other}.x to fromhr",),
    "exchanged rows": (
        "create table parts (id int, ssn char(9)) partition by range (id) "
        "(partition a values less than (9))",
        "alter table parts exchange partition a with table bare",
    ),
}


def test_a_plan_foresees_tables_that_would_show_more(mysql: MySqlStand) -> None:
    """The run quarantines the tables that the plan before it names, for the same reason."""
    with mysql.own_database() as name, mysql.own_database() as other:
        mysql.execute(f"create table {other}.x (id int primary key, ssn char(9))")
        rules, hides_ssn = replace(HIDING, rows=None), ShapeRules(exclude_columns=("ssn",))
        customers = Customers(mysql, name, rules)
        customers.do("create table bare (id int, ssn char(9))")
        follower = customers.follower
        follower.shapes |= {f"{other}.x": hides_ssn, f"{name}.parts": hides_ssn}
        tables = [f"c{number}" for number in range(len(FORESEEN))]
        customers.copies(*tables)
        follower.shapes |= {f"{name}.{table}": rules for table in tables}
        customers.run()
        for table, statements in zip(tables, FORESEEN.values(), strict=True):
            customers.do(*(statement.format(c=table, other=other) for statement in statements))
        plan = make_plan(follower.ports())
        assert plan.reading is not None
        foreseen = {stopped.table: stopped.reason for stopped in plan.reading.quarantines}
        first_line = next(plan_lines(SOURCE, plan))
        assert exit_code(plan) == exits.QUARANTINED
        customers.run()
        states = follower.states().items()
        stopped = {table: state.reason for table, state in states if state.has_stopped}
        expected = {"c0_else", "c1", "c2", "c3", "fromhr", "parts", "bare"}
        assert {table.name for table in stopped} == expected
        assert (foreseen, plan.reading.rereads) == (stopped, {})
        assert first_line == (
            f"{SOURCE}: the next run would quarantine {name_list(sorted(stopped))}, and go on with "
            "other tables"
        )
        again = make_plan(follower.ports())
        assert exit_code(again) == exits.QUARANTINED
        assert "stopped" in next(plan_lines(SOURCE, again))


def test_a_table_that_waits_to_be_read_does_not_show_more(mysql: MySqlStand, database: str) -> None:
    """A run with an end leaves the table to the next run, whose log renames a hidden column, as a
    plan foresees: it waits for a person, also if that run has an end as well."""
    customers = Customers(mysql, database, replace(HIDING, rows=None))
    customers.run()
    customers.do("alter table c drop primary key, add primary key (id, active)")
    customers.follower.run("latest")
    customers.do("alter table c rename column phone to telephone")
    plan = make_plan(customers.follower.ports())
    assert plan.new_quarantines == [TableName(database, "c")]
    assert exit_code(plan) == exits.QUARANTINED
    customers.follower.run("latest")
    for _ in range(2):
        assert "'telephone' shows more" in (customers.stopped() or "")
        customers.run()
    files = [rows.to_pylist() for rows in customers.follower.lake.files.values()]
    assert "030123456" not in str([customers.mirror(), files])
