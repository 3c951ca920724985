"""Which differences between the history and the server make rows mean something else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.run.dump.structure_proof import decoding_differences
from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.rows import row_structure, schema_of
from tests.schema.schemas_made import MARIADB, MYSQL, table

TABLES = (
    ("id int primary key, p point, g geometry, t tinytext, j json, f float(7,2)", MYSQL),
    ("id int not null, a varchar(9) not null, unique b (id), unique a (a)", MYSQL),
    ("id int, e enum('x','y') charset latin1, s set('a') , b bit(3), y year", MYSQL),
    ("id int primary key, u uuid, i inet6, t text, unique (t)", MARIADB),
)


@pytest.mark.parametrize(("columns", "context"), TABLES)
def test_what_the_log_tells_of_a_table_is_no_difference(
    columns: str, context: StatementContext
) -> None:
    """It tells less than a statement: no default, one key, the family of a type."""
    made = table(f"create table t ({columns})", context)
    told = schema_of(row_structure(made))
    assert decoding_differences(made, made, with_defaults=True) == ()
    assert decoding_differences(told, made, from_table_map=True) == ()


def test_a_key_counts_that_the_mirror_has() -> None:
    """Another key may come or go; a table without a key in the history has none to lose."""
    both = table("create table t (id int not null, a int not null, unique i (id), unique u (a))")
    by_id = table("create table t (id int not null, a int not null, unique i (id))")
    by_a = table("create table t (id int not null, a int not null, primary key (a))")
    bare = table("create table t (id int not null, a int not null)")
    assert decoding_differences(both, by_id) == ()
    assert decoding_differences(bare, by_a) == ()
    assert decoding_differences(by_id, by_a) == ("key: (id), (a)",)
    assert decoding_differences(both, bare) == ("key: (id), none",)


def test_defaults_count_where_they_were_used() -> None:
    """Constants alone: of an expression each server prints its own form."""
    before = table("create table t (id int primary key, a int default 1, b int default (1 + 1))")
    after = table("create table t (id int primary key, a int default 2, b int default (2 + 2))")
    assert decoding_differences(before, after) == ()
    assert decoding_differences(before, after, with_defaults=True) == (
        "column a default: '1', '2'",
    )


def test_a_key_that_mariadb_hashes_has_a_column_in_each_row() -> None:
    """Which no list of columns shows."""
    hashed = table("create table t (id int primary key, t text, unique (t))", MARIADB)
    plain = replace(hashed, keys=hashed.keys[:1])
    assert decoding_differences(plain, hashed) == ("UNIQUE keys that are hashed: 0, 1",)
