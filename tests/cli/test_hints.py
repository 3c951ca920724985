"""Every command that the product or its pages name can be typed as it stands."""

from __future__ import annotations

import ast
import re
import shlex
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from lockstep.arguments import parse_table_name
from lockstep.grammar import UsageError, make_parser, parse
from lockstep.pipeline.run.agreement.lake_logs import replay_hint
from lockstep.pipeline.run.stop_errors import engine_error, versioning_error
from lockstep.pipeline.values.errors import ConsumerUnknown, LockstepError, TableError
from lockstep.pipeline.values.table import TableName

ROOT = Path(__file__).resolve().parents[2]
CODE = ("lockstep", "assets", "resources", "pipeline")
PAGES = (ROOT / "README.md", ROOT / "lockstep.toml", *sorted((ROOT / "docs").glob("*.md")))

QUOTED = re.compile(r"`(lockstep [a-z][^`]*)`")
SAMPLES = {
    "TABLE": "shop.orders",
    "PLACE": "binlog.000012:4567",
    "FILE": "orders.sql",
    "TEXT": "why",
    "…": "why",
}
"""What a person puts there."""

TABLE = TableName("shop", "today's orders")
VALUES = {
    "table": str(TABLE),
    "structure": str(TABLE),
    "schema": str(TABLE),
    "old_tables": str(TABLE),
    "word": TABLE.word,
    "source": "shop",
    "command": "status",
    "kind": "resume",
    "option": "--json",
    "prog": "lockstep run",
    "after_batch": "41",
    "previous_batch": "41",
}
"""What a value of that name prints; every other one is a place. No command with this
table's name can be typed unless the name is quoted."""


class Mention(NamedTuple):
    where: str
    command: str


@pytest.mark.parametrize("error", [engine_error, versioning_error])
def test_a_statement_names_its_table_as_mysql_takes_it(
    error: Callable[[TableName, str], TableError],
) -> None:
    """Beside the command for the same table, which a shell takes."""
    hint = error(TABLE, "because").hint
    assert "alter table `shop`.`today's orders` " in hint
    assert f"`lockstep resume {TABLE.word} --reason …`" in hint


def test_every_command_in_the_product_can_be_typed() -> None:
    """As it is printed, with its required options; what is not built is named by nobody."""
    mentions = {one.command: one for text in strings() for one in quoted(text)}
    assert len(mentions) > 50
    assert [one for one in map(wrong, mentions.values()) if one] == []


def test_no_command_of_the_product_stands_outside_backticks() -> None:
    """They tell where it begins and ends; these tests, too."""
    verbs = "|".join(sorted(commands()))
    bare = re.compile(rf"\blockstep ({verbs})\b")
    found = [text for text in strings() if bare.search(QUOTED.sub("", text.command))]
    assert found == []


def test_every_command_on_the_pages_can_be_typed() -> None:
    """In text, a command's bare name may stand for it; with anything behind it, it is whole."""
    mentions = {one.command: one for one in on_pages()}
    assert len(mentions) > 60
    bare = {f"lockstep {verb}" for verb in commands()}
    found = map(wrong, mentions.values())
    assert [one for one in found if one and one.command not in bare] == []


def test_what_cannot_be_typed_is_found() -> None:
    """Unknown, not whole, or not built."""
    for text in ("lockstep pause shop.t", "lockstep reloads x", "lockstep support"):
        assert wrong(Mention("", text)) is not None
    assert wrong(Mention("", "lockstep resume TABLE --reason …")) is None


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("orders_2026", "shop.orders_2026"),
        ("größe", "shop.größe"),
        ("to-do", "shop.to-do"),
        ("my orders", "'shop.my orders'"),
        ("a$b", "'shop.a$b'"),
        ("a;b<c", "'shop.a;b<c'"),
        ("today's", """'shop.today'"'"'s'"""),
    ],
)
def test_a_table_is_one_word_of_a_command(name: str, word: str) -> None:
    """Its name is quoted only where a shell would misread it."""
    table = TableName("shop", name)
    assert table.word == word
    assert [parse_table_name(text) for text in shlex.split(table.word)] == [table]


def test_an_option_with_a_table_quotes_it_too() -> None:
    """It is put into the command as a text of its own."""
    (mention,) = quoted(Mention("", replay_hint(TABLE)))
    assert wrong(mention) is None


def test_every_placeholder_is_used() -> None:
    """Whoever takes the last one away cleans up here."""
    every = [*on_pages(), *(one for text in strings() for one in quoted(text))]
    used = {
        name
        for name in SAMPLES
        if any(re.search(rf"(?<!\w){name}(?!\w)", one.command) for one in every)
    }
    assert used == set(SAMPLES)


def commands() -> set[str]:
    """The verbs there are."""
    (choices,) = (one.choices for one in make_parser()._actions if one.dest == "command")
    assert choices is not None
    return set(choices)


def wrong(mention: Mention) -> Mention | None:
    """The mention, if the command line refuses it."""
    text = mention.command
    for name, value in SAMPLES.items():
        text = re.sub(rf"(?<!\w){name}(?!\w)", value, text)
    try:
        parse(shlex.split(text, comments=True)[1:])
    except (UsageError, LockstepError, ValueError):  # the last is of a quote that nothing ends
        return mention
    except SystemExit as left:  # --help
        return mention if left.code else None
    return None


def quoted(text: Mention) -> Iterator[Mention]:
    for found in QUOTED.finditer(text.command):
        yield Mention(text.where, " ".join(found.group(1).split()))


def on_pages() -> Iterator[Mention]:
    """Those in backticks, and the lines of fenced blocks that begin with a command."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        yield from quoted(Mention(page.name, text))
        for line in text.splitlines():
            if re.match(r"lockstep [a-z]", line):
                yield Mention(page.name, line)


@cache
def strings() -> tuple[Mention, ...]:
    """Every string of the product but docstrings, its values filled in."""
    return tuple(
        Mention(f"{file.relative_to(ROOT)}:{node.lineno}", _filled(node))
        for folder in CODE
        for file in sorted((ROOT / folder).rglob("*.py"))
        if "lockstep" in (text := file.read_text(encoding="utf-8"))
        for node in _printed(ast.parse(text))
    )


def _printed(tree: ast.Module) -> Iterator[ast.Constant | ast.JoinedStr]:
    """Strings, each once: the pieces of an f-string are part of it."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            left_out.update(id(piece) for piece in node.values)
            yield node
        if isinstance(node, ast.Constant) and id(node) not in left_out:
            yield node


def _filled(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "".join(
        str(piece.value) if isinstance(piece, ast.Constant) else _value(ast.unparse(piece))
        for piece in node.values
    )


def _value(expression: str) -> str:
    """A sample of what stands in an f-string's braces, by its last name."""
    names = re.findall(r"\w+", expression.removeprefix("f"))
    return next((VALUES[name] for name in reversed(names) if name in VALUES), SAMPLES["PLACE"])


def test_a_program_that_dies_of_an_error_shows_its_hint() -> None:
    """Python prints it below the message: who reads by `lockstep.consume` sees no command line."""
    error = ConsumerUnknown("There is no consumer.", hint="make one")
    lines = traceback.format_exception_only(error)
    assert [line.rpartition(".errors.")[2] for line in lines] == [
        "ConsumerUnknown: There is no consumer.\n",
        "hint: make one\n",
    ]
