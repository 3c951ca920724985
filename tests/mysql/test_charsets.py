"""The servers' own answers, for every code of every character set.

A server that has no character for a code shows `?`, drops the end, answers NULL (MySQL,
ill-formed) or UTF-8 of a surrogate (MariaDB): for us all of that is undecodable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from pymysql.cursors import Cursor

from lockstep.pipeline.binlog.values.charset_tables import SINGLE_BYTE
from lockstep.pipeline.binlog.values.charsets import (
    CHARACTER_SETS,
    is_ambiguous,
    noncanonical_codes,
    single_byte_characters,
    text_decoder,
)
from tests.chance import by_chance
from tests.fix_mysql import MySqlStand

Limits = tuple[int, int]

ALL: Limits = (0x00, 0xFF)
HIGH: Limits = (0x80, 0xFF)
DIGITS: Limits = (0x30, 0x39)
QUESTION_MARKS = {"ucs2": b"\0?", "utf16": b"\0?", "utf16le": b"?\0", "utf32": b"\0\0\0?"}
MYSQL_ALONE = {"gb18030"}
LEADS = 24
"""First bytes of two of which every run tries all that may follow; the soak tries all of them."""


@dataclass(frozen=True)
class Codes:
    """Codes put to a server: a prefix in hexadecimal, then two bytes between these limits."""

    charset: str
    prefix: str = ""
    lead: Limits = HIGH
    trail: Limits = ALL

    @property
    def leads(self) -> range:
        return range(self.lead[0], self.lead[1] + 1)

    def count(self, leads: Sequence[int]) -> int:
        """How many there are that begin with these of `leads`."""
        return len(leads) * (self.trail[1] - self.trail[0] + 1)


CODES = [
    *map(Codes, ["big5", "cp932", "euckr", "gb2312", "gb18030", "gbk", "sjis"]),
    *map(Codes, ["eucjpms", "ujis", "utf8mb3", "utf8mb4"]),
    *(Codes(name, lead=ALL) for name in ("ucs2", "utf16", "utf16le")),
    *(Codes(name, "8f", trail=HIGH) for name in ("eucjpms", "ujis")),
    *(Codes(name, lead, trail=HIGH) for name in ("utf8mb3", "utf8mb4") for lead in ("e0", "ed")),
    *(Codes("utf8mb3", lead, trail=HIGH) for lead in ("e6", "ef", "f09f")),
    *(Codes("utf8mb4", lead, trail=HIGH) for lead in ("e6", "ef", "f08f", "f09f", "f48f", "f490")),
    # The pair of codes swapped in 2005, the end of the BMP, plane 1, the end of plane 16.
    *(Codes("gb18030", lead, trail=DIGITS) for lead in ("8130", "8135", "8431", "8432")),
    *(Codes("gb18030", lead, trail=DIGITS) for lead in ("9030", "e332", "e333", "fe39")),
    Codes("utf16", "d83d", lead=(0xD0, 0xFF)),
    Codes("utf16", "de00", lead=(0xD0, 0xFF)),
    Codes("utf16le", "3dd8", lead=ALL, trail=(0xD0, 0xFF)),
    Codes("utf32", "0000", lead=ALL),
    Codes("utf32", "0010", lead=(0xFE, 0xFF)),
    Codes("utf32", "0011", lead=(0x00, 0x01)),
]


@dataclass(frozen=True)
class Asked:
    """A server with a table `byte` of all bytes."""

    name: str
    cursor: Cursor

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        self.cursor.execute(query)
        return list(self.cursor.fetchall())

    def answers(self, codes: Codes, leads: Sequence[int]) -> Iterator[tuple[bytes, str]]:
        """Each code with these leads and its text as the server writes it, in one query: a row per
        lead byte, for speed."""
        code = f"concat(x'{codes.prefix}', one.b, two.b)"
        chosen = ", ".join(f"x'{lead:02x}'" for lead in leads)
        rows = self.rows(
            f"""
            select one.b,
                   group_concat(hex(two.b), ' ', ifnull({conversion(code, codes.charset)}, ''))
              from byte one join byte two
             where one.b in ({chosen})
               and two.b between x'{codes.trail[0]:02x}' and x'{codes.trail[1]:02x}'
             group by one.b
            """
        )
        for first, listed in rows:
            before = codes.prefix + first.hex()
            for entry in listed.split(","):
                trail, _, answer = entry.partition(" ")
                yield bytes.fromhex(before + trail), answer


@contextmanager
def asking(name: str, stand: MySqlStand) -> Iterator[Asked]:
    with (
        stand.own_database() as database,
        stand.connect(database) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("create table byte (b varbinary(1) primary key)")
        every = ", ".join(f"(x'{byte:02x}')" for byte in range(256))
        cursor.execute(f"insert into byte values {every}")
        cursor.execute("set session group_concat_max_len = 1 << 20")
        yield Asked(name, cursor)


@pytest.fixture(scope="module")
def servers(mysql: MySqlStand, mariadb: MySqlStand) -> Iterator[list[Asked]]:
    with asking("mysql", mysql) as ours, asking("mariadb", mariadb) as theirs:
        yield [ours, theirs]


def conversion(code: str, charset: str) -> str:
    """SQL for the text of a code as hexadecimal UTF-8; NULL where its end is dropped."""
    own = f"convert({code} using {charset})"
    text = f"convert({own} using utf8mb4)"
    return f"if(char_length({own}) = char_length({text}), hex({text}), null)"


def said(code: bytes, charset: str, answer: str | None) -> str | None:
    """A server's answer as text, None where it means that there is none."""
    try:
        text = bytes.fromhex(answer or "").decode()
    except UnicodeDecodeError:
        return None
    if "?" not in text:
        return text or None
    mark = QUESTION_MARKS.get(charset, b"?")
    units = [code[at : at + len(mark)] for at in range(0, len(code), len(mark))]
    return text if text.count("?") == units.count(mark) else None


