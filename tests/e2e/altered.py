"""Tables, and statements that change their structure between rows.

Belongs here: SQL alone, in the order in which it runs. Does not: what a run makes of it
(`test_following`). Each table is there for one change, and has rows before, between and
behind it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

DATABASE: Final = "following"

FIRST: Final = (
    f"create database {DATABASE} character set utf8mb4",
    f"use {DATABASE}",
    "create table added (id int primary key, v varchar(10))",
    "insert into added values (1, 'x'), (2, null), (3, 'z')",
    "create table dated (id int primary key)",
    "insert into dated values (1), (2)",
    "create table named (id int primary key, a int, b int, old varchar(10))",
    "insert into named values (1, 10, 20, 'one'), (2, 11, 21, 'two'), (3, 12, 22, 'three')",
    "create table widened (id smallint primary key, n tinyint, f float, d decimal(6, 2),"
    " s varchar(10), u int unsigned)",
    "insert into widened values (1, 127, 1.5, 1234.56, 'abc', 4294967295), (2, -1, 0, 0, '', 0)",
    "create table kept (id int primary key, v varchar(10), n int)",
    "insert into kept values (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)",
    "create table again (id int primary key, v int)",
    "insert into again values (1, 1), (2, 2)",
    "create table emptied (id int primary key, v int)",
    "insert into emptied values (1, 1), (2, 2)",
    "create table gone (id int primary key, v int)",
    "insert into gone values (1, 1), (2, 2)",
    "create table reborn (id int primary key, v int)",
    "insert into reborn values (1, 1), (2, 2)",
    "create table this (id int primary key, v varchar(10))",
    "insert into this values (1, 'this'), (2, 'this')",
    "create table that (id int primary key, n int)",
    "insert into that values (2, 2), (7, 7)",
    "create table rekeyed (id int primary key, n int not null)",
    "insert into rekeyed values (1, 11), (2, 12)",
    "create table computed (id int primary key, v int)",
    "insert into computed values (1, 1), (2, null)",
    "create table keyless (v varchar(10), n int)",
    "insert into keyless values ('a', 1), ('a', 1), ('b', 2), (null, null)",
    "create table uniquely (code varchar(10) not null, v int, unique key (code))",
    "insert into uniquely values ('a', 1), ('b', 2), ('c', 3)",
    "create table sized (id int primary key, e enum('s', 'm'), t set('x', 'y'))",
    "insert into sized values (1, 's', 'x'), (2, 'm', 'x,y')",
    "create table converted (id int primary key, v varchar(20)) character set latin1",
    "insert into converted values (1, 'Zoë'), (2, 'plain')",
    "create table shrunk (id int primary key, v varchar(20))",
    "insert into shrunk values (1, 'abc'), (2, 'de')",
    "create table parts (id int primary key, v int) partition by range (id)"
    " (partition low values less than (10), partition high values less than maxvalue)",
    "insert into parts values (1, 1), (2, 2), (11, 11), (12, 12)",
    "create table rounded (id int primary key)",
    "insert into rounded values (1), (2)",
    "create table spaced (id int primary key)",
    "insert into spaced values (1), (2)",
)
"""What is there when a project begins."""

ADDED: Final = (
    "update added set v = 'before' where id = 1",
    "set time_zone = '+02:00', timestamp = 1767225600.123456",
    "alter table added add column literal int not null default 7,"
    " add column ahead varchar(5) default 'hi' first, add column nothing date",
    "alter table added add column implied int not null after v,"
    " add column word varchar(3) not null, add column day datetime(3) not null"
    " default current_timestamp(3)",
    "alter table added add column stamp timestamp(6) not null default current_timestamp(6)",
    "set timestamp = default, time_zone = default",
    "insert into added (id, v, implied, word) values (4, 'new', 4, 'abc')",
    "update added set v = 'behind', ahead = null where id = 2",
)

DATED: Final = (
    "set time_zone = 'SYSTEM'",
    "alter table dated add column clock datetime not null default current_timestamp",
    "alter table dated add column day timestamp not null default '2024-05-06 07:08:09'",
    "insert into dated (id) values (3)",
    "delete from dated where id = 2",
)
"""Moments in the zone of the server, which no log names: the table is read anew."""

NAMED: Final = (
    "update named set a = a + 100 where id = 1",
    "alter table named rename column a to b, rename column b to a",
    "update named set a = a + 1000 where id = 2",
    "alter table named change column old new varchar(30) first",
    "alter table named modify column b int after id",
    "insert into named (id, a, b, new) values (4, 1, 2, 'four')",
    "delete from named where id = 3",
)

WIDENED: Final = (
    "update widened set n = 1 where id = 1",
    "alter table widened modify n smallint, modify f double, modify d decimal(12, 2),"
    " modify s varchar(300), modify u bigint unsigned",
    "insert into widened values (3, 30000, 1e300, 1234567890.12, repeat('x', 300),"
    " 18446744073709551615)",
    "alter table widened modify id bigint, modify n bigint",
    "insert into widened values (9000000000, 9000000000, 1, 1, 's', 1)",
    "update widened set s = 'again' where id = 2",
)

KEPT: Final = (
    "alter table kept drop column v",
    "update kept set n = 20 where id = 2",
    "insert into kept values (4, 4)",
    "delete from kept where id = 3",
)

AGAIN: Final = (
    "update again set v = 10 where id = 1",
    "alter table again drop column v",
    "insert into again values (3)",
    "alter table again add column v varchar(10) default 'text'",
    "update again set v = 'behind' where id = 2",
    "insert into again values (4, 'four')",
)

EMPTIED: Final = (
    "insert into emptied values (3, 3)",
    "truncate table emptied",
    "insert into emptied values (1, 100), (9, 9)",
    "truncate table emptied",
    "insert into emptied values (9, 90)",
    "update emptied set v = v + 1",
)

TABLES_THEMSELVES: Final = (
    "insert into gone values (3, 3)",
    "drop table gone",
    "drop table reborn",
    "create table reborn (id int primary key, v int)",
    "insert into reborn values (2, 200)",
    "create table fresh (id int primary key, e enum('a', 'b'))",
    "insert into fresh values (1, 'b')",
    "create table alike like fresh",
    "alter table alike add column n bigint default 3",
    "insert into alike (id, e) values (2, 'a')",
    "create table nothing_yet (id int primary key)",
    "update this set v = 'first' where id = 1",
    "rename table this to other, that to this, other to that",
    "insert into this values (8, 8)",
    "update that set v = 'last' where id = 2",
    "alter table rekeyed drop primary key, add primary key (n, id)",
    "insert into rekeyed values (1, 13)",
    "update rekeyed set id = 5 where n = 12",
)

COLUMNS_OF_MANY_KINDS: Final = (
    "alter table computed add column twice int as (v * 2) stored,"
    " add column thrice int as (v * 3) virtual",
    "insert into computed (id, v) values (3, 3)",
    "delete from keyless where v = 'a' limit 1",
    "alter table keyless add column more int not null default 5",
    "insert into keyless values ('c', 3, 6), ('a', 1, 5)",
    "update keyless set n = 9 where v = 'b'",
    "delete from keyless where v is null",
    "update uniquely set v = 10 where code = 'a'",
    "alter table uniquely add column w int default 1",
    "update uniquely set code = 'z' where code = 'b'",
    "delete from uniquely where code = 'c'",
    "insert into uniquely values ('c', 30, 2)",
    "alter table sized modify e enum('s', 'm', 'l'), modify t set('x', 'y', 'z')",
    "insert into sized values (3, 'l', 'x,z')",
    "update sized set e = 'l' where id = 1",
    "alter table converted convert to character set utf8mb4",
    "insert into converted values (3, '😀')",
    "update converted set v = 'žluť' where id = 2",
)

BY_POLICY: Final = (
    "insert into shrunk values (3, 'f')",
    "alter table shrunk modify v varchar(5)",
    "insert into shrunk values (4, 'g')",
    "insert into parts values (3, 3)",
    "alter table parts truncate partition low",
    "insert into parts values (1, 100), (13, 13)",
)
"""What `on_rewrite` decides about: tables `shrunk` and `parts`."""

AT_THE_MERGE: Final = (
    "alter table rounded add column f float(5, 2) default 1.239",
    "insert into rounded values (3, 1)",
    "delete from rounded where id = 2",
    "alter table spaced add column `order items` int",
    "insert into spaced values (3, 3)",
)
"""Captured, and then the mirror cannot follow by its own means: only the source rounds that value,
and Delta takes the name by column mapping alone."""

THEN: Final = (
    f"use {DATABASE}",
    *(ADDED + DATED + NAMED + WIDENED + KEPT + AGAIN + EMPTIED),
    *(TABLES_THEMSELVES + COLUMNS_OF_MANY_KINDS + BY_POLICY + AT_THE_MERGE),
)

AFTERWARDS: Final = (
    f"use {DATABASE}",
    "update added set implied = implied + 1",
    "update named set a = 0 where id = 2",
    "update widened set u = u - 1 where id = 3",
    "update kept set n = n + 1",
    "insert into reborn values (3, 3)",
    "insert into nothing_yet values (1)",
    "update this set n = n + 1",
    "delete from that where id = 1",
    "delete from rekeyed where n = 11",
    "insert into keyless values ('a', 1, 5)",
    "insert into uniquely values ('d', 4, 4)",
    "update shrunk set v = 'h' where id = 1",
    "delete from parts where id = 13",
    "alter table spaced rename column `order items` to items",
    "insert into spaced values (4, 4)",
    "insert into rounded values (4, 1.005)",
)
"""Ordinary rows, when all that is over, of tables whose keys, names or rows went other ways."""

OTHERS: Final = (
    *("dated", "emptied", "nothing_yet", "alike", "rekeyed", "computed", "uniquely", "sized"),
    *("converted", "rounded"),
)
"""Tables whose mirrors change by no step that another's does not."""


def without(tables: Collection[str], statements: tuple[str, ...]) -> tuple[str, ...]:
    """Those that name none of the tables."""
    return tuple(one for one in statements if not {*tables} & {*re.findall(r"\w+", one)})
