"""What people are told of shapes, on a real server: by a plan, a check and the history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lockstep.commands.plan import plan_values
from lockstep.commands.schema import schema_values
from lockstep.pipeline.check import SourceEvidence, preflight
from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.run.orders.table_orders import OrderRequest, plan_resume
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.run.status.schema_history import show_schema
from lockstep.pipeline.schema.history import Hash, read_mask
from lockstep.pipeline.shape.shape import ShapeRules
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE
from tests.positions.foreseen import carried_out, planned_supplies
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
    assert (refused.refused, "it belongs to a key" in refused.reason) == (
        "take 'id' out of exclude_columns",
        True,
    )
    customers.shape(HIDING)
    plan = make_plan(follower.ports())
    shape = plan.shapes[table]
    assert shape.refused is None
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
    assert (values["rows"], values["key"]) == ("id > 1", shaping.key.fingerprint)

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


def test_a_check_sees_the_columns_of_the_server(customers: Customers) -> None:
    """Of the tables of which the settings say something; a wrong name is told with the block."""
    customers.shape(ShapeRules(exclude_columns=("sn",), rows="kind > 'a'"))
    ports = customers.follower.ports()
    looked = SourceEvidence(
        ports.server.survey(),
        ports.source.patterns,
        table_settings=ports.source.table_settings,
        shaping=ports.shaping,
    )
    found = {
        one.subject: one.sentence
        for one in preflight(ports.server, looked, {})
        if one.topic == "what is shown" and one.level == "refusal"
    }
    assert found == {
        f"{customers.name}.c": "its condition cannot be evaluated: column 'kind' is ENUM, whose "
        "order is not that of its texts",
        f'[[sources.table]] match = ["{customers.name}.c"]': "exclude_columns names 'sn', and no "
        "column of its tables has or had that name",
    }