def ours(code: bytes, charset: str) -> str | None:
    try:
        return text_decoder(charset)(code)
    except UnicodeDecodeError:
        return None


@pytest.mark.servers("newest", "8.0")
def test_every_character_set_of_the_server_is_read(servers: list[Asked]) -> None:
    """All but `binary`, which is no text; MariaDB has no gb18030. MySQL 8.0.15 calls utf8mb3
    utf8."""
    for asked in servers:
        listed = asked.rows("select character_set_name from information_schema.character_sets")
        expected = CHARACTER_SETS - (MYSQL_ALONE if asked.name == "mariadb" else set())
        assert expected | {"binary"} == {"utf8mb3" if n == "utf8" else n for (n,) in listed}


@pytest.mark.servers("newest", "8.0")
def test_every_byte_of_every_single_byte_set(servers: list[Asked]) -> None:
    """The table of a set is the server's, byte for byte."""
    answers = ", ".join(conversion("b", charset) for charset in SINGLE_BYTE)
    for asked in servers:
        rows = asked.rows(f"select b, {answers} from byte order by b")
        tables = {
            charset: "".join(said(row[0], charset, row[place]) or "\uffff" for row in rows)
            for place, charset in enumerate(SINGLE_BYTE, start=1)
        }
        assert tables == {charset: single_byte_characters(charset) for charset in SINGLE_BYTE}


MULTI_BYTE = sorted({codes.charset for codes in CODES})


@pytest.mark.parametrize("most", [LEADS, pytest.param(256, marks=pytest.mark.soak)])
@pytest.mark.parametrize("charset", MULTI_BYTE)
def test_codes_of_the_multi_byte_sets(servers: list[Asked], charset: str, most: int) -> None:
    """A code decodes as each server says, or not at all where the server has no character: the
    first and the last lead byte, and others as chance has it."""
    chance = by_chance()
    for codes in (codes for codes in CODES if codes.charset == charset):
        between = codes.leads[1:-1]
        some = chance.sample(between, min(len(between), most - 2))
        _require_alike(servers, codes, [codes.leads[0], *some, codes.leads[-1]])


def _require_alike(servers: list[Asked], codes: Codes, leads: Sequence[int]) -> None:
    having = [one for one in servers if one.name == "mysql" or codes.charset not in MYSQL_ALONE]
    answers = defaultdict[bytes, set[str]](set)
    for asked in having:
        listed = list(asked.answers(codes, leads))
        assert len(listed) == codes.count(leads)
        for code, answer in listed:
            answers[code].add(answer)
    assert len(answers) == codes.count(leads)
    assert [one for one in answers.items() if not _alike(codes.charset, *one)] == []


def _alike(charset: str, code: bytes, answers: set[str]) -> bool:
    read = ours(code, charset)
    return all(said(code, charset, answer) == read for answer in answers)


def test_the_own_code_of_every_character(servers: list[Asked]) -> None:
    """Where several codes mean one character, its own is the one that the server chooses; so a
    key's value comes back if the server's own conversion brings it back."""
    for charset in (one for one in sorted(CHARACTER_SETS) if is_ambiguous(one)):
        others = noncanonical_codes(charset)
        characters = sorted({text_decoder(charset)(code) for code in others})
        own = [code for asked in servers for code in _own_codes(asked, charset, characters)]
        wrong = [
            (charset, text, code)
            for text, code in own
            if code in others or ours(code, charset) != text
        ]
        assert wrong == []
        assert len(own) == len(servers) * len(characters)


def _own_codes(
    asked: Asked, charset: str, characters: Sequence[str]
) -> Iterator[tuple[str, bytes]]:
    listed = ", ".join(f"(x'{character.encode().hex()}')" for character in characters)
    asked.cursor.execute("create temporary table one (t varchar(9) character set utf8mb4)")
    asked.cursor.execute(f"insert into one values {listed}")
    for text, code in asked.rows(f"select t, hex(convert(t using {charset})) from one"):
        yield text, bytes.fromhex(code)
    asked.cursor.execute("drop temporary table one")
