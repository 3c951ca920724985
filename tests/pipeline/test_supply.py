"""How a table is brought to a place: every state, wish and reach has a plan, and which one."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.model.table_state import Supplier
from lockstep.pipeline.supply import (
    OLDER_REASON,
    RULES,
    ColumnsFromServer,
    FormerName,
    FromChangelog,
    FromLog,
    FromMirror,
    FromPast,
    Have,
    Plan,
    RowsFromServer,
    SupplyStanding,
    Want,
    plan,
    supply_after_rename,
)
from lockstep.pipeline.values.errors import Need
from lockstep.pipeline.values.policies import (
    Deletes,
    DroppedColumns,
    DroppedTables,
    ForeignKeys,
    LakePolicies,
    OnRewrite,
    Readers,
    Truncates,
)
from tests.pages.supply_rules import BASED, CHANGELOG, COLUMNS, LOAD, LOG, PAST, Reached
from tests.pages.supply_rules import TABLE as ORDERS

WHOLE = replace(PAST, is_whole=True)
NEW = Have(ORDERS, SupplyStanding.NEW, reason="a reason")
LATE = Want(supplier=Supplier.LOG)
STOPPED = Have(ORDERS, SupplyStanding.STOPPED, reason="a reason")


def kinds(found: Plan) -> list[type]:
    return [type(step.supply) for step in found.steps]


reaches = st.builds(
    Reached,
    log=st.sampled_from([None, LOG, "it was purged"]),
    changelog=st.sampled_from([CHANGELOG, "it has a gap"]),
    earlier_version=st.sampled_from([BASED, "no version is left"]),
    has_whole_mirror=st.booleans(),
    columns=st.sampled_from([COLUMNS, "there are more"]),
    past=st.sampled_from([PAST, replace(PAST, is_whole=True), "it was purged"]),
)
haves = st.builds(
    Have,
    table=st.just(ORDERS),
    standing=st.sampled_from(SupplyStanding),
    needs=st.frozensets(st.sampled_from(Need)),
    reason=st.just("a reason"),
    load=st.sampled_from([None, LOAD]),
)
wants = st.builds(
    Want,
    rewrite=st.booleans(),
    supplier=st.sampled_from([None, *Supplier]),
    has_structure=st.booleans(),
)


@given(haves, wants, reaches)
def test_every_table_has_a_plan(have: Have, want: Want, reach: Reached) -> None:
    """Whatever there is, is wanted and is reached: the log comes first and once, at most one
    supply comes besides it, and the server is asked only for what nothing else has, and never
    where a person asks for the changelog: then the table waits, and says why."""
    found = plan(have, want, reach)
    if found.reason_to_wait is not None:
        assert want.supplier is Supplier.CHANGELOG
        assert plan(have, replace(want, supplier=None), reach).reads_server
        return
    assert want.supplier is not Supplier.CHANGELOG or not found.reads_server
    assert found.rule in {rule.name for rule in RULES}
    assert [kind for kind in kinds(found)[1:] if kind is FromLog] == []
    assert len(found.steps) <= 2
    assert all(step.reason for step in found.steps if not isinstance(step.supply, FromLog))
    if found.reads_server:
        lacking = (
            want.rewrite
            or have.needs
            or have.load is not None
            or have.standing in (SupplyStanding.NEW, SupplyStanding.LOADING)
        )
        assert lacking or isinstance(reach.log, str) or isinstance(reach.changelog, str)
    if have.needs & {Need.ROWS, Need.SHAPE, Need.LOG, Need.MIRROR}:
        rewritten = want.rewrite and found.rule == "written again"
        assert rewritten or isinstance(found.steps[-1].supply, RowsFromServer)


@given(haves, wants, reaches)
def test_a_run_with_a_fixed_end_reads_no_rows(have: Have, want: Want, reach: Reached) -> None:
    """A table that needs rows of the server waits, and says why; any other goes on as it would."""
    found = plan(have, want, reach)
    later = found.without_reading_rows
    assert not later.reads_server
    assert later == found if not found.reads_server else later.reason_to_wait is not None


def lacking(need: Need) -> Have:
    return replace(STOPPED, needs=frozenset({need}))


def rows(reason: str) -> list[tuple[type, str]]:
    return [(RowsFromServer, reason)]


CASES: list[tuple[str, Have, Want, Reached, list[tuple[type, str]]]] = [
    ("nothing is lacking", STOPPED, Want(), Reached(), []),
    ("the log", STOPPED, Want(), Reached(LOG), [(FromLog, "")]),
    (
        "its past",
        NEW,
        LATE,
        Reached(past=PAST),
        [(FromPast, PAST.reason), (RowsFromServer, "a reason")],
    ),
    ("its whole past", NEW, LATE, Reached(past=WHOLE), [(FromPast, PAST.reason)]),
    ("no past", NEW, LATE, Reached(), rows("a reason")),
    ("the log is gone", STOPPED, Want(), Reached("it was purged"), rows("it was purged")),
    ("rows", lacking(Need.ROWS), Want(), Reached(LOG), rows("a reason")),
    (
        "columns",
        lacking(Need.COLUMNS),
        Want(),
        Reached(LOG),
        [(FromLog, ""), (ColumnsFromServer, "a reason")],
    ),
    (
        "too many columns",
        lacking(Need.COLUMNS),
        Want(),
        Reached(LOG, columns="there are more"),
        [(FromLog, ""), (RowsFromServer, "there are more")],
    ),
    (
        "columns, and a structure that a person gave",
        lacking(Need.COLUMNS),
        Want(has_structure=True),
        Reached(LOG),
        rows("a reason"),
    ),
    (
        "columns of a mirror that is not whole",
        lacking(Need.COLUMNS),
        Want(),
        Reached(LOG, has_whole_mirror=False),
        rows("a reason"),
    ),
    (
        "a mirror that refused a write",
        lacking(Need.MIRROR),
        Want(),
        Reached(LOG),
        [(FromLog, ""), (RowsFromServer, "its mirror is written again: a reason")],
    ),
    (
        "a reload from the changelog",
        STOPPED,
        Want(rewrite=True, author="ada"),
        Reached(LOG, CHANGELOG),
        [(FromLog, ""), (FromChangelog, "from its changelog, since batch 7")],
    ),
    (
        "a reload from the changelog alone, which begins with a version of the mirror",
        STOPPED,
        Want(rewrite=True, supplier=Supplier.CHANGELOG, author="ada"),
        Reached(LOG, earlier_version=BASED),
        [
            (FromLog, ""),
            (FromChangelog, "from version 5 of shop/shop/orders and its changelog, since batch 9"),
        ],
    ),
    (
        "a reload that nobody wants from an earlier version",
        STOPPED,
        Want(rewrite=True, author="ada"),
        Reached(LOG, earlier_version=BASED),
        rows("ada has it reloaded, and it has a gap"),
    ),
    (
        "a reload from the server",
        STOPPED,
        Want(rewrite=True, author="ada"),
        Reached(LOG),
        rows("ada has it reloaded, and it has a gap"),
    ),
    (
        "a reload that a person wants from the server",
        STOPPED,
        Want(rewrite=True, supplier=Supplier.SOURCE, author="ada"),
        Reached(LOG, CHANGELOG),
        rows("ada has it reloaded from the source"),
    ),
    (
        "less is shown",
        lacking(Need.SHAPE),
        Want(),
        Reached(LOG),
        rows("less of it is shown than when it stopped"),
    ),
    ("a reading goes on", replace(STOPPED, load=LOAD), Want(), Reached(LOG), rows("a reason")),
    ("new", Have(ORDERS, SupplyStanding.NEW), Want(), Reached(), rows(OLDER_REASON)),
    (
        "a reading that was void",
        replace(STOPPED, standing=SupplyStanding.LOADING),
        Want(),
        Reached(),
        rows("a reason"),
    ),
    (
        "part of the log was lost",
        replace(STOPPED, standing=SupplyStanding.FOLLOWING, needs=frozenset({Need.LOG})),
        Want(),
        Reached(),
        rows("part of the log with its changes is gone"),
    ),
]


@pytest.mark.parametrize(
    ("have", "want", "reach", "steps"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_what_supplies_the_rest(
    have: Have, want: Want, reach: Reached, steps: list[tuple[type, str]]
) -> None:
    found = plan(have, want, reach)
    assert [(type(step.supply), step.reason) for step in found.steps] == steps


def test_every_rule_decides_some_case() -> None:
    assert {plan(*case[1:4]).rule for case in CASES} == {rule.name for rule in RULES}


FORMER = FormerName(ORDERS, is_captured=True)
SOFT = LakePolicies(deletes=Deletes.SOFT)
IGNORED = LakePolicies(truncates=Truncates.IGNORE)


@pytest.mark.parametrize(
    ("former", "why"),
    [
        (replace(FORMER, is_captured=False), "not followed"),
        (replace(FORMER, continues_log=False), "does not begin"),
        (replace(FORMER, may_be_temporary=True), "temporary table"),
        (replace(FORMER, reason_incomplete="its {rows} are read"), "its {rows} are read"),
        (replace(FORMER, has_mirror=False), "no mirror"),
        (replace(FORMER, is_shown_alike=False), "show it otherwise"),
        (replace(FORMER, policies=SOFT), "other policies"),
        (replace(FORMER, policies=IGNORED, new_policies=IGNORED), "nothing marks them"),
    ],
)
def test_rows_of_another_name_are_copied_unless(former: FormerName, why: str) -> None:
    """Each reason by itself is enough to read the table from MySQL."""
    assert why in str(supply_after_rename(former))
    assert supply_after_rename(FORMER) == FromMirror(ORDERS)
    assert supply_after_rename(replace(FORMER, policies=SOFT, new_policies=SOFT)) == FromMirror(
        ORDERS
    )


OTHER: dict[str, object] = {
    "on_rewrite": OnRewrite.RESNAPSHOT,
    "dropped_columns": DroppedColumns.DROP,
    "dropped_tables": DroppedTables.DROP,
    "deletes": Deletes.SOFT,
    "truncates": Truncates.IGNORE,
    "readers": Readers.ANY,
    "foreign_keys": ForeignKeys.RESNAPSHOT,
    "updated_columns": True,
    "stamps": ("_sequence",),
    "cluster_by": ("id",),
}
"""Each policy with a value that is not its default."""


def test_rows_are_copied_only_under_the_same_policies_for_rows() -> None:
    """A policy that is not known to leave rows and columns alone has the table read from MySQL."""
    assert OTHER.keys() == {field.name for field in fields(LakePolicies)}
    mattering = {
        name
        for name, value in OTHER.items()
        if "other policies"
        in str(supply_after_rename(replace(FORMER, new_policies=LakePolicies(**{name: value}))))  # type: ignore[arg-type]
    }
    assert mattering == {"deletes", "truncates", "dropped_columns"}
